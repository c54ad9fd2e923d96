"""Holds runs that are stepped from outside to the reference, and to `simulate`."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.model.records import pod_view
from podium.sim import Setup, simulate
from podium.sim.engine import make_plan
from podium.sim.stepping import Offer, VectorEnvironment
from support.agreement import decided, known, ranks_of, same_result
from support.instances import clusters, inflations, replays, rounds, workloads
from support.probes import PROBES
from support.reference import simulate_slowly
from support.stepped import decider, step_through

probes = st.sampled_from(sorted(PROBES)).map(PROBES.get)
holding_probes = st.sampled_from(
    ["holding", "holding-slots", "holding-any", "refusing", "wanderer"]
).map(PROBES.get)
seeds = st.sampled_from((0, 1, 2**63 - 1))


def thoroughly(examples):
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


def assert_stepping_agrees(cluster, workload, policy, protocol, seed):
    result = step_through(make_plan(cluster, workload, policy, protocol, Setup(seed, "scan")))
    ranks = ranks_of(cluster, protocol, seed)
    slow = simulate_slowly(cluster, workload, policy, protocol, seed=seed, ranks=ranks)
    assert decided(result) == known(slow)
    assert same_result(result, simulate(cluster, workload, policy, protocol, Setup(seed)))


@thoroughly(80)
@given(clusters, workloads, probes, replays, seeds)
def test_a_stepped_replay_is_that_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_stepping_agrees(cluster, workload, policy, protocol, seed)


@thoroughly(80)
@given(clusters, workloads, holding_probes, replays, seeds)
def test_a_stepped_run_holds_as_the_policy_does(cluster, workload, policy, protocol, seed):
    assert_stepping_agrees(cluster, workload, policy, protocol, seed)


@thoroughly(60)
@given(st.data(), clusters, workloads, probes, seeds)
def test_a_stepped_inflation_is_that_of_the_policy(data, cluster, workload, policy, seed):
    protocol = data.draw(inflations(cluster, workload))
    assert_stepping_agrees(cluster, workload, policy, protocol, seed)


@thoroughly(60)
@given(clusters, workloads, probes, rounds, seeds)
def test_stepped_rounds_are_those_of_the_policy(cluster, workload, policy, protocol, seed):
    assert_stepping_agrees(cluster, workload, policy, protocol, seed)


def offers(together, plans):
    """Shows the environments as the offers of single runs."""
    shown = together.observation
    for i, plan in enumerate(plans):
        size = len(plan.cluster)
        nodes, feasible = shown.nodes[i, :size], shown.feasible[i, :size]
        pod, may_hold = pod_view(shown.pods[i]), bool(shown.may_hold[i])
        yield Offer("", pod, nodes, feasible, may_hold, float(shown.clock_s[i]))


@thoroughly(50)
@given(st.data(), st.lists(st.tuples(workloads, probes, replays | rounds), min_size=1, max_size=4))
def test_runs_that_are_stepped_together_know_nothing_of_each_other(data, cases):
    drawn = [data.draw(clusters) for _ in cases]
    kind = drawn[0].nodes.dtype
    plans = [
        make_plan(cluster, *case, Setup(seed, "scan"))
        for seed, (cluster, case) in enumerate(zip(drawn, cases, strict=True))
        if cluster.nodes.dtype == kind
    ]
    together = VectorEnvironment(plans)
    deciders = [decider(plan) for plan in plans]
    again = data.draw(st.integers(0, len(plans) - 1))
    is_late = data.draw(st.booleans())
    while not together.observation.is_done.all():
        decisions = [
            (0, 0) if not offer.feasible.any() else decide(offer)
            for decide, offer in zip(deciders, offers(together, plans), strict=True)
        ]
        together.step(*np.array(decisions).T)
        if is_late:
            is_late = False
            deciders[again] = decider(plans[again])
            together.reset(again)
    for i, plan in enumerate(plans):
        assert same_result(together.result(i), step_through(plan))
