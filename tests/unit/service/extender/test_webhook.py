import asyncio
import json

import pytest

from podium.service.extender.webhook import NODE_GPU_SHARE, Webhook
from podium.service.http.logs import Log
from podium.service.http.problem import Problem
from podium.settings import load_settings
from podium.traces.kubernetes.keys import GPU_CARD_MODEL, GPU_COUNT, GPU_MILLI

CPUS = {"cpu": "32", "memory": "128Gi"}


def node(name, gpus=2, used=None, **resources):
    """Writes a node as the simulator sends it; `used` is milli and pods by GPU."""
    allocatable = {**CPUS, **resources, GPU_COUNT: str(gpus), GPU_MILLI: str(1000 * gpus)}
    metadata = {"name": name, "labels": {GPU_CARD_MODEL: "T4"}}
    if used is not None:
        devices = {
            str(index): {"Idx": index, "PodList": pods, "GpuUsedMilli": milli}
            for index, (milli, pods) in enumerate(used)
        }
        metadata["annotations"] = {NODE_GPU_SHARE: json.dumps({"DevsBrief": devices})}
    return {"metadata": metadata, "status": {"allocatable": allocatable, "capacity": allocatable}}


def pod(name, cpu="4", memory="8Gi", milli=500, count=1):
    annotations = {GPU_COUNT: str(count), GPU_MILLI: str(milli)} if count else {}
    requests = {"cpu": cpu, "memory": memory}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    metadata = {"name": name, "namespace": "ml", "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": containers}}


@pytest.fixture
def webhook(tmp_path):
    return Hook(tmp_path)


class Hook:
    def __init__(self, folder, policy="best-fit"):
        settings = load_settings({"extender.policy": policy}, environ={}, folder=folder)
        self.log = Log((folder / "log").open("w"))
        self.component = Webhook(settings, self.log.logger)
        asyncio.run(self.component.start())

    def ask(self, pod, nodes):
        return self.send(json.dumps({"pod": pod, "nodes": nodes}).encode())

    def send(self, body):
        found = json.loads(self.component.score(body))
        assert list(found) == ["scores"]
        assert all(type(each) is int and 0 <= each <= 100 for each in found["scores"].values())
        return found["scores"]


def test_every_node_has_a_whole_score_and_one_is_best(webhook):
    scores = webhook.ask(pod("p"), [node("a", cpu="64"), node("b")])
    assert scores == {"b": 100, "a": 99}


def test_scores_follow_what_is_left_of_gpus(webhook):
    nodes = [node("a", used=[(700, ["ml:x"]), (0, [])]), node("b", used=[(0, []), (0, [])])]
    assert webhook.ask(pod("p", milli=1000, count=2), nodes) == {"a": 0, "b": 100}


def test_scores_follow_what_pods_took_that_were_told_of(webhook):
    nodes = [node("a", cpu="8"), node("b", cpu="8")]
    webhook.ask(pod("first", cpu="6"), nodes)
    placed = [node("a", cpu="8", used=[(500, ["ml/first"]), (0, [])]), nodes[1]]
    assert webhook.ask(pod("second", cpu="4"), placed) == {"a": 0, "b": 100}
    # The pod has gone.
    assert webhook.ask(pod("third", cpu="4"), nodes) == {"a": 100, "b": 100}


def test_a_pod_on_several_gpus_is_one_pod(webhook):
    nodes = [node("a", cpu="8"), node("b", cpu="8")]
    webhook.ask(pod("first", cpu="4", milli=1000, count=2), nodes)
    both = [(1000, ["ml:first"]), (1000, ["ml:first"])]
    placed = [node("a", cpu="8", used=both), nodes[1]]
    state = webhook.component._cluster.state
    webhook.ask(pod("second", milli=100), placed)
    record = state.nodes[state.index["a"]]
    assert record["cpu_milli_left"] == 4000
    assert record["gpu_milli_left"][:2].tolist() == [0, 0]


@pytest.mark.parametrize("cpu", [4, "4", "4000m", "4e0", "4000000u", "4000000000n", 4.0])
@pytest.mark.parametrize("memory", [8 * 2**30, "8Gi", "8192Mi", "8388608Ki", "8589934592"])
def test_every_form_of_a_quantity_is_read(tmp_path, cpu, memory):
    webhook = Hook(tmp_path)
    nodes = [node("a", cpu=3), node("b", cpu="4", memory=2**33), node("c", cpu="4k", memory="9G")]
    scores = webhook.ask(pod("p", cpu=cpu, memory=memory), nodes)
    assert (scores["a"], scores["b"], scores["c"]) == (0, 100, 99)


def test_a_node_may_be_named_twice(webhook):
    assert webhook.ask(pod("p"), [node("a"), node("a")]) == {"a": 100}


def test_no_nodes_are_no_scores(webhook):
    assert webhook.ask(pod("p"), []) == {}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"pod": {}}', b'{"pod": 1, "nodes": []}'])
def test_what_is_not_a_request_has_no_scores(webhook, body):
    assert webhook.send(body) == {}


