"""Holds every tier of the core to the slow reference, decision by decision."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.sim import state
from support.agreement import assert_all_tiers_agree, small_window
from support.instances import clusters, inflations, replays, rounds, workloads
from support.probes import BY_SLOT, PAIR_PROBES, PROBES, TABLE_PROBES

probes = st.sampled_from(sorted(PROBES)).map(PROBES.get)
holding_probes = st.sampled_from(
    ["holding", "holding-slots", "holding-any", "refusing", "wanderer"]
).map(PROBES.get)
table_probes = st.sampled_from(TABLE_PROBES).map(PROBES.get)
demands = st.sampled_from(("seen", "warm"))
seeds = st.sampled_from((0, 1, 2**63 - 1))


def thoroughly(examples):
    return settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )


@thoroughly(200)
@given(clusters, workloads, probes, replays, seeds)
def test_every_tier_replays_as_the_reference_does(cluster, workload, policy, protocol, seed):
    assert_all_tiers_agree(cluster, workload, policy, protocol, seed=seed)


@thoroughly(120)
@given(clusters, workloads, holding_probes, replays, seeds)
def test_held_pods_are_offered_again_as_the_reference_does(
    cluster, workload, policy, protocol, seed
):
    assert_all_tiers_agree(cluster, workload, policy, protocol, seed=seed)


@thoroughly(150)
@given(st.data(), clusters, workloads, probes, seeds)
def test_every_tier_inflates_as_the_reference_does(data, cluster, workload, policy, seed):
    protocol = data.draw(inflations(cluster, workload))
    assert_all_tiers_agree(cluster, workload, policy, protocol, seed=seed)


@thoroughly(150)
@given(clusters, workloads, probes, rounds, seeds)
def test_every_tier_plays_rounds_as_the_reference_does(cluster, workload, policy, protocol, seed):
    assert_all_tiers_agree(cluster, workload, policy, protocol, seed=seed)


@pytest.mark.parametrize("window_pods", [3, 24, 2000])
@thoroughly(60)
@given(st.data(), clusters, workloads, table_probes, demands, seeds)
def test_every_tier_learns_the_demand_as_the_reference_does(
    window_pods, data, cluster, workload, policy, known, seed
):
    protocol = data.draw(replays | rounds | inflations(cluster, workload))
    with small_window(window_pods):
        assert_all_tiers_agree(cluster, workload, policy, protocol, seed=seed, demand=known)


@thoroughly(100)
@given(clusters, workloads, probes, replays, seeds)
def test_every_tier_settles_ties_as_the_profile_does(cluster, workload, policy, protocol, seed):
    assert_all_tiers_agree(cluster, workload, policy, protocol, seed=seed, ties="profile")


@pytest.mark.parametrize(("keys", "states"), [(2, 1), (4, 8), (64, 2), (32, 32)])
@thoroughly(25)
@given(clusters, workloads, st.sampled_from(sorted(PAIR_PROBES)), replays)
def test_a_memo_that_overflows_and_collides_changes_no_decision(
    keys, states, cluster, workload, name, protocol
):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "_MEMO_KEYS", keys)
        patch.setattr(state, "_MEMO_STATES", states)
        assert_all_tiers_agree(cluster, workload, PAIR_PROBES[name], protocol)


@thoroughly(25)
@given(clusters, workloads, rounds)
def test_a_forgetful_memo_keeps_the_slot_that_belongs_to_a_score(cluster, workload, protocol):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "_MEMO_KEYS", 2)
        patch.setattr(state, "_MEMO_STATES", 2)
        assert_all_tiers_agree(cluster, workload, BY_SLOT, protocol)
