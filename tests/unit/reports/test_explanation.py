# ruff: noqa: ARG001, ARG002 - the signatures of policies are given

from dataclasses import replace

import numpy as np
import pytest

from podium.errors import UnknownName, UsageError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints, Gang, NodeTerm, Requirement, Taint
from podium.policies import HOLD, ClusterPolicy, PairPolicy, catalogue, from_function, load
from podium.reports.explanation import (
    CPU_SHORT,
    GPU_SHORT,
    MEMORY_SHORT,
    WRONG_MODEL,
    GangPlace,
    explain,
    state_before,
)
from podium.sim import Inflation, Replay, Rounds, Setup, simulate
from podium.sim.result import FITS_NO_NODE, HELD_BACK, NO_ROOM
from support.instances import random_cluster, random_workload
from support.runs import gpu_pod, run, run_in_order, run_in_rounds, share_pod, three_pods

NODE = NodeSpec("a", 10_000, 10_000, 2, "X")


class Witness:
    """Takes the fullest node, and keeps the state on which it decided."""

    seen: dict[int, np.ndarray] = {}  # noqa: RUF012 - read by the test, after the run

    def __init__(self, seed):
        Witness.seen = {}

    def choose(self, pod, nodes, feasible):
        Witness.seen[pod.cpu_milli] = nodes.copy()
        return int(np.flatnonzero(feasible)[np.argmin(nodes["cpu_milli_left"][feasible])])


@pytest.mark.parametrize("protocol", [Replay(), Inflation(ratio=1.3), Rounds()])
def test_the_rebuilt_state_is_the_one_that_the_policy_saw(protocol):
    random = np.random.default_rng(5)
    cluster = random_cluster(30, random)
    # Each pod asks for another amount of CPU, so that the witness can tell them apart.
    drawn = random_workload(150, random).specs()
    workload = Workload.of(replace(pod, cpu_milli=500 + i) for i, pod in enumerate(drawn))
    witness = ClusterPolicy("witness", Witness)
    result = simulate(cluster, workload, witness, protocol, Setup(seed=1000))
    checked = 0
    for pod in np.flatnonzero(result.is_placed).tolist():
        record = result.plan.arrivals.pods[pod]
        if result.plan.arrivals.names.count(result.plan.arrivals.names[pod]) > 1:
            continue  # one shape, several decisions
        rebuilt = state_before(result, pod)[result.plan.rank_order]
        assert rebuilt.tobytes() == Witness.seen[int(record["cpu_milli"])].tobytes()
        checked += 1
    assert checked > 30


PAIR_POLICIES = [
    policy
    for policy in (load(info.name) for info in catalogue())
    if isinstance(policy, PairPolicy) and policy.ties == "rank"
]


@pytest.mark.parametrize("policy", PAIR_POLICIES, ids=lambda policy: policy.name)
def test_the_chosen_node_has_the_best_score_and_the_first_rank_among_equals(policy):
    random = np.random.default_rng(6)
    cluster, workload = random_cluster(25, random), random_workload(120, random)
    result = simulate(cluster, workload, policy, Rounds(), Setup(seed=1000, tier="python"))
    ranks = {cluster.names[node]: i for i, node in enumerate(result.plan.rank_order)}
    for pod in np.flatnonzero(result.is_placed)[::9].tolist():
        found = explain(result, result.plan.arrivals.names[pod], most=50)
        assert found.node == found.candidates[0].node == cluster.names[result.node[pod]]
        scored = [each for each in found.candidates if each.score is not None]  # others: refused
        best = max(scored, key=lambda c: (c.score, -ranks[c.node]))
        assert best.is_chosen


