"""JSON feeds a state exactly as whole objects do, however little of it is decoded."""

import copy
import json
import random
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest
import yaml

from podium.kube import LiveState
from podium.kube.feed import Feed
from podium.kube.heads import PodHead
from podium.kube.objects import PodObject, decode
from podium.kube.resources import NODES, PODS, RESOURCES
from podium.traces.kubernetes.documents import read_documents
from support.kubelike import gpu_node, gpu_pod, image, live

DUMPS = sorted(Path(__file__).parents[2].glob("**/*dump*.yaml"))


@pytest.fixture
def feed():
    return Feed(LiveState())


def encoded(value):
    return json.dumps(value, separators=(",", ":")).encode()


def running(pod):
    """Gives a pod as its kubelet reports it."""
    resources = pod["spec"]["containers"][0]["resources"]
    container = {"name": "main", "resources": resources, "image": "x", "state": {
        "running": {"startedAt": "2026-11-15T10:00:04Z"}}}  # fmt: skip
    status = {"phase": "Running", "startTime": "2026-11-15T10:00:01Z",
              "containerStatuses": [container]}  # fmt: skip
    return {**pod, "status": status}


def lives(rng, count=60):
    """Draws the lives of pods with everything that a pattern must tell apart."""
    for i in range(count):
        marks = rng.choice([{}, {"gpu-fraction": "0.5"}, {"note": str(i)}])
        more = rng.choice([
            {}, {"priority": i}, {"priorityClassName": "system-node-critical"},
            {"nodeSelector": {"pool": "a"}}, {"hostNetwork": True}, {"overhead": {"cpu": "1"}},
            {"schedulingGates": [{"name": "quota"}]}, {"schedulingGroup": {"podGroupName": "g"}},
            {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "d"}}]},
            {"tolerations": [{"operator": "Exists"}]}, {"resources": {"requests": {"cpu": "3"}}},
            {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "5"}}}]},
            {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1,
                                            "whenUnsatisfiable": "DoNotSchedule"}]},
        ])  # fmt: skip
        pod = gpu_pod(f"p{i}", 0 if marks.get("gpu-fraction") else i % 3, marks, **more)
        pod["metadata"]["labels"] = rng.choice([{}, {"app": "web"}, {"app": str(i)}])
        pending = live(pod, f"u{i}")
        yield "ADDED", pending
        if "schedulingGates" in more:
            free = copy.deepcopy(pending)
            del free["spec"]["schedulingGates"]
            yield "MODIFIED", free
            pending = free
        bound = live(pending, f"u{i}", f"n{i % 4}", "Pending")
        yield "MODIFIED", bound
        there = running(bound)
        yield "MODIFIED", there
        last = rng.random()
        if last < 0.2:
            larger = copy.deepcopy(there)
            larger["status"]["containerStatuses"][0]["resources"] = {"requests": {"cpu": "7"}}
            yield "MODIFIED", larger
        elif last < 0.4:
            there["metadata"]["deletionTimestamp"] = "2026-11-15T11:00:00Z"
            yield "MODIFIED", there
        elif last < 0.6:
            yield "MODIFIED", {**there, "status": {**there["status"], "phase": "Succeeded"}}
        elif last < 0.8:
            yield "DELETED", there


def seen(state, pod):
    found = state.pod(pod["metadata"]["uid"])
    return found and (found.spec, found.remarks, found.group, found.is_pending, found.slots)


@pytest.mark.parametrize("seed", range(10))
def test_json_and_objects_give_the_same_state(seed):
    plain, feed = LiveState(), Feed(LiveState())
    for i in range(4):
        plain.apply("Node", "ADDED", gpu_node(f"n{i}", 8))
        feed.apply(NODES, "ADDED", encoded(gpu_node(f"n{i}", 8)))
    for type_, pod in lives(random.Random(seed)):
        assert feed.apply(PODS, type_, encoded(pod)).identity == pod["metadata"]["uid"]
        plain.apply("Pod", type_, pod)
        assert seen(feed.state, pod) == seen(plain, pod)
    assert image(feed.state) == image(plain)
    assert feed.state.notes == plain.notes


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: path.stem)
def test_whatever_a_dump_holds_survives_the_choice_of_fields(path):
    plain, slim = LiveState(), LiveState()
    for document in read_documents(path):
        value = yaml.safe_load(yaml.safe_dump(dict(document.value)))
        group = value.get("apiVersion", "v1").rpartition("/")[0]
        kind = f"{document.kind}.{group}" if group else document.kind
        plain.apply(kind, "ADDED", value)
        slim.apply(kind, "ADDED", decode(kind, encoded(value)))
    assert image(slim) == image(plain)
    assert slim.notes == plain.notes


