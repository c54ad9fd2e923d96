"""The state of a live cluster follows its events, and is what a fresh list gives."""

import random

import numpy as np
import pytest

from podium.kube import LiveState, Unreadable
from podium.model.records import NODE_16, node_view
from podium.traces import load_trace
from support.kubelike import (
    claim,
    gpu_node,
    gpu_pod,
    group,
    image,
    live,
    resource_slice,
    write_dump,
)

POD_GROUP = "PodGroup.scheduling.k8s.io"


@pytest.fixture
def state():
    return LiveState()


def left(state, name):
    view = node_view(state.nodes[state.index[name]])
    return view.cpu_milli_left, view.memory_mib_left, view.gpu_milli_left[: view.gpu_count]


def test_pods_take_what_they_ask_for_from_their_node(state):
    state.apply("Node", "ADDED", gpu_node("a"))
    assert left(state, "a") == (8000, 32768, (1000, 1000, 1000, 1000))
    pod = live(gpu_pod("p", 2), uid="p")
    state.apply("Pod", "ADDED", pod)
    assert [each.name for each in state.pending] == ["p"]
    assert left(state, "a") == (8000, 32768, (1000, 1000, 1000, 1000))
    state.apply("Pod", "MODIFIED", live(gpu_pod("p", 2), uid="p", node="a"))
    assert left(state, "a") == (7000, 31744, (0, 0, 1000, 1000))
    assert (state.pod("p").slots, state.pending) == ((0, 1), [])
    state.apply("Pod", "DELETED", pod)
    assert left(state, "a") == (8000, 32768, (1000, 1000, 1000, 1000))
    assert state.pod("p") is None


def test_a_pod_that_has_finished_takes_nothing(state):
    state.apply("Node", "ADDED", gpu_node("a"))
    state.apply("Pod", "ADDED", live(gpu_pod("p", 4), uid="p", node="a"))
    state.apply("Pod", "MODIFIED", live(gpu_pod("p", 4), uid="p", node="a", phase="Succeeded"))
    assert left(state, "a")[2] == (1000,) * 4
    assert state.pod("p") is None


def test_who_is_named_on_a_gpu_is_there_and_others_take_the_rest(state):
    state.apply("Node", "ADDED", gpu_node("a"))
    share = {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "400"}
    state.apply("Pod", "ADDED", live(gpu_pod("a", 0, annotations=share), uid="1", node="a"))
    assert state.pod("1").slots == (0,)
    named = {**share, "alibabacloud.com/gpu-index": "0"}
    for name in "bc":
        pod = live(gpu_pod(name, 0, annotations=named), uid=name, node="a")
        state.apply("Pod", "ADDED", pod)
    assert left(state, "a")[2] == (200, 600, 1000, 1000)
    assert state.pod("1").slots == (1,)


NOTE = "alibabacloud.com/gpu-index"
NOTED = [
    ({"nvidia.com/gpu": "1"}, {}, (1000, 1000, 0, 1000)),
    ({"volcano.sh/vgpu-number": "1"}, {}, (1000, 1000, 0, 1000)),
    ({}, {"gpu-fraction": "0.5"}, (1000, 1000, 500, 1000)),
    ({}, {"alibabacloud.com/gpu-milli": "600"}, (1000, 1000, 400, 1000)),
]


@pytest.mark.parametrize(("resources", "marks", "expected"), NOTED)
def test_gpus_that_a_bind_noted_are_those_of_the_pod(state, resources, marks, expected):
    """Whatever the convention of the pod: the extender notes them on all."""
    made = gpu_node("n", 4)
    if "volcano.sh/vgpu-number" in resources:
        made["status"]["allocatable"] = {"cpu": "8", "memory": "32Gi", "volcano.sh/vgpu-number": 4}
    state.apply("Node", "ADDED", made)
    pod = gpu_pod("x", 0, {**marks, NOTE: "2"})
    pod["spec"]["containers"][0]["resources"] = {"limits": resources}
    state.apply("Pod", "ADDED", live(pod, "x", "n"))
    assert (left(state, "n")[2], state.pod("x").slots) == (expected, (2,))


@pytest.mark.parametrize("is_node_first", [True, False])
def test_a_note_names_cards_where_each_is_listed_as_several_devices(state, is_node_first):
    labels = {"nvidia.com/gpu.replicas": "2", "nvidia.com/gpu.count": "4"}
    state.apply("Node", "ADDED", gpu_node("other", 8, labels=labels))
    events = [("Node", gpu_node("n", 8, labels=labels)),
              ("Pod", live(gpu_pod("x", 2, {NOTE: "2"}), "x", "n"))]  # fmt: skip
    for kind, value in events if is_node_first else reversed(events):
        state.apply(kind, "ADDED", value)
        assert state.pods is not None
    assert left(state, "n")[2] == (1000, 1000, 0, 1000)


