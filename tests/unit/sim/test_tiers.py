from dataclasses import replace

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import ClusterPolicy, from_function, load
from podium.sim import Inflation, Replay, Rounds
from podium.sim.tiers import SCAN_NODES, SPARSE_PODS, choose_tier, is_cache_worthwhile, most_alive


def nodes(count):
    return Cluster.of([NodeSpec(f"n{i}", 100, 100) for i in range(count)])


def pods(count, *, shapes=1, duration_s=1.0):
    return Workload.of(
        PodSpec(f"p{i}", i % shapes, 1, arrival_s=float(i), duration_s=duration_s)
        for i in range(count)
    )


def alike(pod, node):  # noqa: ARG001
    return 0


def uncompilable(pod, node):  # noqa: ARG001
    return sum(milli for milli in node.gpu_milli_left)


def weighs(pod, node, table):  # noqa: ARG001
    return table[0]


FEW, MANY = nodes(SCAN_NODES), nodes(SCAN_NODES + 1)
CROWD = pods(1000, duration_s=1000.0)
RANDOM = replace(load("first-fit"), ties="random")


@pytest.mark.parametrize("asked", ["auto", "python", "cached", "scan"])
def test_a_cluster_policy_is_always_asked_directly(asked):
    policy = ClusterPolicy("chooser", lambda _seed: None)
    assert choose_tier(asked, policy, CROWD, Replay(), MANY) == "scan"


@pytest.mark.parametrize("tier", ["python", "cached", "scan"])
def test_a_tier_that_is_asked_for_is_given(tier):
    assert choose_tier(tier, load("first-fit"), CROWD, Replay(), FEW) == tier


def test_random_ties_are_cached_as_others_are():
    assert choose_tier("cached", RANDOM, CROWD, Replay(), FEW) == "cached"
    assert choose_tier("auto", RANDOM, CROWD, Replay(), MANY) == "cached"
    assert choose_tier("auto", RANDOM, CROWD, Replay(), FEW) == "scan"


def test_few_nodes_are_scanned_and_many_are_cached():
    assert choose_tier("auto", load("first-fit"), CROWD, Replay(), FEW) == "scan"
    assert choose_tier("auto", load("first-fit"), CROWD, Replay(), MANY) == "cached"


def test_a_cache_pays_only_where_shapes_come_again():
    assert is_cache_worthwhile(pods(100, shapes=50), SCAN_NODES + 1)
    assert not is_cache_worthwhile(pods(100, shapes=51), SCAN_NODES + 1)
    assert not is_cache_worthwhile(pods(100, shapes=50), SCAN_NODES)
    assert not is_cache_worthwhile(pods(200, shapes=100), 10_000_000)


def test_a_new_policy_on_a_sparse_trace_is_not_compiled():
    policy = from_function(alike)
    assert choose_tier("auto", policy, pods(SPARSE_PODS), Replay(), MANY) == "python"
    assert policy.compiled == {}


def test_a_new_policy_is_compiled_where_many_pods_live_at_once_or_nothing_leaves():
    for protocol in (Replay(), Inflation(), Rounds()):
        assert choose_tier("auto", from_function(alike), CROWD, protocol, MANY) == "cached"


def test_a_policy_that_cannot_be_compiled_runs_in_python():
    assert choose_tier("auto", from_function(uncompilable), CROWD, Rounds(), MANY) == "python"


def test_a_policy_is_compiled_for_the_table_and_the_nodes_of_the_run():
    policy = replace(from_function(weighs), prepare=lambda shapes: shapes.weights)
    wide = Cluster.of([NodeSpec(f"n{i}", 100, 100, 16, "A") for i in range(99)])
    assert choose_tier("auto", policy, CROWD, Rounds(), wide) == "cached"
    assert list(policy.compiled) == [(1, 16)]


@pytest.mark.parametrize(
    ("arrivals", "durations", "load", "expected"),
    [
        ([0, 1, 2], [1, 1, 1], 1.0, 1),
        ([0, 1, 2], [1, 1, 1], 2.0, 2),
        ([0, 0, 0], [5, 5, 5], 1.0, 3),
        ([0, 0, 0], [0, 0, 0], 1.0, 0),
        ([0, 9], [10, 1], 0.5, 1),
    ],
)
def test_pods_alive_at_once_are_counted_with_departures_first(arrivals, durations, load, expected):
    workload = Workload.of(
        PodSpec(f"p{i}", 1, 1, arrival_s=arrival, duration_s=duration)
        for i, (arrival, duration) in enumerate(zip(arrivals, durations, strict=True))
    )
    assert most_alive(workload, load) == expected


def test_without_times_all_pods_count_as_alive():
    assert most_alive(Workload.of([PodSpec("a", 1, 1), PodSpec("b", 1, 1)]), 1.0) == 2
    assert np.isfinite(most_alive(CROWD, 1e9))