@pytest.mark.parametrize(
    "changed",
    [{"pod": pod("p", cpu="many")}, {"pod": {"spec": 7}}, {"nodes": [{}, node("a")]},
     {"nodes": [node("a", cpu="many"), node("b")]},
     {"nodes": [{**node("a"), "metadata": {"name": "a", "annotations": {NODE_GPU_SHARE: "{"}}}]}],
)  # fmt: skip
def test_what_is_odd_still_has_a_score_for_every_node(webhook, changed):
    request = {"pod": pod("p"), "nodes": [node("a"), node("b")], **changed}
    names = {each.get("metadata", {}).get("name", "") for each in request["nodes"]}
    assert set(webhook.ask(request["pod"], request["nodes"])) == names


def test_a_policy_that_needs_typical_pods_learns_them_from_those_it_was_told_of(tmp_path):
    webhook = Hook(tmp_path, "fgd")
    nodes = [node("a", used=[(400, ["x"]), (0, [])]), node("b")]
    for number in range(20):
        scores = webhook.ask(pod(f"p{number}", milli=600), nodes)
    assert scores["a"] > scores["b"]
    assert len(webhook.component._scorer.shapes) == 1


def test_before_its_policy_is_compiled_it_prefers_no_node(webhook):
    webhook.component._scorer = None
    assert webhook.ask(pod("p"), [node("a"), node("b")]) == {"a": 0, "b": 0}


def test_no_more_is_kept_of_a_pod_than_is_read_and_not_without_end(webhook, monkeypatch):
    monkeypatch.setattr("podium.service.extender.webhook.MOST_POD_BYTES", 3000)
    cluster = webhook.component._cluster
    for number in range(50):
        large = pod(f"p{number}")
        large["metadata"]["annotations"]["example.com/note"] = "x" * 10_000
        large["spec"]["containers"][0]["env"] = [{"name": "A", "value": "x" * 10_000}]
        webhook.ask(large, [node("a"), node("b")])
    kept = sum(map(len, cluster._told.values()))
    assert 1 < len(cluster._told) < 50
    assert kept == cluster._told_bytes <= 3000
    assert "ml/p49" in cluster._told


def test_nodes_that_are_no_longer_sent_are_forgotten_with_their_pods(webhook, monkeypatch):
    monkeypatch.setattr("podium.service.extender.webhook.MOST_NODES", 3)
    for number in range(10):
        webhook.ask(pod("p"), [node(f"n{number}", used=[(700, ["ml:x"]), (0, [])])])
    cluster = webhook.component._cluster
    assert set(cluster.state.index) == {"n7", "n8", "n9"}
    assert len(cluster.state.pods) == len(cluster._on) == 3


def test_a_net_scores_every_node_before_and_after_it_knows_the_demand(tmp_path):
    hook = Hook(tmp_path, "mlp")
    nodes = [node("a"), node("b", used=[(700, ["ml:x"]), (0, [])]), node("c", gpus=0)]
    for i in range(12):
        scores = hook.ask(pod(f"p{i}", milli=300), nodes)
        assert scores["b"] == 100  # what is left of its first GPU fits the pod exactly
        assert scores["a"] > scores["c"] == 0  # the last has no GPU


LONGEST, TOO_LONG = "n" * 253, "n" * 254


@pytest.mark.parametrize(
    ("of_pod", "of_node", "field"),
    [("p", TOO_LONG, "nodes[1].metadata.name"), (TOO_LONG, "b", "pod.metadata.name")],
)
def test_names_that_kubernetes_would_not_take_are_refused_and_not_kept(
    webhook, of_pod, of_node, field
):
    with pytest.raises(Problem) as caught:
        webhook.ask(pod(of_pod), [node("a"), node(of_node)])
    assert caught.value.status == 422
    assert [each.name for each in caught.value.fields] == [field]
    assert not webhook.component._cluster._nodes
    assert webhook.ask(pod(LONGEST), [node(LONGEST)]) == {LONGEST: 100}


def test_nodes_are_remembered_within_a_number_of_bytes(webhook, monkeypatch):
    monkeypatch.setattr("podium.service.extender.webhook.MOST_NODE_BYTES", 10_000)
    cluster = webhook.component._cluster
    for number in range(10):
        large = node(f"n{number}")
        large["metadata"]["labels"]["x"] = "y" * 4000
        webhook.ask(pod("p"), [large])
        webhook.ask(pod("p"), [large])
    assert list(cluster._nodes) == ["n8", "n9"]
    assert sorted(name for name in cluster.state.names if name) == ["n8", "n9"]
    assert 8000 < cluster._node_bytes < 10_000


def test_a_node_has_no_more_gpus_than_nodes_may_have(webhook):
    webhook.ask(pod("p"), [node("a", used=[(500, [])] * 5000)])
    assert len(webhook.component._cluster._on["a"]) == 16


def test_many_new_nodes_hold_up_no_other_route(webhook):
    (route,) = webhook.component.routes()
    assert route.is_slow