def test_a_node_that_cannot_be_modelled_is_named_until_it_can_be(state):
    large = gpu_node("large", 17)
    odd = gpu_node("odd")
    odd["status"]["allocatable"]["cpu"] = "many"
    state.replace("Node", [gpu_node("a"), large, odd])
    assert sorted(state.index) == ["a"]
    assert sorted(state.unmodelled_nodes) == ["large", "odd"]
    assert "16 whole GPUs" in state.unmodelled_nodes["large"]
    state.apply("Node", "MODIFIED", gpu_node("odd"))
    assert sorted(state.index) == ["a", "odd"]
    assert [*state.unmodelled_nodes] == ["large"]
    state.replace("Node", [gpu_node("a")])
    assert state.unmodelled_nodes == {}


def test_a_dump_tells_the_gpus_that_a_bind_noted(tmp_path):
    pod = live(gpu_pod("x", 2, {NOTE: "1-3"}), "x", "n")
    trace = load_trace(str(write_dump(tmp_path, [gpu_node("n", 4), pod])))
    assert [spec.gpu_slots for spec in trace.workload.specs()] == [(1, 3)]
    assert not any("not honoured" in note for note in trace.notes)


def test_gpus_stay_with_those_to_whom_they_were_given_when_others_leave(state):
    state.apply("Node", "ADDED", gpu_node("n", 4))
    pods = [live(gpu_pod(f"w{i}", 1, {NOTE: str(i)}), f"w{i}", "n") for i in range(3)]
    state.replace("Pod", pods)
    state.apply("Pod", "DELETED", pods[0])
    assert left(state, "n")[2] == (1000, 0, 0, 1000)


def test_nobody_shares_a_whole_gpu_whatever_annotations_say(state):
    """Templates may name a GPU that no device plugin ever looked at."""
    state.apply("Node", "ADDED", gpu_node("n", 4))
    for name in "ab":
        state.apply("Pod", "ADDED", live(gpu_pod(name, 1, {NOTE: "2"}), name, "n"))
    assert sum(left(state, "n")[2]) == 2000
    assert {state.pod("a").slots, state.pod("b").slots} == {(2,), (0,)}


def test_a_note_on_a_pod_that_waits_pins_it_to_nothing(state):
    state.apply("Node", "ADDED", gpu_node("n", 4))
    state.apply("Pod", "ADDED", live(gpu_pod("x", 1, {NOTE: "2"}), "x"))
    assert state.pod("x").spec.gpu_slots == ()
    assert f"{NOTE} is not honoured" in state.notes


def test_pods_may_come_before_their_node_and_stay_when_it_leaves(state):
    state.apply("Pod", "ADDED", live(gpu_pod("p", 1), uid="p", node="a"))
    assert (len(state.nodes), state.pod("p").slots) == (0, ())
    state.apply("Node", "ADDED", gpu_node("a"))
    assert (left(state, "a")[2], state.pod("p").slots) == ((0, 1000, 1000, 1000), (0,))
    state.apply("Node", "DELETED", gpu_node("a"))
    assert ("a" in state.index, state.pod("p").slots) == (False, ())


def test_a_node_keeps_its_place_and_a_new_one_fills_the_gap(state):
    for name in "abc":
        state.apply("Node", "ADDED", gpu_node(name))
    assert state.names == ["a", "b", "c"]
    state.apply("Node", "DELETED", gpu_node("b"))
    assert (state.names, dict(state.index)) == (["a", "", "c"], {"a": 0, "c": 2})
    assert state.nodes[1]["cpu_milli_total"] == 0
    state.apply("Node", "ADDED", gpu_node("d", gpus=2))
    assert state.names == ["a", "d", "c"]
    assert node_view(state.nodes[1]).gpu_milli_left[:3] == (1000, 1000, 0)


def test_many_nodes_and_wide_ones_find_room(state):
    for i in range(200):
        state.apply("Node", "ADDED", gpu_node(f"n{i}"))
    state.apply("Node", "ADDED", gpu_node("wide", gpus=16))
    assert (len(state.nodes), state.nodes.dtype) == (201, NODE_16)
    assert left(state, "n199")[2] == (1000,) * 4
    assert left(state, "wide")[2] == (1000,) * 16


