import asyncio
import json
import random
from collections import Counter

import pytest

from podium.policies import HOLD
from podium.policies.policy import from_function
from podium.service.extender.wire import NEUTRAL, BindingArgs
from support.extender import Asked, args, points
from support.kubelike import gpu_node, gpu_pod, live

NODES = [gpu_node(name) for name in "abc"]
BINDING = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "b"}


def patient(pod, node):
    """Holds pods until a node of its liking is there."""
    return HOLD if node.gpu_count == 4 and pod.gpu_count > 0 else 0.0


def failing(_pod, node):
    raise ValueError(node.gpu_count)


class Failing:
    def __call__(self, pod, node):
        return failing(pod, node)


# What falls open.


@pytest.mark.parametrize("body", [b"", b"{", b"null", b'{"NodeNames": ["a"]}'])
def test_a_body_that_cannot_be_read_prefers_no_node(body):
    asked = Asked(NODES)
    assert asked.verbs.prioritize(body) == b"[]"
    assert asked.counted("neutral_total") == {("prioritize", "malformed"): 1}


def test_whole_nodes_are_answered_as_names_are():
    asked = Asked(NODES)
    pod = asked.wait(gpu_pod("p"), "u")
    body = json.dumps({"Pod": pod, "Nodes": {"items": NODES}, "NodeNames": None}).encode()
    assert points(asked.verbs.prioritize(body), "abc") == asked.prioritize(pod)


