"""States what holds for every run, whatever the policy: resources, order of events, the queue."""

import itertools

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.model.fit import fits
from podium.sim import Rounds, Setup, simulate
from podium.sim.result import HELD, PLACED, UNPLACED
from support.instances import (
    clusters,
    inflations,
    replays,
    rounds,
    single_workloads,
    workloads,
)
from support.probes import PROBES

NEVER_HOLDING = ["first", "tightest", "roomiest", "by-slot", "by-table", "first-any", "last"]

probes = st.sampled_from(sorted(PROBES)).map(PROBES.get)
setups = st.builds(
    Setup,
    seed=st.integers(0, 3),
    tier=st.sampled_from(("auto", "python", "cached", "scan")),
    ranks=st.sampled_from(("shuffled", "listed")),
)
often = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def runs(draw):
    cluster, workload = draw(clusters), draw(workloads)
    protocol = draw(st.one_of(replays, rounds, inflations(cluster, workload)))
    return simulate(cluster, workload, draw(probes), protocol, draw(setups))


@st.composite
def replayed(draw, names=tuple(PROBES)):
    policy = PROBES[draw(st.sampled_from(sorted(names)))]
    return simulate(draw(clusters), draw(single_workloads), policy, draw(replays), draw(setups))


def steps(result):
    """Lists (pod, +1 placed or -1 released) in order."""
    return [(abs(change) - 1, 1 if change > 0 else -1) for change in result.changes.tolist()]


def amounts(result, pod):
    """Gives what a placed pod takes: (node, kind of resource) to amount."""
    record, node = result.plan.arrivals.pods[pod], int(result.node[pod])
    taken = {(node, "cpu"): int(record["cpu_milli"]), (node, "memory"): int(record["memory_mib"])}
    for slot in range(16):
        if result.slots[pod] >> slot & 1:
            taken[node, slot] = int(record["gpu_milli"])
    return taken


def capacity(cluster):
    found = {}
    for index, spec in enumerate(cluster.specs()):
        found[index, "cpu"], found[index, "memory"] = spec.cpu_milli, spec.memory_mib
        found.update({(index, slot): 1000 for slot in range(spec.gpu_count)})
    return found


@often
@given(runs())
def test_no_node_ever_gives_more_than_it_has_and_all_of_it_comes_back(result):
    whole = capacity(result.plan.cluster)
    left = dict(whole)
    for pod, sign in steps(result):
        for resource, amount in amounts(result, pod).items():
            left[resource] -= sign * amount
            assert 0 <= left[resource] <= whole[resource]
    if result.plan.protocol.name == "replay":
        assert left == whole


@often
@given(runs())
def test_a_placed_pod_has_the_gpus_it_asked_for_on_a_model_it_accepts(result):
    specs = result.plan.cluster.specs()
    for pod in np.flatnonzero(result.is_placed):
        record, node = result.plan.arrivals.pods[pod], specs[result.node[pod]]
        assert int(result.slots[pod]).bit_count() == record["gpu_count"]
        accepted = [model for model in result.plan.arrivals.gpu_specs[pod].split("|") if model]
        assert record["gpu_count"] == 0 or not accepted or node.gpu_model in accepted


@often
@given(runs())
def test_every_pod_is_placed_once_or_accounted_for(result):
    placed = [pod for pod, sign in steps(result) if sign > 0]
    released = [pod for pod, sign in steps(result) if sign < 0]
    assert sorted(placed) == np.flatnonzero(result.status == PLACED).tolist()
    assert sorted(released) == (placed and sorted(placed) if has_departures(result) else [])
    assert set(result.status.tolist()) <= {PLACED, UNPLACED, HELD}
    assert (np.isnan(result.start_s) == (result.status != PLACED)).all()
    assert ((result.node >= 0) == (result.status == PLACED)).all()
    # A pod is not asked about when one of its shape was just held in the same state.
    shapes = result.plan.arrivals.shape_of()
    is_held = result.status == HELD
    held_shapes = set(shapes[result.holds >= 1].tolist())
    assert set(shapes[is_held].tolist()) <= held_shapes


def has_departures(result):
    return result.plan.protocol.name == "replay"


@often
@given(replayed())
def test_a_replay_places_exactly_the_pods_that_fit_an_empty_node_and_leaves_none_held(result):
    # However long a policy holds: when nothing else can happen, a held pod is placed.
    empty = result.plan.cluster.nodes
    can_fit = [any(fits(pod, node) for node in empty) for pod in result.plan.arrivals.pods]
    assert (result.status == PLACED).tolist() == can_fit
    assert not (result.status == HELD).any()


@often
@given(replayed())
def test_time_never_runs_backwards_and_departures_come_first_at_equal_times(result):
    start, finish = result.start_s, result.finish_s
    times = [start[pod] if sign > 0 else finish[pod] for pod, sign in steps(result)]
    assert all(one <= next_one for one, next_one in itertools.pairwise(times))
    is_placed_at = None
    for (pod, sign), time in zip(steps(result), times, strict=True):
        if sign > 0:
            is_placed_at = time
        else:
            # Only a pod that began at this very instant may leave after a placement in it.
            assert is_placed_at != time or start[pod] == time
    placed = result.is_placed
    assert (start[placed] >= result.arrival_s[placed]).all()


@often
@given(replayed(NEVER_HOLDING))
def test_no_pod_overtakes_one_of_its_own_shape_unless_a_policy_holds(result):
    shape_of = result.plan.arrivals.shape_of()
    for shape in range(shape_of.max() + 1):
        starts = result.start_s[(shape_of == shape) & result.is_placed]
        assert (np.diff(starts) >= 0).all()
    assert not result.holds.any()


@often
@given(clusters, workloads, probes, st.one_of(replays, rounds), st.integers(0, 5))
def test_the_same_inputs_give_the_same_digest(cluster, workload, policy, protocol, seed):
    one = simulate(cluster, workload, policy, protocol, Setup(seed=seed))
    other = simulate(cluster, workload, policy, protocol, Setup(seed=seed))
    assert one.digest == other.digest
    assert one.decisions == other.decisions


@often
@given(clusters, workloads, probes, probes, replays)
def test_two_digests_are_equal_exactly_when_the_decisions_are(
    cluster, workload, policy, other_policy, protocol
):
    one = simulate(cluster, workload, policy, protocol)
    other = simulate(cluster, workload, other_policy, protocol)
    is_equal = all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "start_s")
        for name in ("node", "slots", "start_s", "status", "holds")
    )
    assert (one.digest == other.digest) == is_equal


@often
@given(clusters, workloads, probes, st.integers(1, 5))
def test_more_rounds_never_take_back_what_fewer_rounds_placed(cluster, workload, policy, count):
    fewer = simulate(cluster, workload, policy, Rounds(count))
    more = simulate(cluster, workload, policy, Rounds(count + 1))
    assert (more.node[fewer.is_placed] == fewer.node[fewer.is_placed]).all()
    assert (more.start_s[more.is_placed & ~fewer.is_placed] == count).all()
