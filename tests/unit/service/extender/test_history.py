from podium.policies import HOLD
from podium.policies.policy import from_function
from podium.service.extender.history import FILTERED, UNKNOWN, History
from support.extender import Asked
from support.kubelike import gpu_node, gpu_pod, live
from support.scheduler_configs import scoring, write_config

NODES = [gpu_node("a"), gpu_node("b"), gpu_node("c", 1), gpu_node("d", 4, "T4")]


def explain(asked, name="p"):
    return asked.memory.history.get("default", name).as_object()


def test_a_decision_is_explained_with_scores_and_the_runner_up():
    asked = Asked(NODES, shadow=("worst-fit",))
    asked.state.apply("Pod", "ADDED", live(gpu_pod("old"), "o", "b"))
    asked.prioritize(asked.wait(gpu_pod("p", 2), "u"), ["a", "b"])
    told = explain(asked)
    assert (told["best"], told["runner_up"], told["node"], told["bound_to"]) == ("b", "a", "", "")
    assert (told["pod"], told["namespace"], told["uid"]) == ("p", "default", "u")
    assert (told["policy"], told["feasible"], told["calls"]) == ("best-fit", 2, 1)
    assert told["points"] == {"b": 1000, "a": 999}
    assert told["gpu_slots"] == (1, 2)
    assert told["request"] == {
        "cpu_milli": 1000, "memory_mib": 1024, "gpu_count": 2, "gpu_milli": 1000,
    }  # fmt: skip
    best = told["candidates"][0]
    assert (best["node"], best["is_chosen"], best["cpu_milli_left"]) == ("b", True, 7000)
    assert best["gpu_milli_left"] == (0, 1000, 1000, 1000)
    assert best["score"] > told["candidates"][1]["score"]
    assert told["shadow"] == {"worst-fit": "a"}


def test_other_nodes_are_counted_by_what_they_lack():
    asked = Asked(NODES)
    asked.prioritize(asked.wait(gpu_pod("p", 2), "u"), ["a"])
    assert explain(asked)["reasons"] == {FILTERED: 2, "not enough free GPUs": 1}


def test_where_a_pod_went_is_told():
    asked = Asked(NODES)
    pod = asked.wait(gpu_pod("p"), "u")
    asked.prioritize(pod)
    asked.prioritize(pod)
    asked.bind(pod, "a")
    told = explain(asked)
    assert (told["node"], told["bound_to"], told["calls"]) == ("a", "a", 2)
    assert [each["node"] for each in told["candidates"] if each["is_chosen"]] == ["a"]


def test_a_pod_without_room_says_so():
    asked = Asked(NODES)
    asked.prioritize(asked.wait(gpu_pod("p", 8), "u"), ["a"])
    told = explain(asked)
    assert (told["best"], told["reason"]) == ("", "no room on any node that was asked about")
    assert told["candidates"][0]["score"] is None


def test_a_pod_that_the_filter_holds_says_so():
    asked = Asked(NODES, policy=from_function(refusing))
    assert asked.filter(asked.wait(gpu_pod("p"), "u"))[0] == []
    told = explain(asked)
    assert (told["best"], told["reason"]) == ("", "refused by the policy")


def refusing(pod, node):
    return HOLD if node.gpu_count >= pod.gpu_count else 0.0


def test_so_many_pods_are_remembered_and_no_more():
    asked = Asked(NODES, recent_pods=2)
    for number in range(3):
        asked.prioritize(asked.wait(gpu_pod(f"p{number}"), f"u{number}"))
    history = asked.memory.history
    assert history.get("default", "p0") is None
    assert history.of("u0") is None
    assert [history.of(uid).decision.pod.name for uid in ("u1", "u2")] == ["p1", "p2"]


def test_a_new_pod_of_the_same_name_is_another_one():
    asked = Asked(NODES)
    asked.prioritize(asked.wait(gpu_pod("p"), "u"))
    asked.state.apply("Pod", "DELETED", live(gpu_pod("p"), "u"))
    asked.prioritize(asked.wait(gpu_pod("p"), "v"))
    assert (explain(asked)["uid"], explain(asked)["calls"]) == ("v", 1)
    assert asked.memory.history.of("u") is None


def test_nothing_is_known_of_a_pod_that_nobody_asked_about():
    assert History(5).get("default", "p") is None