def test_a_placed_pod_is_explained_on_the_state_before_it():
    found = explain(three_pods(), "p2")
    assert (found.policy, found.pod, found.node, found.gpu_slots) == (
        "first-fit",
        "p2",
        "b",
        (0, 1),
    )
    assert found.request == {
        "cpu_milli": 1000, "memory_mib": 3000, "gpu_count": 2, "gpu_milli": 1000,
    }  # fmt: skip
    assert (found.feasible, found.reasons, found.reason) == (1, {GPU_SHORT: 1}, "")
    (candidate,) = found.candidates
    assert candidate.is_chosen
    assert candidate.gpu_milli_left == (1000, 1000, 1000)
    assert (candidate.cpu_milli_left, candidate.memory_mib_left) == (4000, 8000)


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (PodSpec("p", 10_001, 0), CPU_SHORT),
        (PodSpec("p", 0, 10_001), MEMORY_SHORT),
        (PodSpec("p", 0, 0, 1, 500, gpu_spec="Y|Z"), WRONG_MODEL),
        (PodSpec("p", 0, 0, 3, 1000), GPU_SHORT),
        (PodSpec("p", 99_999, 99_999, 3, 1000, gpu_spec="Y"), WRONG_MODEL),
        (PodSpec("p", 99_999, 99_999, 3, 1000), GPU_SHORT),
    ],
)
def test_a_node_that_cannot_take_a_pod_has_a_reason(pod, reason):
    found = explain(run_in_rounds([NODE], [pod]), "p")
    assert (found.node, found.feasible, found.candidates) == ("", 0, ())
    assert found.reasons == {reason: 1}
    assert found.reason == FITS_NO_NODE


def test_reasons_are_counted_the_commonest_first():
    nodes = [NODE, NodeSpec("b", 10, 10, 4, "X"), NodeSpec("c", 10, 10, 8, "X")]
    found = explain(run_in_rounds(nodes, [gpu_pod("p", 3, cpu_milli=5000)]), "p")
    assert list(found.reasons.items()) == [(CPU_SHORT, 2), (GPU_SHORT, 1)]


def test_a_pod_of_a_source_with_namespaces_is_named_with_its_own():
    pods = [replace(gpu_pod(name, 1), namespace="ml") for name in ("p0", "p1")]
    result = run_in_order([NODE], pods)
    assert explain(result, "p1").pod == explain(result, "ml/p1").pod == "ml/p1"
    with pytest.raises(UnknownName) as caught:
        explain(result, "ml/p2")
    assert "ml/p0" in caught.value.hint


def test_a_dropped_pod_is_explained_on_the_state_of_its_arrival():
    pods = [gpu_pod("p0", 1), gpu_pod("p1", 2), gpu_pod("p2", 1, cpu_milli=9000)]
    result = run_in_order([NODE], pods)
    found = explain(result, "p1")
    assert (found.reasons, found.reason) == ({GPU_SHORT: 1}, NO_ROOM)
    state = state_before(result, 1)
    assert state["gpu_milli_left"][0][:2].tolist() == [0, 1000]
    assert state["cpu_milli_left"].tolist() == [9000]


def test_the_first_arrival_can_be_dropped_too():
    result = run_in_order([NODE], [gpu_pod("p0", 3), gpu_pod("p1", 2)])
    assert state_before(result, 0)["gpu_milli_left"][0][:2].tolist() == [1000, 1000]


def holding(pod, node):
    return HOLD if pod.gpu_count == 0 else 7


def test_a_held_pod_shows_nodes_that_were_refused():
    nodes = [NODE, NodeSpec("b", 1, 1)]
    pods = [gpu_pod("p0", 1), PodSpec("held", 100, 0)]
    result = run(nodes, pods, Rounds(max_rounds=2), policy=from_function(holding))
    found = explain(result, "held")
    assert (found.node, found.feasible, found.reason) == ("", 1, HELD_BACK)
    assert [(c.node, c.score, c.is_chosen) for c in found.candidates] == [("a", None, False)]
    assert found.candidates[0].gpu_milli_left == (0, 1000)