def test_what_pods_run_is_not_kept():
    pod = gpu_pod("p", 1)
    pod["spec"]["containers"][0] |= {
        "command": ["train"], "env": [{"name": "TOKEN", "value": "secret"}], "image": "private",
    }  # fmt: skip
    pod["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    kept = json.dumps(decode("Pod", encoded(pod)))
    for word in ("train", "TOKEN", "secret", "private", "kubectl"):
        assert word not in kept


def test_heartbeats_of_nodes_change_nothing(feed):
    node = gpu_node("a")
    node["status"]["conditions"] = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "1"}]
    feed.apply(NODES, "ADDED", encoded(node))
    before = feed.state.version
    node["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-15T10:00:00Z"
    feed.apply(NODES, "MODIFIED", encoded(node))
    assert feed.state.version == before
    node["status"]["conditions"][0]["status"] = "False"
    feed.apply(NODES, "MODIFIED", encoded(node))
    assert feed.state.version == before + 1
    feed.apply(NODES, "DELETED", encoded(node))
    feed.apply(NODES, "ADDED", encoded(node))
    assert "a" in feed.state.index


def test_a_pod_that_starts_changes_no_placement(feed):
    feed.apply(NODES, "ADDED", encoded(gpu_node("a")))
    bound = live(gpu_pod("p", 1), "p", "a", "Pending")
    feed.apply(PODS, "ADDED", encoded(bound))
    version = feed.state.version
    feed.apply(PODS, "MODIFIED", encoded(running(bound)))
    assert feed.state.version == version
    pod = feed.state.pod("p")
    assert (pod.draft.standing.phase, pod.draft.standing.started_s) == ("Running", 1794736801.0)


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"metadata": 3}', b"null", b"\xff"])
def test_garbage_is_one_kind_of_error(feed, raw):
    for resource in RESOURCES:
        with pytest.raises(msgspec.DecodeError):
            feed.apply(resource, "ADDED", raw)


class Asked(dict):
    """Notes which fields somebody looks for."""

    def __init__(self, value, fields):
        super().__init__(value)
        self.fields = fields

    def get(self, key, default=None):
        self.fields.add(key)
        return super().get(key, default)

    def __getitem__(self, key):
        self.fields.add(key)
        return super().__getitem__(key)

    def __contains__(self, key):
        self.fields.add(key)
        return super().__contains__(key)


def test_no_field_is_looked_for_that_is_not_decoded():
    looked = {part: set() for part in ("pod", "metadata", "spec", "status", "container")}
    pod = running(live(gpu_pod("p", 1), "p", "a"))
    container = Asked(pod["spec"]["containers"][0], looked["container"])
    spec = {**pod["spec"], "containers": [container], "initContainers": [container]}
    parts = {"spec": spec, "metadata": pod["metadata"], "status": pod["status"]}
    pod |= {part: Asked(value, looked[part]) for part, value in parts.items()}
    state = LiveState()
    state.apply("Pod", "ADDED", Asked(pod, looked["pod"]))
    assert len(state.pods) == 1
    for part in ("metadata", "spec", "status"):
        decoded = get_type_hints(get_type_hints(PodObject)[part])
        assert looked[part] - decoded.keys() == set(), part
    # What is not in the pattern of a pod must be part of its life.
    life = {"nodeName", "schedulingGates", "phase", "startTime", "conditions", "nominatedNodeName"}
    for part in ("spec", "status"):
        names = {f.encode_name for f in msgspec.structs.fields(get_type_hints(PodHead)[part])}
        assert looked[part] - life - names == set(), part
    assert looked["container"] <= {"name", "resources", "ports", "restartPolicy"}


def test_gpus_that_were_named_before_a_pod_was_bound_are_its_own_from_then_on(feed):
    """Some schedulers write the annotation first and bind the pod after that."""
    feed.apply(NODES, "ADDED", encoded(gpu_node("n", 4)))
    pod = gpu_pod("x", 1, {"alibabacloud.com/gpu-index": "2"})
    for type_, node in (("ADDED", ""), ("MODIFIED", "n")):
        feed.apply(PODS, type_, encoded(live(pod, "x", node)))
        assert feed.state.pod("x").slots == ((2,) if node else ())


def terms(number):
    """Writes so many terms of affinity."""
    rule = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    required = {"nodeSelectorTerms": [rule] * number}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def containers(number):
    return [{"name": str(i), "resources": {"requests": {"cpu": "1m"}}} for i in range(number)]


@pytest.mark.parametrize(
    "more",
    [{"affinity": terms(600)}, {"containers": containers(1001)},
     {"tolerations": [{"operator": "Exists"}] * 1001}],
)  # fmt: skip
def test_a_pod_without_measure_is_named_and_read_no_further(feed, more):
    pod = live(gpu_pod("large"), "u")
    pod["spec"] |= more
    feed.apply(PODS, "ADDED", encoded(pod))
    assert "more than 1,000" in feed.state.pod("u").problem
    version, known = feed.state.version, feed.state.pod("u")
    feed.apply(PODS, "MODIFIED", encoded({**pod, "status": {**pod["status"], "message": "x"}}))
    assert (feed.state.version, feed.state.pod("u")) == (version, known)
    feed.apply(PODS, "MODIFIED", encoded(live(pod, "u", "n")))
    assert (feed.state.pod("u").node, feed.state.pod("u").problem) == ("n", known.problem)


def test_a_pod_with_many_terms_is_read(feed):
    feed.apply(PODS, "ADDED", encoded(live(gpu_pod("p", affinity=terms(400)), "u")))
    assert feed.state.pod("u").problem == ""


def test_what_nobody_reads_may_change_without_the_pod_being_read_again(feed):
    feed.apply(PODS, "ADDED", encoded(live(gpu_pod("p", 1, {"note": "a"}), "u")))
    known = feed.state.known_pod("u").draft
    feed.apply(PODS, "MODIFIED", encoded(live(gpu_pod("p", 1, {"note": "b"}), "u")))
    assert feed.state.known_pod("u").draft is known
    feed.apply(PODS, "MODIFIED", encoded(live(gpu_pod("p", 0, {"gpu-fraction": "0.5"}), "u")))
    assert feed.state.pod("u").spec.gpu_milli == 500


def test_a_pod_with_very_many_terms_is_not_even_decoded(feed):
    feed.apply(PODS, "ADDED", encoded(live(gpu_pod("p", affinity=terms(15_000)), "u", "n")))
    found = feed.state.pod("u")
    assert "bytes are not modelled" in found.problem
    assert (found.namespace, found.name, found.node) == ("default", "p", "n")