def test_nodes_without_points_are_counted_by_what_is_against_them():
    asked = Asked(NODES)
    asked.prioritize(asked.wait(gpu_pod("p", 2), "u"), ["a", "b", "c", "new"])
    assert explain(asked)["without_points"] == {"not enough free GPUs": 1}
    asked.prioritize(asked.wait(gpu_pod("s", 2), "x"), ["c", "new"])
    assert explain(asked, "s")["without_points"] == {"not enough free GPUs": 1, UNKNOWN: 1}
    asked.prioritize(asked.wait(gpu_pod("r", 2), "w"), ["b", "c"])
    assert (explain(asked, "r")["best"], explain(asked, "r")["runner_up"]) == ("b", "")
    asked.prioritize(asked.wait(gpu_pod("q"), "v"), ["a", "b"])
    assert "without_points" not in explain(asked, "q")
    patient = Asked(NODES, policy=from_function(refusing))
    patient.prioritize(patient.wait(gpu_pod("p"), "u"), ["a", "b"])
    assert explain(patient)["without_points"] == {"refused by the policy": 2}


def test_the_terms_of_scores_are_told_where_a_policy_has_some():
    asked = Asked(NODES, policy="fed-gpu")
    asked.prioritize(asked.wait(gpu_pod("p", 2), "u"), ["a", "b", "c", "d"])
    told = explain(asked)
    scores = {each["node"]: each["score"] for each in told["candidates"]}
    assert scores["c"] is None  # it has one GPU
    assert set(told["terms"]) == {"a", "b", "d"}
    for node, terms in told["terms"].items():
        assert list(terms) == ["gpu_weight", "gpu_steps"]
        assert sum(terms.values()) == scores[node]
    plain = Asked(NODES)
    plain.prioritize(plain.wait(gpu_pod("p"), "u"))
    assert "terms" not in explain(plain)


def test_terms_of_plugins_compare_the_nodes_that_were_offered(tmp_path):
    plugins = scoring(("Simon", 1), ("BestFitScore", 2))
    asked = Asked(NODES, policy=str(write_config(tmp_path, plugins)))
    asked.state.apply("Pod", "ADDED", live(gpu_pod("old"), "o", "b"))
    asked.prioritize(asked.wait(gpu_pod("p"), "u"), ["d", "b", "a"])
    told = explain(asked)
    scores = {each["node"]: each["score"] for each in told["candidates"]}
    assert {node: sum(terms.values()) for node, terms in told["terms"].items()} == scores
    assert list(told["terms"]["b"]) == ["Simon", "BestFitScore"]
    assert told["terms"]["b"]["BestFitScore"] == 200


# What callers cannot fill the memory with.


def test_names_that_nobody_knows_and_names_that_come_twice_are_not_kept():
    asked = Asked(NODES)
    names = [f"invented-{number}" for number in range(5000)] + ["a", "b"] * 2000
    asked.prioritize(asked.wait(gpu_pod("p"), "u"), names)
    decision = asked.memory.history.of("u").decision
    assert set(decision.node_names) >= {"a", "b"}
    assert len(decision.node_names) == len(decision.at) == len(decision.points) == 12
    assert decision.best_node == explain(asked)["best"] == "a"


def test_what_is_remembered_has_a_bound_in_bytes():
    asked = Asked(NODES)
    asked.memory.history = history = History(100, most_bytes=1000)
    for number in range(20):
        asked.prioritize(asked.wait(gpu_pod(f"p{number}"), f"u{number}"))
    kept = [number for number in range(20) if history.of(f"u{number}")]
    assert kept == list(range(20 - len(kept), 20))
    assert 1 <= len(kept) <= 1000 // asked.state.nodes.nbytes


def test_decisions_about_one_state_share_its_nodes():
    asked = Asked(NODES, assume_s=1e-9)
    pods = [asked.wait(gpu_pod(f"p{number}"), f"u{number}") for number in range(2)]
    for pod in pods:
        asked.prioritize(pod)
        asked.clock.now_s += 1
    one, other = (asked.memory.history.of(f"u{number}").decision.nodes for number in range(2))
    assert one is other
    asked.bind(pods[0], "a")
    asked.prioritize(pods[1])
    assert asked.memory.history.of("u1").decision.nodes is not one