def test_the_runners_up_follow_by_score_up_to_a_limit():
    def by_cpu(pod, node):
        return node.cpu_milli_total

    nodes = [NodeSpec(f"n{i}", 1000 + i, 0) for i in range(9)]
    result = run_in_rounds(nodes, [PodSpec("p", 1, 0)], policy=from_function(by_cpu))
    found = explain(result, "p", most=3)
    assert [c.node for c in found.candidates] == ["n8", "n7", "n6"]
    assert found.feasible == 9
    assert [c.is_chosen for c in found.candidates] == [True, False, False]


def test_a_share_is_scored_by_its_best_gpu():
    def likes_slot_1(pod, node, gpu):
        return float(gpu)

    result = run_in_rounds([NODE], [share_pod("p", 500)], policy=from_function(likes_slot_1))
    found = explain(result, "p")
    assert (found.gpu_slots, found.candidates[0].score) == ((1,), 1.0)


def test_a_chooser_without_scores_is_known_by_its_choice():
    nodes = [NODE, NodeSpec("b", 10_000, 10_000)]
    pods = [PodSpec("p0", 1, 0), PodSpec("p1", 1, 0)]
    result = run_in_rounds(nodes, pods, policy="round-robin")
    for pod, node in (("p0", "a"), ("p1", "b")):
        found = explain(result, pod)
        assert found.node == node
        chosen, other = found.candidates
        assert (chosen.node, chosen.score, other.score) == (node, 1.0, 0.0)


class Scoring:
    """Scores by rank, and takes the last."""

    def __init__(self, seed):
        pass

    def choose(self, pod, nodes, feasible):
        return int(np.flatnonzero(feasible)[-1])

    def scores(self, pod, nodes, feasible):
        return np.arange(len(nodes), dtype=float)


def test_a_chooser_with_scores_sees_the_nodes_in_rank_order():
    cluster = Cluster.of(NodeSpec(f"n{i}", 1000, 0) for i in range(6))
    policy = ClusterPolicy("scoring", Scoring)
    workload = Workload.of([PodSpec("p", 1, 0)])
    result = simulate(cluster, workload, policy, Rounds(), Setup(seed=1000))
    found = explain(result, "p", most=6)
    assert found.candidates[0].score == 5.0
    in_rank_order = [cluster.names[i] for i in result.plan.rank_order]
    assert [c.node for c in found.candidates] == in_rank_order[::-1]


class Refusing:
    """Holds everything."""

    def __init__(self, seed):
        pass

    def choose(self, pod, nodes, feasible):
        return HOLD


def test_a_pod_that_a_chooser_held_shows_nodes_that_were_refused():
    policy = ClusterPolicy("refusing", Refusing)
    result = run([NODE], [PodSpec("p", 1, 0)], Rounds(max_rounds=1), policy=policy)
    found = explain(result, "p")
    assert (found.reason, found.candidates[0].score) == (HELD_BACK, None)


def test_nodes_that_constraints_keep_away_are_counted_by_reason():
    nodes = [
        NODE,
        NodeSpec("t", 10_000, 10_000, 2, "X", taints=(Taint("spot", "yes"),)),
        NodeSpec("u", 10_000, 10_000, 2, "X", taints=(Taint("spot", "yes"),)),
        NodeSpec("z", 10_000, 10_000, 2, "X", labels={"zone": "1"}),
    ]
    zone = Constraints(node_terms=(NodeTerm((Requirement("zone", "DoesNotExist"),)),))
    pods = [PodSpec("p", 1, 1, constraints=zone), PodSpec("big", 20_000, 1, constraints=zone)]
    result = run_in_rounds(nodes, pods)
    placed, big = explain(result, "p"), explain(result, "big")
    taint, selector = "untolerated taint {spot=yes:NoSchedule}", "node affinity/selector"
    assert (placed.node, placed.feasible) == ("a", 1)
    assert placed.reasons == {taint: 2, f"didn't match Pod's {selector}": 1}
    assert (big.feasible, big.reasons[CPU_SHORT], big.reasons[taint]) == (0, 1, 2)
    assert big.reason.startswith("0/4 nodes are available: 2 node(s) had untolerated taint")
    assert "is_bound" not in placed.as_object()
    assert "gang" not in placed.as_object()


