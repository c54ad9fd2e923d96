import numpy as np
import pytest

from podium.kube import LiveState
from podium.policies import load
from podium.policies.policy import from_function
from support.extender import Asked
from support.kubelike import gpu_node, gpu_pod, live

NODES = [gpu_node(name) for name in "abc"]
SHARE = {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "400"}


def test_the_order_of_nodes_is_that_of_the_policy():
    asked = Asked(NODES)
    for gpus, node in ((1, "b"), (3, "c")):
        asked.state.apply("Pod", "ADDED", live(gpu_pod(f"old-{node}", gpus), f"u-{node}", node))
    assert asked.prioritize(asked.wait(gpu_pod("p"), "u")) == {"c": 1000, "b": 999, "a": 998}


def test_ties_go_by_name_in_whatever_order_nodes_came_or_are_asked_about():
    asked = Asked([gpu_node(name) for name in ("n3", "n1", "n2")], policy="first-fit")
    pod = asked.wait(gpu_pod("p"), "u")
    assert asked.prioritize(pod, ["n2", "n3", "n1"]) == {"n1": 1000, "n2": 999, "n3": 998}
    asked.state.apply("Node", "DELETED", gpu_node("n1"))
    asked.state.apply("Node", "ADDED", gpu_node("n9"))
    assert asked.prioritize(pod) == {"n2": 1000, "n3": 999, "n9": 998}


def test_nodes_that_score_alike_have_equal_points_whatever_their_names():
    asked = Asked([*NODES, gpu_node("d", 8)], ties="equal")
    found = asked.prioritize(asked.wait(gpu_pod("p"), "u"))
    assert found["a"] == found["b"] == found["c"] > found["d"]
    assert Asked(NODES, ties="equal").prioritize(gpu_pod("p")) == dict.fromkeys("abc", 0)


def test_nothing_is_assumed_where_kube_scheduler_draws():
    asked = Asked(NODES, policy="first-fit", ties="equal")
    pod = asked.wait(gpu_pod("p", 2), "u")
    asked.prioritize(pod)
    assert len(asked.verbs.prioritizer.assumed) == 0
    asked.bind(pod, "b")
    # Among equals, kube-scheduler packs: it takes the node that is in use.
    asked.prioritize(asked.wait(gpu_pod("q", 2), "v"))
    assert asked.verbs.prioritizer.assumed.get("v").node == "b"


BEST = dict.fromkeys("abc", 1000)


def test_every_point_counts_where_somebody_has_preferences():
    asked = Asked([*NODES, gpu_node("d", 8), gpu_node("far", 16)], ties="equal", decisive_points=1)
    pod = asked.wait(gpu_pod("p"), "u")
    assert asked.prioritize(pod) == {**BEST, "d": 999, "far": 999}
    soft = gpu_node("e", 8)
    soft["spec"] = {"taints": [{"key": "spot", "effect": "PreferNoSchedule"}]}
    asked.state.apply("Node", "ADDED", soft)
    assert asked.prioritize(pod) == {**BEST, "d": 999, "e": 999, "far": 998}
    asked.state.apply("Node", "DELETED", soft)
    assert asked.prioritize(pod)["far"] == 999
    choosy = gpu_pod("w")
    term = {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    choosy["spec"]["affinity"] = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
    }
    assert asked.prioritize(live(choosy, "w"))["far"] == 998
    assert asked.prioritize(asked.wait(choosy, "w"))["far"] == 998
    assert asked.verbs.prioritizer.assumed.get("w") is None
    # What another pod prefers of nodes says nothing about this one.
    assert asked.prioritize(pod)["far"] == 999


@pytest.mark.parametrize(("app", "points"), [("p", 998), ("other", 999)])
def test_who_would_rather_be_near_a_pod_prefers_it_as_well(app, points):
    asked = Asked([*NODES, gpu_node("d", 8), gpu_node("far", 16)], ties="equal", decisive_points=1)
    made = gpu_pod("p")
    made["metadata"]["labels"] = {"app": "p"}
    liking = gpu_pod("old")
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}}
    liking["spec"]["affinity"] = {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": term}
            ]
        }
    }
    old = live(liking, "o", "d")
    asked.state.apply("Pod", "ADDED", old)
    pod = asked.wait(made, "u")
    assert asked.prioritize(pod)["far"] == points
    asked.state.apply("Pod", "DELETED", old)
    assert asked.prioritize(pod)["far"] == 999


def test_only_nodes_that_were_asked_about_are_answered_in_their_order():
    asked = Asked(NODES)
    assert list(asked.prioritize(asked.wait(gpu_pod("p"), "u"), ["c", "a"])) == ["c", "a"]


def test_a_pod_that_the_watch_has_not_shown_yet_is_read_from_the_request():
    asked = Asked(NODES)
    assert asked.best(live(gpu_pod("p"), "u")) == "a"


