"""The real kube-scheduler says which nodes are feasible."""

import pytest

from support.kube_api import KubeApiError, unschedulable
from support.manifests import bound, node, pod

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def near(kind, term):
    """Writes a required term of podAffinity or podAntiAffinity."""
    return {kind: {REQUIRED: [{"topologyKey": HOST, **term}]}}


def app(name):
    return {"labelSelector": {"matchLabels": {"app": name}}}


def test_a_pod_that_asks_for_little_may_run_on_every_node(oracle):
    assert oracle.feasible_nodes(pod("p"), [node("a"), node("b")]) == {"a", "b"}


def test_one_feasible_node_is_named_too(oracle):
    assert oracle.feasible_nodes(pod("p"), [node("a")]) == {"a"}


def test_bound_pods_take_room(oracle):
    cluster = [node("a"), node("b"), bound(pod("old", requests={"nvidia.com/gpu": "3"}), "a")]
    pending = [pod(f"p{gpus}", requests={"nvidia.com/gpu": str(gpus)}) for gpus in (1, 2, 4, 5)]
    verdicts = oracle.verdicts(pending, cluster)
    assert [set(each.nodes) for each in verdicts] == [{"a", "b"}, {"b"}, {"b"}, set()]
    assert "Insufficient nvidia.com/gpu" in verdicts[3].message


def test_a_pod_that_has_finished_takes_none(oracle):
    old = bound(pod("old", requests={"nvidia.com/gpu": "4"}), "a")
    asked = pod("p", requests={"nvidia.com/gpu": "4"})
    assert oracle.feasible_nodes(asked, [node("a"), old]) == set()
    finished = {**old, "status": {"phase": "Succeeded"}}
    assert oracle.feasible_nodes(asked, [node("a"), finished]) == {"a"}


def test_pods_that_are_judged_together_take_no_room_from_each_other(oracle):
    pending = [pod(f"p{i}", requests={"nvidia.com/gpu": "4"}) for i in range(3)]
    assert [set(each.nodes) for each in oracle.verdicts(pending, [node("a")])] == [{"a"}] * 3


def test_low_priorities_are_not_preempted(oracle):
    low = bound(pod("low", requests={"cpu": "8"}), "a")
    high = pod("high", requests={"cpu": "8"}, priorityClassName="system-cluster-critical")
    (verdict,) = oracle.verdicts([high], [node("a"), low])
    assert (verdict.nodes, "Insufficient cpu" in verdict.message) == (frozenset(), True)


def test_a_node_selector(oracle):
    cluster = [node("a", {"gpu": "a100"}), node("b", {"gpu": "t4"}), node("c")]
    assert oracle.feasible_nodes(pod("p", nodeSelector={"gpu": "t4"}), cluster) == {"b"}


def test_a_taint_and_its_toleration(oracle):
    taint = {"key": "reserved", "value": "ml", "effect": "NoSchedule"}
    soft = {"key": "reserved", "value": "ml", "effect": "PreferNoSchedule"}
    cluster = [node("a", taints=[taint]), node("b"), node("c", taints=[soft])]
    assert oracle.feasible_nodes(pod("p"), cluster) == {"b", "c"}
    tolerations = [{"key": "reserved", "operator": "Exists"}]
    assert oracle.feasible_nodes(pod("p", tolerations=tolerations), cluster) == {"a", "b", "c"}


def test_a_pod_that_tolerates_everything_sees_the_nodes_of_the_cluster_alone(oracle):
    everything = pod("p", tolerations=[{"operator": "Exists"}])
    cordoned = node("a", unschedulable=True)
    assert oracle.feasible_nodes(everything, [cordoned]) == {"a"}
    assert oracle.feasible_nodes(pod("p"), [cordoned]) == set()


def test_anti_affinity_of_the_pod_and_of_pods_that_run(oracle):
    cluster = [node("a"), node("b"), bound(pod("old", labels={"app": "web"}), "a")]
    lonely = pod("p", affinity=near("podAntiAffinity", app("web")))
    assert oracle.feasible_nodes(lonely, cluster) == {"b"}
    guarded = bound(pod("old", affinity=near("podAntiAffinity", app("web"))), "b")
    cluster = [node("a"), node("b"), guarded]
    assert oracle.feasible_nodes(pod("p", labels={"app": "web"}), cluster) == {"a"}


def test_affinity_reaches_into_namespaces_by_their_labels(oracle):
    term = {**app("web"), "namespaceSelector": {"matchLabels": {"team": "ml"}}}
    asked = pod("p", affinity=near("podAffinity", term))
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}
    cluster = [node("a"), node("b"), bound(pod("old", {"app": "web"}, namespace="training"), "b")]
    for labels, expected in (({"team": "ml"}, {"b"}), ({}, set()), ({"team": "ml"}, {"b"})):
        labelled = {**team, "metadata": {**team["metadata"], "labels": labels}}
        assert oracle.feasible_nodes(asked, [labelled, *cluster]) == expected
    assert oracle.feasible_nodes(asked, cluster) == set()


def test_topology_spread_over_zones(oracle):
    nodes = [node("a1", {ZONE: "a"}), node("a2", {ZONE: "a"}), node("b1", {ZONE: "b"}), node("c")]
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", **app("w")}
    asked = pod("p", {"app": "w"}, topologySpreadConstraints=[spread])
    assert oracle.feasible_nodes(asked, nodes) == {"a1", "a2", "b1"}
    running = bound(pod("old", {"app": "w"}), "a1")
    assert oracle.feasible_nodes(asked, [*nodes, running]) == {"b1"}
    # One that is being deleted no longer counts.
    leaving = {
        **running,
        "metadata": {**running["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"},
    }
    assert oracle.feasible_nodes(asked, [*nodes, leaving]) == {"a1", "a2", "b1"}


def test_worlds_that_alternate_leave_nothing_behind(oracle):
    """The same names mean other things from world to world, and no answer comes from the last."""
    asked = pod("p", requests={"cpu": "8"}, nodeSelector={"gpu": "t4"})
    for turn in range(20):
        kinds = ("t4", "a100") if turn % 2 else ("a100", "t4")
        nodes = [node(name, {"gpu": kind}) for name, kind in zip("ab", kinds, strict=True)]
        free, taken = ("a", "b") if turn % 2 else ("b", "a")
        assert oracle.feasible_nodes(asked, [*nodes, bound(pod("x"), taken)]) == {free}
        full = bound(pod("x", requests={"cpu": "1"}), free)
        assert oracle.feasible_nodes(asked, [*nodes, full]) == set()


def test_a_cluster_with_a_pod_that_is_not_bound_is_refused(oracle):
    with pytest.raises(ValueError, match="pod stray of the cluster has no nodeName"):
        oracle.feasible_nodes(pod("p"), [node("a"), pod("stray")])


def test_a_cluster_that_is_refused_leaves_nothing_to_the_next(oracle):
    invalid = node("c", taints=[{"key": "reserved", "effect": "Never"}])
    with pytest.raises(KubeApiError, match="answered with 422"):
        oracle.feasible_nodes(pod("p"), [invalid, node("a"), node("b")])
    assert oracle.feasible_nodes(pod("p"), [node("a")]) == {"a"}


def test_nothing_is_left_in_the_cluster(oracle, plane):
    oracle.feasible_nodes(pod("p"), [node("a"), bound(pod("old"), "a")])
    assert [each["metadata"]["name"] for each in plane.api.nodes()] == ["feasibility-sentinel"]
    assert plane.api.pods("default") == []
    assert not any(unschedulable(each) for each in plane.api.pods())
