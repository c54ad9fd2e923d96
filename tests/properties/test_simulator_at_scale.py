"""Holds the tiers together on clusters that need a score index of two and three levels."""

from dataclasses import replace

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec
from podium.sim import Holding, Inflation, Order, Replay, Rounds, Setup, simulate, state
from support.agreement import assert_all_tiers_agree, same_result
from support.depth import with_deep
from support.instances import random_cluster, random_workload
from support.probes import PAIR_PROBES, PROBES

HOLDING = Holding(hold_limit=20, max_holds=30)
BRIEFLY = Holding(hold_limit=20, max_holds=2)

REPLAYED = with_deep(["by-slot"], ["first", "tightest", "holding", "tightest-any"])
COMPARED = with_deep(["by-slot"], ["roomiest", "tightest", "by-record", "holding-slots"])
PROTOCOLS = with_deep([Replay(holding=BRIEFLY)], [Rounds(5, BRIEFLY), None])


@pytest.mark.parametrize(
    "name", with_deep(["by-slot"], ["first", "tightest", "holding", "tightest-any"])
)
def test_two_hundred_nodes_replay_two_thousand_pods_as_the_reference_does(name):
    random = np.random.default_rng(7)
    cluster = random_cluster(200, random)
    workload = random_workload(2000, random, pods_alive=700)
    protocol = Replay(holding=HOLDING)
    result = assert_all_tiers_agree(cluster, workload, PROBES[name], protocol, seed=3)
    assert (result.start_s > result.arrival_s).sum() > 50


@pytest.mark.parametrize(
    "name", with_deep(["by-slot-and-table", "wanderer"], ["roomiest", "holding-slots", "first-any"])
)
def test_a_cluster_fills_up_as_in_the_reference(name):
    random = np.random.default_rng(8)
    cluster = random_cluster(130, random, largest_gpu_count=16)
    workload = random_workload(900, random)
    order = Order(random.integers(0, 900, 900), random.permutation(130))
    protocol = Inflation(order=order, holding=HOLDING)
    result = assert_all_tiers_agree(cluster, workload, PROBES[name], protocol)
    assert (~result.is_placed).sum() > 50


@pytest.mark.parametrize("num_nodes", with_deep([64, 65, 4097], [128, 4096]))
def test_the_index_finds_the_first_best_node_at_the_edges_of_its_blocks(num_nodes):
    random = np.random.default_rng(num_nodes)
    cluster = random_cluster(num_nodes, random)
    workload = random_workload(60, random, num_shapes=4)
    for name in ("roomiest", "tightest"):
        assert_all_tiers_agree(cluster, workload, PROBES[name], Rounds())


@pytest.mark.parametrize(
    "name", with_deep(["by-slot"], ["roomiest", "tightest", "by-record", "holding-slots"])
)
def test_cache_memo_and_scan_agree_on_five_thousand_nodes(name):
    random = np.random.default_rng(9)
    cluster = random_cluster(5000, random)
    workload = random_workload(3000, random, num_shapes=40, pods_alive=1500)
    protocol = Replay(holding=HOLDING)
    python, cached, scan = (
        simulate(cluster, workload, PROBES[name], protocol, Setup(tier=tier))
        for tier in ("python", "cached", "scan")
    )
    assert same_result(python, scan)
    assert same_result(cached, scan)


ANY = [replace(PROBES[name], ties="random") for name in sorted(PAIR_PROBES)]


@pytest.mark.deep
@pytest.mark.parametrize("policy", ANY, ids=lambda policy: policy.name)
@pytest.mark.parametrize(
    "protocol", with_deep([Replay(holding=BRIEFLY)], [Rounds(5, BRIEFLY), None])
)
def test_ties_are_drawn_alike_from_cache_memo_and_scan(policy, protocol):
    random = np.random.default_rng(12)
    cluster = random_cluster(150, random)
    workload = random_workload(250, random, num_shapes=12, pods_alive=150)
    order = Order(random.integers(0, 250, 250), random.permutation(150))
    protocol = protocol or Inflation(order=order, holding=BRIEFLY)
    result = assert_all_tiers_agree(cluster, workload, policy, protocol, seed=4)
    assert result.is_placed.any()


@pytest.mark.deep
@pytest.mark.parametrize("num_nodes", with_deep([64, 65, 4097], [128, 4096]))
@pytest.mark.parametrize("name", ["first-any", "tightest-any"])
def test_any_of_all_nodes_is_drawn_across_the_edges_of_blocks(name, num_nodes):
    alike = Cluster.of(NodeSpec(f"node-{i}", 8000, 8000, 4, "A") for i in range(num_nodes))
    workload = random_workload(60, np.random.default_rng(num_nodes), num_shapes=4)
    result = assert_all_tiers_agree(alike, workload, PROBES[name], Rounds())
    assert len(set(result.node[result.is_placed].tolist())) > 2


@pytest.mark.parametrize("name", ["tightest", "roomiest", "by-record"])
def test_a_shape_that_comes_late_meets_nodes_as_they_are_by_then(name):
    alike = Cluster.of(NodeSpec(f"node-{i}", 8000, 8000, 4, "A") for i in range(70))
    workload = random_workload(300, np.random.default_rng(11), num_shapes=150)
    assert_all_tiers_agree(alike, workload, PROBES[name], Rounds())


def test_the_memo_forgets_under_the_score_cache_and_no_decision_changes(monkeypatch):
    monkeypatch.setattr(state, "_MEMO_KEYS", 128)
    monkeypatch.setattr(state, "_MEMO_STATES", 16)
    random = np.random.default_rng(10)
    cluster = random_cluster(100, random)
    workload = random_workload(400, random, pods_alive=200)
    for name in ("tightest", "by-slot"):
        assert_all_tiers_agree(cluster, workload, PROBES[name], Replay())