@pytest.mark.parametrize("is_shown", [False, True], ids=["not-shown-yet", "32-gpus"])
def test_a_node_of_which_nothing_is_known_has_the_points_of_the_best(is_shown):
    """kube-scheduler's own scores decide: the node is not starved, nor does it always win."""
    asked = Asked([*NODES, *[gpu_node("new", 32)] * is_shown])
    pod = asked.wait(gpu_pod("p"), "u")
    assert asked.prioritize(pod, ["new", "b", "a"]) == {"new": 1000, "a": 1000, "b": 999}
    assert asked.verbs.prioritizer.assumed.get("u") is None  # it may go to either


def test_a_node_of_which_nothing_is_known_is_refused_where_all_others_are():
    asked = Asked(NODES)
    pod = asked.wait(gpu_pod("p", 5), "u")
    assert asked.prioritize(pod, ["new", "a"]) == {"new": 0, "a": 0}


def test_a_node_without_room_has_no_points():
    asked = Asked([*NODES, gpu_node("d", 1)])
    assert asked.prioritize(asked.wait(gpu_pod("p", 2), "u"))["d"] == 0


def test_pods_of_a_burst_are_scored_against_those_before_them():
    asked = Asked(NODES, policy="first-fit")
    pods = [asked.wait(gpu_pod(f"p{i}", 2), f"u{i}") for i in range(6)]
    assert [asked.best(pod) for pod in pods] == ["a", "a", "b", "b", "c", "c"]
    assert len(asked.verbs.prioritizer.assumed) == 6


def test_a_pod_that_is_scored_again_is_not_counted_twice():
    asked = Asked(NODES, policy="first-fit")
    pod = asked.wait(gpu_pod("p", 4), "u")
    assert [asked.best(pod) for _ in range(3)] == ["a", "a", "a"]
    assert asked.best(pod, ["b", "c"]) == "b"
    assert asked.best(asked.wait(gpu_pod("q", 4), "v")) == "a"


def test_what_is_assumed_ends_with_the_bind_or_with_time():
    asked = Asked(NODES, policy="first-fit")
    first, second, third = (asked.wait(gpu_pod(f"p{i}", 4), f"u{i}") for i in range(3))
    assert asked.best(first) == "a"
    asked.bind(first, "c")
    assert asked.best(second) == "a"
    asked.clock.now_s += asked.settings.assume_s
    assert asked.prioritize(third) == {"a": 1000, "b": 999, "c": 0}


def test_a_pod_that_is_deleted_is_assumed_no_longer():
    asked = Asked(NODES, policy="first-fit")
    first, second = (asked.wait(gpu_pod(f"p{i}", 4), f"u{i}") for i in range(2))
    asked.best(first)
    asked.state.apply("Pod", "DELETED", first)
    assert asked.best(second) == "a"


def test_shares_of_a_burst_go_to_the_gpu_that_the_policy_chose():
    asked = Asked([gpu_node("a", 1), gpu_node("b", 1)], policy="fgd")
    pods = [asked.wait(gpu_pod(f"p{i}", 0, SHARE), f"u{i}") for i in range(4)]
    best = [asked.best(pod) for pod in pods]
    assert sorted(best) == ["a", "a", "b", "b"]
    assert max(asked.prioritize(asked.wait(gpu_pod("p9", 0, SHARE), "u9")).values()) == 0


@pytest.mark.parametrize("policy", ["fgd", "fed-gpu", "best-fit", "worst-fit", "gpu-packing"])
def test_scores_are_those_of_the_policy_on_the_live_records(policy):
    asked = Asked([gpu_node(f"n{i}", 8) for i in range(12)], policy=policy)
    rng = np.random.default_rng(1)
    for number in range(30):
        milli = {"alibabacloud.com/gpu-count": "1",
                 "alibabacloud.com/gpu-milli": str(rng.integers(1, 10) * 100)}  # fmt: skip
        made = gpu_pod(f"old-{number}", 0, milli)
        asked.state.apply("Pod", "ADDED", live(made, f"o{number}", f"n{rng.integers(0, 12)}"))
    pod = asked.wait(gpu_pod("p", 0, SHARE), "u")
    found = asked.prioritize(pod)
    request = asked.state.request_of(asked.state.pod("u"))
    session = load(policy).session(asked.verbs.prioritizer.scorer.shapes)
    scores = session.scores(request.record, asked.state.nodes).scores
    order = sorted(asked.names, key=lambda name: (-scores[asked.state.index[name]], name))
    accepted = [name for name in order if scores[asked.state.index[name]] > -np.inf]
    assert [name for name in sorted(found, key=found.get, reverse=True) if found[name]] == accepted


