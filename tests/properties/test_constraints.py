"""Holds the core to the slow reference where nodes and pods have constraints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.sim.audit import audit
from support import constrained
from support.agreement import assert_all_tiers_agree, small_window
from support.instances import PLAIN_SHAPES, inflations, replays, rounds, thoroughly
from support.probes import PROBES, TABLE_PROBES

probes = st.sampled_from(sorted(PROBES)).map(PROBES.get)
table_probes = st.sampled_from(TABLE_PROBES).map(PROBES.get)
demands = st.sampled_from(("seen", "warm"))


def assert_agreed_and_possible(cluster, workload, policy, protocol, ties="order"):
    result = assert_all_tiers_agree(cluster, workload, policy, protocol, ties=ties)
    assert audit(result, result.metrics).problems == ()


@pytest.mark.deep
@thoroughly(60)
@given(constrained.clusters, constrained.workloads, probes, replays)
def test_every_tier_replays_constraints_as_the_reference_does(cluster, workload, policy, protocol):
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(50)
@given(st.data(), constrained.clusters, probes, replays)
def test_a_replay_goes_on_from_where_pods_run(data, cluster, policy, protocol):
    workload = data.draw(constrained.occupied_workloads(cluster))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(40)
@given(st.data(), constrained.clusters, probes)
def test_inflation_keeps_constraints(data, cluster, policy):
    workload = data.draw(constrained.occupied_workloads(cluster))
    protocol = data.draw(inflations(cluster, workload))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(40)
@given(st.data(), constrained.clusters, probes, rounds)
def test_rounds_keep_constraints(data, cluster, policy, protocol):
    workload = data.draw(constrained.occupied_workloads(cluster))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(40)
@given(st.data(), constrained.clusters, probes, rounds)
def test_ties_are_settled_among_nodes_that_constraints_allow(data, cluster, policy, protocol):
    workload = data.draw(constrained.occupied_workloads(cluster))
    assert_agreed_and_possible(cluster, workload, policy, protocol, ties="profile")


@thoroughly(60)
@given(st.data(), constrained.shared_clusters, probes, replays)
def test_devices_of_shared_cards_are_spread_as_the_reference_does(data, cluster, policy, protocol):
    kinds = constrained.device_workloads
    workload = data.draw(constrained.occupied_workloads(cluster, kinds))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


gang_workloads = constrained.gang_workloads(st.sampled_from(PLAIN_SHAPES))


@thoroughly(60)
@given(constrained.clusters, gang_workloads, probes, replays)
def test_gangs_start_together_in_a_replay(cluster, workload, policy, protocol):
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(40)
@given(st.data(), constrained.clusters, probes)
def test_gangs_start_together_in_inflation(data, cluster, policy):
    workload = data.draw(constrained.occupied_workloads(cluster, gang_workloads))
    protocol = data.draw(inflations(cluster, workload))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(40)
@given(st.data(), constrained.clusters, probes, rounds)
def test_gangs_start_together_in_rounds(data, cluster, policy, protocol):
    workload = data.draw(constrained.occupied_workloads(cluster, gang_workloads))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(40)
@given(st.data(), constrained.clusters, probes, replays)
def test_gangs_keep_constraints(data, cluster, policy, protocol):
    kinds = constrained.gang_workloads(constrained.shapes)
    workload = data.draw(constrained.occupied_workloads(cluster, kinds))
    assert_agreed_and_possible(cluster, workload, policy, protocol)


@thoroughly(80)
@given(st.data(), constrained.clusters, table_probes, replays | rounds, demands)
def test_gangs_and_who_runs_already_are_seen_as_the_reference_sees_them(
    data, cluster, policy, protocol, known
):
    kinds = constrained.gang_workloads(constrained.shapes)
    workload = data.draw(constrained.occupied_workloads(cluster, kinds))
    with small_window():
        assert_all_tiers_agree(cluster, workload, policy, protocol, demand=known)
