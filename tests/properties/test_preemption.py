"""Holds preemption in every tier to the slow reference: victims, nodes, and what follows."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from podium.model import Cluster, PodSpec, Workload
from podium.sim.audit import audit
from support import constrained
from support.agreement import assert_all_tiers_agree, small_window
from support.instances import clusters, replays, rounds, single_workloads, thoroughly
from support.probes import PROBES, TABLE_PROBES

probes = st.sampled_from(sorted(PROBES)).map(PROBES.get)
table_probes = st.sampled_from(TABLE_PROBES).map(PROBES.get)
demands = st.sampled_from(("seen", "warm"))
preempting_replays = replays.map(lambda protocol: replace(protocol, preemption=True))
preempting_rounds = rounds.map(lambda protocol: replace(protocol, preemption=True))


def _cramped(cluster):
    """Leaves so little of a cluster that pods contend for it."""
    return Cluster.of(
        replace(spec, cpu_milli=2500, gpu_count=min(spec.gpu_count, 2))
        for spec in cluster.specs()[:4]
    )


few_nodes = clusters.map(_cramped)
few_constrained_nodes = constrained.clusters.map(_cramped)
simple_shapes = st.builds(
    lambda gpus, cpu_milli, labels, namespace: PodSpec(
        "", cpu_milli, 100, *gpus, labels=labels, namespace=namespace
    ),
    st.sampled_from(((0, 0), (1, 300), (1, 600), (1, 1000), (2, 1000))),
    st.sampled_from((500, 1000)),
    st.sampled_from(({}, {"app": "x"}, {"app": "y"})),
    st.sampled_from(("a", "a", "b")),
)
mixed_shapes = st.one_of(simple_shapes, simple_shapes, constrained.shapes)
mixed_workloads = constrained.workloads_of(mixed_shapes)
mixed_gangs = constrained.gang_workloads(mixed_shapes)


@st.composite
def contested(draw, workloads):
    """Draws a workload whose pods have several priorities, of which some evict nobody."""
    workload = draw(workloads)
    priorities = draw(st.lists(st.integers(-1, 3), min_size=2, max_size=8))
    never = draw(st.lists(st.booleans(), min_size=1, max_size=5))
    ages = draw(st.lists(st.sampled_from((0.0, 0.0, 1.5, 4.0)), min_size=1, max_size=5))
    specs = [
        replace(
            spec,
            cpu_milli=max(500, min(spec.cpu_milli, 1500)),
            duration_s=spec.duration_s * 4,
            priority=priorities[i % len(priorities)],
            never_preempts=never[i % len(never)] and never[(i + 1) % len(never)],
            age_s=ages[i % len(ages)] if spec.node else 0.0,
            is_unready=bool(spec.node) and never[(i + 2) % len(never)],
        )
        for i, spec in enumerate(workload.specs())
    ]
    budgets = draw(st.lists(constrained.budgets, max_size=3))
    return Workload.of(specs, gangs=workload.gang_rules, budgets=budgets)


def assert_agreed_and_possible(cluster, workload, policy, protocol, *, seed=0):
    result = assert_all_tiers_agree(cluster, workload, policy, protocol, seed=seed)
    assert audit(result, result.metrics).problems == ()


@thoroughly(100)
@given(few_nodes, contested(single_workloads), probes, preempting_replays)
def test_every_tier_evicts_as_the_reference_does(cluster, workload, policy, protocol):
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(60)
@given(st.data(), few_constrained_nodes, probes, preempting_rounds)
def test_rounds_evict_as_the_reference_does(data, cluster, policy, protocol):
    workload = data.draw(contested(constrained.occupied_workloads(cluster, mixed_workloads)))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(80)
@given(st.data(), few_constrained_nodes, probes, preempting_replays)
def test_preemption_keeps_constraints_and_budgets(data, cluster, policy, protocol):
    workload = data.draw(contested(constrained.occupied_workloads(cluster, mixed_workloads)))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(60)
@given(st.data(), few_constrained_nodes, probes, st.one_of(preempting_replays, preempting_rounds))
def test_members_of_gangs_are_evicted_one_by_one(data, cluster, policy, protocol):
    workload = data.draw(contested(constrained.occupied_workloads(cluster, mixed_gangs)))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(80)
@given(
    st.data(), few_constrained_nodes, table_probes,
    st.one_of(preempting_replays, preempting_rounds), demands,
)  # fmt: skip
def test_who_evicts_others_is_seen_as_the_reference_sees_it(data, cluster, policy, protocol, known):
    workload = data.draw(contested(constrained.occupied_workloads(cluster, mixed_gangs)))
    with small_window():
        assert_all_tiers_agree(cluster, workload, policy, protocol, demand=known)