def test_gpu_models_are_numbered_as_in_a_file(state, tmp_path):
    nodes = [gpu_node("a", model="T4"), gpu_node("b", model="A100"), gpu_node("c", model="T4")]
    state.replace("Node", nodes)
    trace = load_trace(str(write_dump(tmp_path, nodes)))
    assert tuple(kind.model for kind in state.gpu_kinds) == trace.cluster.gpu_models
    assert state.nodes["gpu_model"].tolist() == trace.cluster.nodes["gpu_model"].tolist()
    state.apply("Node", "DELETED", gpu_node("b"))
    assert [kind.model for kind in state.gpu_kinds] == ["T4"]
    assert [int(state.nodes["gpu_model"][i]) for i in (0, 2)] == [0, 0]


def test_a_request_is_read_as_from_a_file(state, tmp_path):
    nodes = [gpu_node("a", model="T4"), gpu_node("b", model="A100")]
    pod = gpu_pod("p", 2, nodeSelector={"nvidia.com/gpu.product": "T4"})
    state.replace("Node", nodes)
    request = state.request(pod)
    trace = load_trace(str(write_dump(tmp_path, [*nodes, pod])))
    workload = trace.workload.on(trace.cluster)
    assert request.record.tolist() == workload.pods[0].tolist()
    assert request.shares is None


def test_a_request_for_memory_is_another_share_on_each_kind_of_gpu(state):
    small = {"nvidia.com/gpu.memory": "16384"}
    large = {"nvidia.com/gpu.memory": "40960"}
    state.replace("Node", [
        gpu_node("a", model="T4", labels=small), gpu_node("b", model="A100", labels=large),
    ])  # fmt: skip
    request = state.request(gpu_pod("p", 0, annotations={"gpu-memory": "8192"}))
    assert request.shares.tolist() == [[1, 200], [1, 500]]
    assert int(request.record["gpu_milli"]) in (200, 500)