def test_a_policy_that_holds_gives_no_points():
    def hold(pod, node):
        from podium.policies import HOLD

        return HOLD if node.gpu_count == 4 and pod.cpu_milli > 0 else 1.0

    asked = Asked([*NODES, gpu_node("z", 2)], policy=from_function(hold))
    assert asked.prioritize(asked.wait(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0, "z": 1000}


def test_a_memory_request_is_another_share_on_each_kind_of_gpu():
    small = gpu_node("small", 1, "T4", {"nvidia.com/gpu.memory": "16384"})
    large = gpu_node("large", 1, "A100", {"nvidia.com/gpu.memory": "81920"})
    asked = Asked([small, large])
    wanted = {**SHARE, "podium/gpu-memory-mib": "32768", "alibabacloud.com/gpu-milli": "1"}
    found = asked.prioritize(asked.wait(gpu_pod("p", 0, wanted), "u"))
    assert found == {"small": 0, "large": 1000}
    again = asked.prioritize(asked.wait(gpu_pod("q", 0, wanted), "v"))
    assert again == {"small": 0, "large": 1000}
    assert max(asked.prioritize(asked.wait(gpu_pod("r", 0, wanted), "w")).values()) == 0


def test_an_empty_cluster_is_no_reason_to_fail():
    asked = Asked([])
    assert asked.prioritize(live(gpu_pod("p"), "u"), []) == {}
    assert isinstance(asked.state, LiveState)


def test_a_pod_that_runs_already_is_assumed_nowhere():
    """As when a process that was stopped goes on and answers what it was asked before."""
    asked = Asked(NODES)
    pod = asked.wait(gpu_pod("p"), "u")
    asked.bind(pod, "b")
    asked.prioritize(pod)
    assert len(asked.verbs.prioritizer.assumed) == 0


def test_a_policy_that_sees_the_cluster_sees_the_nodes_asked_about_alone():
    asked = Asked([gpu_node(name) for name in ("n3", "n1", "n2")], policy="round-robin")
    pod = asked.wait(gpu_pod("p"), "u")
    best = [asked.best(pod, ["n3", "n2"]) for _ in range(3)]
    assert best == ["n2", "n3", "n2"]
    assert asked.best(pod, ["n1"]) == "n1"


def test_the_gpus_of_a_policy_that_sees_the_cluster_are_the_tightest():
    asked = Asked(NODES, policy="round-robin")
    pod = asked.wait(gpu_pod("p", 2), "u")
    asked.prioritize(pod)
    decision = asked.memory.history.of("u").decision
    chooser = asked.verbs.prioritizer
    assert (decision.best_node, chooser.claim("u", "c", decision)) == ("a", (0, 1))
    assert asked.best(asked.wait(gpu_pod("q"), "v")) == "b"


def test_a_table_is_prepared_for_the_pod_that_makes_it_due():
    asked = Asked(NODES, policy="fgd")
    asked.prioritize(asked.wait(gpu_pod("p", 2), "u"))
    assert asked.verbs.prioritizer.scorer.shapes.pods["gpu_count"].tolist() == [2]


def test_a_pod_that_fits_nowhere_is_not_recent():
    asked = Asked(NODES, policy="fgd")
    asked.prioritize(asked.wait(gpu_pod("p", 16), "u"))
    assert len(asked.memory.recent) == 0


def test_a_pod_that_fits_one_node_is_recent_but_not_scored():
    asked = Asked(NODES, policy="fgd", filter=True)
    before = asked.verbs.prioritizer.scorer.shapes
    asked.filter(asked.wait(gpu_pod("p"), "u"), asked.names[:1])
    assert len(asked.memory.recent) == 1
    assert asked.verbs.prioritizer.scorer.shapes is before


def test_pods_that_others_bind_are_recent():
    asked = Asked(NODES, policy="fgd")
    asked.bind(asked.wait(gpu_pod("p", 2), "u"), asked.names[0])
    asked.bind(asked.wait(gpu_pod("q", 1), "v"), asked.names[0])
    asked.state.apply("Pod", "DELETED", live(gpu_pod("p", 2), "u", asked.names[0]))
    assert len(asked.memory.recent) == 2
    asked.prioritize(asked.wait(gpu_pod("r", 4), "w"))
    shapes = asked.verbs.prioritizer.scorer.shapes
    assert shapes.pods["gpu_count"].tolist() == [2, 1, 4]


def test_a_table_that_cannot_be_prepared_prefers_no_node(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "def prepare(shapes):\n    return [1.0 / (2 - len(shapes))]\n\n\n"
        "def score(pod, node, table):\n    return table[0]\n"
    )
    asked = Asked(NODES, policy=str(file))
    assert max(asked.prioritize(asked.wait(gpu_pod("p", 1), "u")).values()) == 1000
    assert max(asked.prioritize(asked.wait(gpu_pod("q", 2), "v")).values()) == 0
    assert max(asked.prioritize(asked.wait(gpu_pod("r", 2), "v")).values()) == 1000