def test_a_pod_that_cannot_be_modelled_prefers_no_node_and_is_named_once():
    asked = Asked(NODES)
    odd = live(gpu_pod("odd"), "u")
    odd["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "many"
    for _ in range(3):
        assert asked.prioritize(odd) == {"a": 0, "b": 0, "c": 0}
    assert asked.counted("neutral_total") == {("prioritize", "unmodelled"): 3}
    (line,) = asked.logged()
    assert line["message"] == "no node is preferred"
    assert "default/odd" in line["problem"]
    assert "cpu" in line["problem"]


def test_before_the_cluster_is_known_no_node_is_preferred():
    asked = Asked(NODES)
    asked.verbs.prioritizer = None
    assert asked.prioritize(live(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
    assert asked.counted("neutral_total") == {("prioritize", "not-ready"): 1}


def test_a_state_that_is_too_old_is_not_scored():
    asked = Asked(NODES)
    asked.verbs.is_stale = lambda: True
    assert asked.prioritize(live(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
    assert asked.counted("neutral_total") == {("prioritize", "stale"): 1}


def test_nodes_that_nobody_knows_are_not_scored():
    asked = Asked(NODES)
    assert asked.prioritize(asked.wait(gpu_pod("p"), "u"), ["x", "y"]) == {"x": 0, "y": 0}
    assert asked.counted("neutral_total") == {("prioritize", "unknown-nodes"): 1}


def test_a_policy_that_fails_prefers_no_node():
    asked = Asked(NODES, policy=from_function(Failing()))
    assert asked.prioritize(asked.wait(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
    assert asked.counted("neutral_total") == {("prioritize", "policy"): 1}


def test_a_bug_prefers_no_node_and_is_logged(monkeypatch):
    asked = Asked(NODES)
    monkeypatch.setattr(asked.verbs.prioritizer, "decide", lambda _args: 1 / 0)
    assert asked.prioritize(live(gpu_pod("p"), "u")) == {"a": 0, "b": 0, "c": 0}
    assert asked.counted("neutral_total") == {("prioritize", "bug"): 1}
    assert "ZeroDivisionError" in str(asked.logged()[0])


# The filter.


def test_the_filter_counts_parts_of_gpus_which_kube_scheduler_does_not():
    asked = Asked([gpu_node("a", 1), gpu_node("b", 1)])
    share = {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "600"}
    asked.state.apply("Pod", "ADDED", live(gpu_pod("old", 0, share), "o", "a"))
    assert asked.filter(asked.wait(gpu_pod("p", 0, share), "u")) == (
        ["b"],
        {"a": "not enough free GPUs"},
    )


def test_a_pod_that_the_policy_holds_fits_nowhere_for_a_while(monkeypatch):
    asked = Asked(NODES, policy=from_function(patient), max_hold_s=60)
    now_s = [100.0]
    monkeypatch.setattr("podium.service.extender.verbs.time.monotonic", lambda: now_s[0])
    pod = asked.wait(gpu_pod("p"), "u")
    assert asked.filter(pod) == ([], dict.fromkeys("abc", "refused by the policy"))
    now_s[0] += 59
    assert asked.filter(pod)[0] == []
    assert asked.counted("held_total") == {(): 2}
    now_s[0] += 2
    assert asked.filter(pod) == (["a", "b", "c"], {})
    assert asked.counted("held_total") == {(): 2}


def test_invented_pods_are_held_in_bounded_number_and_the_first_ones_go_on(monkeypatch):
    monkeypatch.setattr("podium.service.extender.verbs.MOST_HELD", 2)
    asked = Asked(NODES, policy=from_function(patient), max_hold_s=60)
    kept = [len(asked.filter(gpu_pod(name) | {"metadata": {"name": name, "uid": name}})[0])
            for name in ("p", "q", "r", "p")]  # fmt: skip
    assert kept == [0, 0, 3, 0]
    assert set(asked.memory.held_since_s) == {"p", "q"}


def test_a_node_that_the_policy_refuses_is_removed_where_others_stay():
    asked = Asked([*NODES, gpu_node("z", 2)], policy=from_function(patient))
    kept, refused = asked.filter(asked.wait(gpu_pod("p"), "u"))
    assert (kept, set(refused)) == (["z"], {"a", "b", "c"})


def test_a_single_node_that_stays_is_assumed_since_nobody_will_ask_for_its_score():
    asked = Asked([gpu_node("a"), gpu_node("b", 1)])
    asked.filter(asked.wait(gpu_pod("p", 4), "u"))
    assert asked.verbs.prioritizer.assumed.get("u").node == "a"


def test_several_nodes_that_stay_are_not_assumed_yet():
    asked = Asked(NODES)
    asked.filter(asked.wait(gpu_pod("p"), "u"))
    assert asked.verbs.prioritizer.assumed.get("u") is None


def test_invented_pods_do_not_make_the_filter_refuse_nodes():
    asked = Asked(NODES)
    for number in range(30):
        asked.prioritize(live(gpu_pod(f"invented{number}", 4), f"i{number}"))
    assert asked.filter(asked.wait(gpu_pod("p", 4), "u")) == (["a", "b", "c"], {})


def test_pods_of_a_burst_count_for_the_filter_once_the_watch_shows_them():
    asked = Asked(NODES)
    early = live(gpu_pod("early", 4), "e")
    best = asked.best(early)
    # The watch lags: for scores the pod counts at once.
    assert asked.prioritize(live(gpu_pod("next", 4), "n"))[best] == 0
    asked.wait(gpu_pod("early", 4), "e")
    assert asked.filter(asked.wait(gpu_pod("p", 4), "u"))[1] == {best: "not enough free GPUs"}


def test_so_many_pods_that_the_watch_does_not_show_are_assumed_and_no_more():
    asked = Asked([gpu_node(f"n{number}") for number in range(20)])
    for number in range(120):
        asked.prioritize(live(gpu_pod(f"invented{number}", 0), f"i{number}"))
    assert len(asked.verbs.prioritizer.assumed) == 100
    asked.prioritize(asked.wait(gpu_pod("p"), "u"))
    assert asked.verbs.prioritizer.assumed.get("u") is not None


def test_the_filter_falls_open_too():
    asked = Asked(NODES)
    asked.verbs.prioritizer = None
    assert asked.filter(live(gpu_pod("p"), "u"), "abc") == (["a", "b", "c"], {})
    assert json.loads(asked.verbs.filter(b"{"))["Error"]
    assert set(asked.counted("neutral_total")) == {("filter", "not-ready"), ("filter", "malformed")}


# Binding.


class Binder:
    def __init__(self, problem=""):
        self.problem = problem
        self.bound = []

    async def __call__(self, args, slots):
        self.bound.append((args, slots))
        return self.problem


def bind(asked, sent=BINDING):
    return json.loads(asyncio.run(asked.verbs.bind(json.dumps(sent).encode())))


def test_a_pod_is_bound_with_the_gpus_that_were_chosen():
    asked = Asked(NODES)
    asked.verbs.bind_pod = binder = Binder()
    asked.state.apply("Pod", "ADDED", live(gpu_pod("old", 2), "o", "b"))
    assert asked.best(asked.wait(gpu_pod("p", 2), "u")) == "b"
    assert bind(asked) == {"Error": ""}
    assert binder.bound == [(BindingArgs("p", "default", "u", "b"), (2, 3))]


def test_a_pod_that_goes_elsewhere_gets_gpus_there():
    asked = Asked(NODES)
    asked.verbs.bind_pod = binder = Binder()
    asked.best(asked.wait(gpu_pod("p", 2), "u"))
    bind(asked)
    assert binder.bound[0][1] == (0, 1)


def test_what_goes_wrong_is_answered_so_that_kube_scheduler_tries_again():
    asked = Asked(NODES)
    assert bind(asked)["Error"]
    asked.wait(gpu_pod("p"), "u")
    asked.verbs.bind_pod = Binder("the pod is gone")
    assert bind(asked) == {"Error": "the pod is gone"}
    assert bind(asked, {})["Error"]


def test_gpus_are_given_to_the_pod_that_is_bound_first():
    """Both were scored when the node was free, and other plugins sent both there."""
    asked = Asked([gpu_node("a", 1), gpu_node("b", 1)], policy="first-fit", filter=True)
    asked.verbs.bind_pod = binder = Binder()
    for uid in ("u", "v"):
        asked.prioritize(asked.wait(gpu_pod(uid), uid))
    assert bind(asked, {**BINDING, "PodName": "u", "PodUID": "u", "Node": "b"}) == {"Error": ""}
    refused = bind(asked, {**BINDING, "PodName": "v", "PodUID": "v", "Node": "b"})
    assert refused == {"Error": "other pods have taken the GPUs of node b meanwhile"}
    assert bind(asked, {**BINDING, "PodName": "v", "PodUID": "v", "Node": "a"}) == {"Error": ""}
    assert [(args.node, slots) for args, slots in binder.bound] == [("b", (0,)), ("a", (0,))]


@pytest.mark.parametrize("is_scored", [True, False])
def test_no_pod_with_gpus_is_bound_to_a_node_that_is_not_known(is_scored):
    asked = Asked([gpu_node("a", 1), gpu_node("b", 1)], filter=True)
    asked.verbs.bind_pod = binder = Binder()
    pod = asked.wait(gpu_pod("p"), "u")
    if is_scored:
        asked.prioritize(pod)
    asked.state.apply("Node", "DELETED", gpu_node("b", 1))
    assert "nothing is known of the GPUs of node b" in bind(asked)["Error"]
    assert binder.bound == []
    asked.wait(gpu_pod("c", 0), "c")
    assert bind(asked, {**BINDING, "PodName": "c", "PodUID": "c"}) == {"Error": ""}


def test_without_the_filter_a_pod_is_bound_to_a_node_that_is_not_known():
    asked = Asked([gpu_node("a", 1)])
    asked.verbs.bind_pod = binder = Binder()
    asked.wait(gpu_pod("p"), "u")
    assert bind(asked) == {"Error": ""}
    assert binder.bound[0][1] == ()


@pytest.mark.parametrize("seed", range(3))
def test_no_gpu_is_given_out_twice_while_pods_come_and_go(seed):
    """What was noted on a pod counts for as long as the pod is there, and nothing else does."""
    rng = random.Random(seed)
    asked = Asked([gpu_node(name, 3) for name in "ab"], policy="fed-gpu", filter=True)
    asked.verbs.bind_pod = binder = Binder()
    running = {}
    for number in range(60):
        uid = f"p{rng.randrange(1000):03}-{number}"
        milli = rng.choice([1000, 1000, 300, 600])
        pod = gpu_pod(uid, 1) if milli == 1000 else gpu_pod(uid, 0, share(milli))
        kept, _ = asked.filter(asked.wait(pod, uid))
        if (
            kept
            and not bind(asked, BINDING | {"PodName": uid, "PodUID": uid, "Node": kept[0]})["Error"]
        ):
            (slot,) = binder.bound[-1][1]
            pod["metadata"]["annotations"]["alibabacloud.com/gpu-index"] = str(slot)
            asked.state.apply("Pod", "MODIFIED", live(pod, uid, kept[0]))
            running[uid] = pod, kept[0], slot, milli
        used = Counter()
        for _, *gpu, milli in running.values():
            used[tuple(gpu)] += milli
        assert max(used.values()) <= 1000
        if len(running) > 5:
            uid = rng.choice(list(running))
            made, node, *_ = running.pop(uid)
            asked.state.apply("Pod", "DELETED", live(made, uid, node))
    assert len(binder.bound) > 40


def share(milli):
    return {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": str(milli)}


def test_a_pod_that_was_filtered_and_never_scored_is_given_gpus():
    asked = Asked([gpu_node("a"), gpu_node("b")], policy="first-fit", filter=True)
    asked.verbs.bind_pod = binder = Binder()
    asked.wait(gpu_pod("p", 2), "u")
    assert bind(asked) == {"Error": ""}
    assert binder.bound[0][1] == (0, 1)
    assert asked.verbs.prioritizer.assumed.get("u").node == "b"


def test_a_pod_that_could_not_be_bound_is_assumed_nowhere():
    asked = Asked([gpu_node("a"), gpu_node("b")], policy="first-fit")
    asked.verbs.bind_pod = Binder("the pod is gone")
    asked.prioritize(asked.wait(gpu_pod("p"), "u"))
    bind(asked)
    assert asked.verbs.prioritizer.assumed.get("u") is None


@pytest.mark.parametrize(
    "changed",
    [{"PodName": "../nodes/n1/proxy/run?x=#"}, {"PodName": "p/../../q"}, {"PodName": "p%2F"},
     {"PodName": ""}, {"PodName": "p."}, {"PodName": "p\n"}, {"PodName": "a" * 254},
     {"PodNamespace": "../.."}, {"PodNamespace": "a.b"}, {"PodNamespace": ""}, {"Node": "b?"}],
)  # fmt: skip
def test_what_is_no_name_never_reaches_the_api_server(changed):
    asked = Asked(NODES)
    asked.verbs.bind_pod = binder = Binder()
    asked.wait(gpu_pod("p"), "u")
    assert bind(asked, BINDING | changed)["Error"]
    assert binder.bound == []


@pytest.mark.parametrize(
    "changed", [{"PodUID": "other"}, {"PodName": "other"}, {"PodNamespace": "other"}]
)
def test_only_a_pod_that_the_watch_shows_is_bound(changed):
    asked = Asked(NODES)
    asked.verbs.bind_pod = binder = Binder()
    asked.wait(gpu_pod("p"), "u")
    assert "not found" in bind(asked, BINDING | changed)["Error"]
    assert binder.bound == []


def test_a_pod_that_runs_already_is_not_bound_again():
    asked = Asked(NODES)
    asked.verbs.bind_pod = binder = Binder()
    asked.bind(asked.wait(gpu_pod("p"), "u"), "a")
    assert "waits for no node" in bind(asked)["Error"]
    assert binder.bound == []


# What is counted and remembered.


def test_binds_are_compared_with_the_best_node():
    asked = Asked(NODES)
    first, second = (asked.wait(gpu_pod(f"p{i}"), f"u{i}") for i in range(2))
    asked.bind(first, asked.best(first))
    asked.best(second)
    asked.bind(second, "c")
    asked.bind(asked.wait(gpu_pod("unasked"), "x"), "a")
    assert asked.counted("binds_total") == {("best",): 1, ("other",): 1}


def test_shadows_score_alongside_without_effect():
    plain = Asked(NODES, policy="best-fit")
    asked = Asked(NODES, policy="best-fit", shadow=("worst-fit", "first-fit"))
    for each in (plain, asked):
        each.state.apply("Pod", "ADDED", live(gpu_pod("old"), "o", "a"))
    pod = asked.wait(gpu_pod("p"), "u")
    assert asked.prioritize(pod) == plain.prioritize(pod)
    assert asked.counted("shadow_total") == {("worst-fit", "other"): 1, ("first-fit", "same"): 1}
    assert asked.memory.history.of("u").shadow == {"worst-fit": "b", "first-fit": "a"}


def test_answers_are_timed_by_verb():
    asked = Asked(NODES)
    asked.prioritize(asked.wait(gpu_pod("p"), "u"))
    assert asked.counted("duration_seconds_count")[("prioritize",)] == 1


def test_pods_that_were_scored_are_the_demand():
    asked = Asked(NODES)
    for number in range(3):
        pod = asked.wait(gpu_pod(f"p{number}", 1 + number % 2), f"u{number}")
        asked.prioritize(pod)
        asked.prioritize(pod)
    shapes = asked.memory.recent.shapes(asked.state.gpu_kinds)
    assert sorted(zip(shapes.pods["gpu_count"].tolist(), shapes.weights.tolist(), strict=True)) == [
        (1, 2.0),
        (2, 1.0),
    ]


def test_args_are_written_as_kube_scheduler_writes_them():
    assert json.loads(args({}, "ab")) == {"Pod": {}, "Nodes": None, "NodeNames": ["a", "b"]}


def test_pods_that_the_watch_has_not_shown_yet_are_each_part_of_the_demand():
    asked = Asked(NODES)
    for number in range(3):
        asked.prioritize(live(gpu_pod(f"p{number}"), f"u{number}"))
    assert len(asked.memory.recent) == 3


# What is logged.


def odd_pod(name, text="many"):
    made = gpu_pod(name)
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = text
    return made


def test_a_problem_is_logged_in_few_words_however_many_it_has():
    asked = Asked(NODES)
    asked.prioritize(live(odd_pod("p", "x" * 1_000_000), "u"))
    asked.prioritize(asked.wait(odd_pod("q", "x" * 1_000_000), "v"))
    asked.state.apply("Node", "ADDED", gpu_node("odd", 1) | {"status": {"capacity": "x" * 99_999}})
    assert all(len(str(line)) < 1000 for line in asked.logged())
    assert all(len(text) + len(who) < 1500 for text, who in asked.state.notes.items())


def test_a_pod_that_is_there_is_logged_after_thousands_that_were_invented():
    asked = Asked(NODES)
    for number in range(1500):
        asked.prioritize(live(odd_pod(f"invented{number}"), f"i{number}"))
    assert len(asked.memory.named) == 1000
    asked.prioritize(asked.wait(odd_pod("real"), "u"))
    lines = [line for line in asked.logged() if line["message"] == "no node is preferred"]
    assert len(lines) < 50
    assert "default/real" in lines[-1]["problem"]


def test_where_podium_binds_the_filter_keeps_gpu_pods_off_nodes_that_it_cannot_model():
    nodes = [*NODES, gpu_node("large", 32)]
    names = ["a", "large"]
    binding, counting = Asked(nodes, filter=True, bind=True), Asked(nodes, filter=True)
    assert counting.filter(counting.wait(gpu_pod("p"), "u"), names) == (names, {})
    kept, refused = binding.filter(binding.wait(gpu_pod("p"), "u"), names)
    assert (kept, list(refused)) == (["a"], ["large"])
    assert binding.filter(binding.wait(gpu_pod("q", 0), "v"), names) == (names, {})


@pytest.mark.parametrize("odd", [(b'"1Gi"', b"1" * 5000), (b'"memory"', b'"\xff"')])
def test_what_cannot_be_read_is_no_fault_of_ours(odd):
    asked = Asked(NODES)
    body = args(live(gpu_pod("p"), "u"), "abc").replace(*odd)
    assert asked.verbs.prioritize(body) == NEUTRAL
    (line,) = asked.logged()
    assert line["reason"] == "unmodelled"