def test_a_pod_that_cannot_be_modelled_is_named_once_and_takes_nothing(state):
    state.apply("Node", "ADDED", gpu_node("a"))
    bad = live(gpu_pod("p", 1), uid="p", node="a")
    bad["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "lots"
    state.apply("Pod", "ADDED", bad)
    answer = state.request(bad)
    assert isinstance(answer, Unreadable)
    assert "a quantity such as 4, 500m or 16Gi is expected" in answer.reason
    assert left(state, "a")[2] == (1000,) * 4
    assert [who for text, who in state.notes.items() if "quantity" in text] == ["pod default/p"]


def test_only_what_changes_something_makes_another_version(state):
    state.apply("Node", "ADDED", gpu_node("a"))
    pod = live(gpu_pod("p", 1), uid="p", node="a")
    state.apply("Pod", "ADDED", pod)
    version = state.version
    assert not state.apply("Node", "MODIFIED", gpu_node("a"))
    assert not state.apply("Pod", "MODIFIED", pod)
    assert not state.apply("Pod", "DELETED", live(gpu_pod("q", 1), uid="q"))
    assert state.version == version
    assert state.apply("Pod", "DELETED", pod)
    assert state.version == version + 1


def test_objects_that_nobody_reads_make_no_version(state):
    state.apply(POD_GROUP, "ADDED", group("train", 2))
    version = state.version
    assert not state.apply(POD_GROUP, "MODIFIED", {**group("train", 2), "status": {"phase": "x"}})
    assert state.apply(POD_GROUP, "MODIFIED", group("train", 3))
    budget = {"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "status": {"n": 1}}
    assert not state.apply("PodDisruptionBudget.policy", "ADDED", budget)
    assert state.version == version + 1


def test_subscribers_hear_of_pods_that_are_bound_and_gone(state):
    heard = []
    end = state.subscribe(lambda uid, node: heard.append((uid, node)))
    state.apply("Pod", "ADDED", live(gpu_pod("p", 1), uid="p"))
    for _ in range(2):
        state.apply("Pod", "MODIFIED", live(gpu_pod("p", 1), uid="p", node="a"))
    state.apply("Pod", "MODIFIED", live(gpu_pod("p", 1), uid="p", node="a", phase="Failed"))
    state.apply("Pod", "DELETED", live(gpu_pod("p", 1), uid="p", node="a", phase="Failed"))
    assert heard == [("p", "a"), ("p", "")]
    end()
    state.apply("Pod", "ADDED", live(gpu_pod("q", 1), uid="q", node="a"))
    assert len(heard) == 2


def test_a_list_leaves_out_what_is_gone(state):
    heard = []
    state.subscribe(lambda uid, node: heard.append((uid, node)))
    state.replace("Node", [gpu_node("a"), gpu_node("b")])
    state.replace("Pod", [live(gpu_pod(n, 1), uid=n, node="a") for n in "pq"])
    assert (len(state.nodes), heard) == (2, [("p", "a"), ("q", "a")])
    heard.clear()
    state.replace("Pod", [live(gpu_pod("q", 1), uid="q", node="b")])
    state.replace("Node", [gpu_node("b")])
    assert (list(state.pods), dict(state.index)) == (["q"], {"b": 1})
    assert left(state, "b")[2] == (0, 1000, 1000, 1000)
    assert sorted(heard) == [("p", ""), ("q", "b")]


def test_a_pod_of_the_same_name_is_another_pod(state):
    state.apply("Node", "ADDED", gpu_node("a"))
    state.apply("Pod", "ADDED", live(gpu_pod("p", 1), uid="old", node="a"))
    state.apply("Pod", "ADDED", live(gpu_pod("p", 2), uid="new"))
    state.apply("Pod", "DELETED", live(gpu_pod("p", 1), uid="old", node="a"))
    assert list(state.pods) == ["new"]
    assert left(state, "a")[2] == (1000,) * 4


def test_a_gang_counts_its_members_and_knows_its_domain(state):
    racks = {"topology.kubernetes.io/rack": "r1"}
    state.replace("Node", [gpu_node("a", labels=racks)])
    members = [gpu_pod(f"m{i}", 1, schedulingGroup={"podGroupName": "train"}) for i in range(3)]
    for i, each in enumerate(members):
        state.apply("Pod", "ADDED", live(each, uid=f"m{i}", node="a" if i == 0 else ""))
    assert state.gang_of(state.pod("m1")).rule.minimum == 3
    state.apply(POD_GROUP, "ADDED", group("train", 2, "topology.kubernetes.io/rack"))
    gang = state.gang_of(state.request(members[1]))
    assert (gang.rule.minimum, gang.rule.domain, gang.lacking) == (2, "rack", 1)
    assert (gang.bound, gang.nodes, gang.waiting) == (("m0",), ("a",), ("m1", "m2"))
    state.apply(POD_GROUP, "DELETED", group("train", 2))
    assert state.gang_of(state.pod("m1")).rule.minimum == 3
    assert state.gang_of(state.request(gpu_pod("alone", 1))) is None


def test_domains_are_numbered_by_level(state):
    state.replace("Node", [
        gpu_node("a", labels={"topology.kubernetes.io/rack": "r1"}),
        gpu_node("b", labels={"topology.kubernetes.io/zone": "z"}),
        gpu_node("c", labels={"topology.kubernetes.io/rack": "r1"}),
    ])  # fmt: skip
    assert state.domains.tolist() == [[0, -1, 0], [-1, -1, -1], [-1, 0, -1]]
    assert state.domain_names == (["r1"], [], ["z"])
    assert state.nodes["rack"].tolist() == [0, -1, 0]


def test_priority_classes_may_come_late_and_go(state):
    state.apply("Pod", "ADDED", live(gpu_pod("p", 1, priorityClassName="high"), uid="p"))
    assert state.pod("p").spec.priority == 0
    name = "PriorityClass.scheduling.k8s.io"
    high = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    state.apply(name, "ADDED", high)
    assert state.pod("p").spec.priority == 1000
    assert int(state.request_of(state.pod("p")).record["priority"]) == 1000
    state.apply(name, "DELETED", high)
    assert state.pod("p").spec.priority == 0


def test_claims_and_slices_may_come_in_any_order(state):
    pod = live(gpu_pod("p", 0, resourceClaims=[{"name": "g", "resourceClaimName": "c"}]), uid="p")
    bound = {**pod, "spec": {**pod["spec"], "nodeName": "a"}, "status": {"phase": "Running"}}
    events = [
        ("Node", gpu_node("a", gpus=0)),
        ("ResourceSlice.resource.k8s.io", resource_slice("a", 2)),
        ("ResourceClaim.resource.k8s.io", claim("c", "a", ["gpu-1"])),
        ("Pod", bound),
    ]
    images = []
    for seed in range(12):
        state = LiveState()
        random.Random(seed).shuffle(events)
        for kind, value in events:
            state.apply(kind, "ADDED", value)
            if seed % 2:
                assert len(state.nodes) <= 1
        images.append((left(state, "a")[2], state.pod("p").slots))
    assert images == [((1000, 0), (1,))] * 12


def test_a_claim_of_several_pods_takes_gpus_once_and_passes_on(state):
    state.apply("Node", "ADDED", gpu_node("a", gpus=0))
    state.apply("ResourceSlice.resource.k8s.io", "ADDED", resource_slice("a", 2))
    state.apply("ResourceClaim.resource.k8s.io", "ADDED", claim("c", "a", ["gpu-0"]))
    claims = [{"name": "g", "resourceClaimName": "c"}]
    for name in "pq":
        pod = live(gpu_pod(name, 0, resourceClaims=claims), uid=name, node="a")
        state.apply("Pod", "ADDED", pod)
    assert left(state, "a")[2] == (0, 1000)
    state.apply("Pod", "DELETED", live(gpu_pod("p", 0, resourceClaims=claims), uid="p"))
    assert (left(state, "a")[2], state.pod("q").slots) == ((0, 1000), (0,))


def random_events(seed, count=400):
    """Draws a life of a small cluster; gives the events and what is there in the end."""
    rng = random.Random(seed)
    nodes, pods, events = {}, {}, []

    def put(kind, key, value, there):
        events.append((kind, "MODIFIED" if key in there else "ADDED", value))
        there[key] = value

    for i in range(count):
        what = rng.random()
        if what < 0.15 or not nodes:
            name = f"n{rng.randrange(12)}"
            rack = {"topology.kubernetes.io/rack": f"r{rng.randrange(3)}"} if i % 2 else {}
            model = rng.choice(["T4", "A100", "H100"])
            put("Node", name, gpu_node(name, rng.choice([0, 2, 4, 8]), model, rack), nodes)
        elif what < 0.2:
            name = rng.choice(list(nodes))
            events.append(("Node", "DELETED", nodes.pop(name)))
        elif what < 0.35 and pods:
            uid = rng.choice(list(pods))
            events.append(("Pod", "DELETED", pods.pop(uid)))
        elif what < 0.45 and pods:
            uid = rng.choice(list(pods))
            put("Pod", uid, live(pods[uid], uid, rng.choice(list(nodes)), "Running"), pods)
        else:
            marks = rng.choice([{}, {}, {"gpu-fraction": "0.3"}, {"gpu-memory": "4000"}, {
                "alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "500",
                "alibabacloud.com/gpu-index": "1"}])  # fmt: skip
            pod = gpu_pod(f"p{i}", 0 if marks else rng.randrange(4), annotations=marks)
            node = rng.choice([*nodes, "", "n99"])
            put("Pod", f"u{i}", live(pod, f"u{i}", node), pods)
    return events, nodes, pods


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happened_the_state_is_that_of_a_fresh_list(seed):
    events, nodes, pods = random_events(seed)
    state, fresh = LiveState(), LiveState()
    for count, (kind, type_, value) in enumerate(events):
        state.apply(kind, type_, value)
        if count % (seed + 1) == 0:
            assert len(state.nodes) >= len(state.index)
    shuffled = list(pods.values())
    random.Random(seed).shuffle(shuffled)
    fresh.replace("Pod", shuffled)
    fresh.replace("Node", nodes.values())
    assert image(state) == image(fresh)


@pytest.mark.parametrize("seed", range(10))
def test_records_are_those_that_a_simulation_begins_with(seed, tmp_path):
    from podium.model.state import occupied
    from podium.sim.bound import bind, is_bound, placed_records

    _, nodes, pods = random_events(seed)
    listed = sorted(pods.values(), key=lambda pod: pod["metadata"]["name"])
    state = LiveState()
    state.replace("Node", nodes.values())
    state.replace("Pod", listed)
    trace = load_trace(str(write_dump(tmp_path, [*nodes.values(), *listed])))
    workload = trace.workload.on(trace.cluster)
    running = workload.taken(np.flatnonzero(is_bound(workload)))
    bound = bind(trace.cluster, running)
    placed = placed_records(running, bound.node, bound.slots, trace.cluster)
    expected = occupied(trace.cluster.nodes, placed, bound.node, bound.slots)
    assert state.names == list(trace.cluster.names)
    for name in expected.dtype.names:
        assert state.nodes[name].tolist() == expected[name].tolist(), name


@pytest.mark.parametrize("holders", [-1, "all", {"uid": "u"}, [3]])
def test_a_claim_that_says_oddly_who_holds_it_is_taken_as_held_by_nobody(state, holders):
    made = claim("c", "a", ["gpu-0"])
    odd = {**made, "status": {"reservedFor": holders}}
    odd["metadata"] = {**made["metadata"], "ownerReferences": holders}
    state.apply("ResourceClaim.resource.k8s.io", "ADDED", odd)
    state.apply("Pod", "ADDED", live(gpu_pod("p"), uid="p"))
    assert [each.name for each in state.pending] == ["p"]