def test_a_bound_pod_is_told_from_one_that_was_placed():
    runs = PodSpec("runs", 1000, 10, 1, 1000, node="a", gpu_slots=(1,))
    found = explain(run_in_rounds([NODE], [PodSpec("p", 1, 1), runs]), "runs")
    assert (found.node, found.gpu_slots, found.is_bound) == ("a", (1,), True)
    assert found.as_object()["is_bound"] is True
    assert not explain(run_in_rounds([NODE], [PodSpec("p", 1, 1), runs]), "p").is_bound


def test_a_pod_of_a_gang_tells_who_belongs_to_it():
    pods = [replace(gpu_pod(f"p{i}", 1), gang="g") for i in range(3)]
    workload = Workload.of(pods, gangs=[Gang("g", 2)])
    result = simulate(Cluster.of([NODE]), workload, load("first-fit"), Rounds())
    assert explain(result, "p0").gang == GangPlace("g", 3, 2, 2, "")
    waiting = Workload.of(pods, gangs=[Gang("g", 3, "rack")])
    result = simulate(Cluster.of([replace(NODE, rack="r")]), waiting, load("first-fit"), Rounds())
    found = explain(result, "p0")
    assert (found.node, found.gang) == ("", GangPlace("g", 3, 0, 3, "rack"))
    assert found.reason.startswith('no one rack holds gang "g" (2 of 3 pods found a node)')
    assert found.as_object()["gang"]["minimum"] == 3


def test_a_share_of_gpu_memory_is_scored_as_what_it_is_on_each_node():
    def smallest(pod, node):
        return -pod.gpu_milli

    nodes = [
        NodeSpec("small", 1000, 10, 1, "T4", gpu_memory_mib=16_000),
        NodeSpec("large", 1000, 10, 1, "A100", gpu_memory_mib=80_000),
        NodeSpec("tiny", 1000, 10, 1, "K80", gpu_memory_mib=4000),
    ]
    pod = PodSpec("p", 1, 1, 1, 1, gpu_memory_mib=8000)
    found = explain(run_in_rounds(nodes, [pod], policy=from_function(smallest)), "p")
    assert [(c.node, c.score) for c in found.candidates] == [("large", -100.0), ("small", -500.0)]
    assert found.reasons == {"not enough GPU memory": 1}


def test_an_unknown_pod_is_told_with_those_there_are():
    with pytest.raises(UnknownName, match='unknown pod "p9"') as caught:
        explain(three_pods(), "p9")
    assert caught.value.hint == "known: p0, p1, p2"


def test_a_pod_that_was_not_drawn_is_told_from_an_unknown_one():
    pods = [gpu_pod("drawn", 1), gpu_pod("left", 1)]
    result = run_in_order([NODE], pods, np.array([0]))
    assert explain(result, "drawn").node == "a"
    with pytest.raises(UsageError, match='"left" is in the trace, but was not drawn') as caught:
        explain(result, "left")
    assert "--seed" in caught.value.hint


def test_a_pod_is_explained_by_the_table_of_its_time():
    random = np.random.default_rng(6)
    cluster, workload = random_cluster(40, random), random_workload(200, random)
    setup = Setup(seed=1000, demand="seen")
    result = simulate(cluster, workload, "fgd", Rounds(), setup)
    known = simulate(cluster, workload, "fgd", Rounds(), replace(setup, demand="trace"))
    assert result.digest != known.digest
    for pod in np.flatnonzero(result.node >= 0).tolist()[::9]:
        found = explain(result, result.plan.arrivals.names[pod])
        assert found.candidates[0].score == max(each.score for each in found.candidates)
