"""Holds the reasons for which nodes refuse a pod to the core, which only says that they do."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.policies import load
from podium.sim import simulate
from podium.sim.feasible import feasible_nodes, moment_at, moment_before, present_plan
from podium.sim.filters import filters_of
from podium.sim.protocols import Rounds
from podium.sim.refusal import refusal_at, refusal_of
from podium.sim.result import PLACED
from podium.sim.stepping import Episode, stepped_plan
from support import constrained
from support.instances import inflations, replays, thoroughly


def refused(moment, pod):
    found = np.zeros(len(moment.plan.cluster), bool)
    for each in filters_of(moment, pod):
        found |= each.fails
    in_cluster = np.empty_like(found)
    in_cluster[moment.plan.rank_order] = found
    return in_cluster


def assert_told_as_the_core_says(moment):
    for pod in range(len(moment.plan.arrivals)):
        is_feasible = moment.feasible(pod)
        np.testing.assert_array_equal(refused(moment, pod), ~is_feasible)
        told = refusal_at(moment, pod)
        assert sum(told.counts.values()) == int((~is_feasible).sum())
        assert bool(told.reason) == (not is_feasible.any())
        if is_feasible.any():
            assert told.would_fit_empty


@thoroughly(80)
@given(st.data(), constrained.clusters)
def test_filters_refuse_what_the_core_refuses(data, cluster):
    workload = data.draw(constrained.occupied_workloads(cluster))
    assert_told_as_the_core_says(moment_before(stepped_plan(cluster, workload, Rounds())))


@thoroughly(60)
@given(st.data(), constrained.clusters, replays)
def test_filters_and_core_agree_at_every_moment_of_a_run(data, cluster, protocol):
    workload = data.draw(constrained.occupied_workloads(cluster))
    result = simulate(cluster, workload, load("best-fit"), protocol)
    changes = data.draw(st.integers(0, len(result.changes)))
    assert_told_as_the_core_says(moment_at(result, changes))


@thoroughly(60)
@given(st.data(), constrained.clusters)
def test_what_a_stepped_run_offers_is_what_is_said_to_be_feasible(data, cluster):
    workload = data.draw(constrained.occupied_workloads(cluster))
    plan = present_plan(cluster, workload)
    episode = Episode(plan)
    if episode.offer is not None:
        names = [cluster.names[i] for i in np.flatnonzero(episode.offer.feasible)]
        assert feasible_nodes(cluster, workload, episode.offer.name) == names


@thoroughly(80)
@given(st.data(), constrained.clusters)
def test_every_pod_that_is_not_placed_has_one_reason_and_every_node_counts(data, cluster):
    kinds = constrained.gang_workloads(constrained.shapes)
    workload = data.draw(constrained.occupied_workloads(cluster, kinds))
    protocol = data.draw(st.one_of(inflations(cluster, workload), replays))
    result = simulate(cluster, workload, load("best-fit"), protocol)
    for pod in range(len(result.status)):
        told = refusal_of(result, pod)
        if result.status[pod] == PLACED:
            assert told is None
            continue
        assert told.reason
        assert told.message
        assert "\n" not in told.message
        assert sum(told.counts.values()) == len(cluster)
        assert told.reason != "room"
