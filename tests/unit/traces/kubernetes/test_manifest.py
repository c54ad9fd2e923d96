import gzip
import json

import pytest
import yaml

from podium.errors import InputError, UsageError
from podium.model import NodeSpec, PodSpec
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.kubernetes.pile import Reading
from podium.traces.rejects import Rejects

NODE = """
apiVersion: v1
kind: Node
metadata:
  name: n0
  labels: {alibabacloud.com/gpu-card-model: P100, zone: z, rack: rack-3}
status:
  allocatable: {alibabacloud.com/gpu-count: '2', alibabacloud.com/gpu-milli: '2000', cpu: 64000m,
                memory: 262144Mi, pods: '1001'}
"""
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: p0
  namespace: paib-gpu
  annotations: {alibabacloud.com/gpu-milli: "460", alibabacloud.com/gpu-count: "1",
                alibabacloud.com/gpu-card-model: "T4|G2"}
spec:
  containers:
  - name: main
    resources: {requests: {cpu: 6000m, memory: 1024Mi}}
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text, *, is_skipping=False, name="m.yaml"):
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return read_manifests(path, Rejects(is_skipping))

    return read_text


def node(name="n", labels=None, spec=None, **resources):
    amounts = {"cpu": "4", "memory": "8Gi"} | {
        k.replace("__", "/"): v for k, v in resources.items()
    }
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec or {},
        "status": {"allocatable": amounts},
    }


def pod(name="p", annotations=None, spec=None, **metadata):
    container = {"resources": {"requests": {"cpu": "1"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}, **metadata},
        "spec": {"containers": [container]} | (spec or {}),
    }


def test_manifests_of_the_hkust_simulator_are_read(read):
    trace = read(NODE + "\n---\n" + POD)
    labels = {"alibabacloud.com/gpu-card-model": "P100", "zone": "z", "rack": "rack-3"}
    assert trace.cluster.specs() == [NodeSpec("n0", 64000, 262144, 2, "P100", "rack-3", labels)]
    assert trace.workload.specs() == [
        PodSpec("p0", 6000, 1024, 1, 460, "T4|G2", namespace="paib-gpu")
    ]
    assert trace.notes == ()


@pytest.mark.parametrize("name", ["m.yaml", "m.yml", "m.json", "m.yaml.gz", "m.json.gz"])
def test_all_formats_read_alike(read, name):
    objects = [yaml.safe_load(NODE), yaml.safe_load(POD)]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    is_json = ".json" in name
    write = json.dumps if is_json else yaml.safe_dump
    several = json.dumps(objects) if is_json else yaml.safe_dump_all(objects)
    for text in (write(listed), several):
        trace = read(text, name=name)
        assert trace.cluster.names == ("n0",)
        assert trace.workload.names == ("p0",)


def test_a_live_node_is_read_as_the_device_plugin_describes_it(read):
    live = node(
        labels={"nvidia.com/gpu.product": "Tesla-T4", "topology.kubernetes.io/rack": "r"},
        cpu="3920m",
        memory="7577204Ki",
    )
    live["status"]["allocatable"]["nvidia.com/gpu"] = "4"
    live["status"]["capacity"] = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "4"}
    spec = read(json.dumps(live), name="m.json").cluster.specs()[0]
    assert (spec.cpu_milli, spec.memory_mib) == (3920, 7399)
    assert (spec.gpu_count, spec.gpu_model, spec.rack) == (4, "Tesla-T4", "r")


def test_capacity_stands_for_what_allocatable_lacks(read):
    live = node()
    live["status"] = {"capacity": {"cpu": 8, "memory": "1Gi"}, "allocatable": {"cpu": "7"}}
    spec = read(yaml.safe_dump(live)).cluster.specs()[0]
    assert (spec.cpu_milli, spec.memory_mib) == (7000, 1024)


def test_what_only_the_capacity_lists_is_not_to_be_had(read):
    live = node()
    live["status"]["allocatable"]["nvidia.com/gpu"] = "1"
    live["status"]["capacity"] = live["status"]["allocatable"] | {"rdma/hca": "2", "pods": "8"}
    live["status"]["capacity"]["nvidia.com/gpu"] = "4"
    spec = read(yaml.safe_dump(live)).cluster.specs()[0]
    assert (spec.gpu_count, dict(spec.extended)) == (1, {})
    del live["status"]["allocatable"]
    spec = read(yaml.safe_dump(live)).cluster.specs()[0]
    assert (spec.gpu_count, dict(spec.extended)) == (4, {"rdma/hca": 2, "pods": 8})


def test_a_node_for_no_pods_is_one(read):
    live = node()
    live["status"]["allocatable"]["pods"] = "0"
    assert dict(read(yaml.safe_dump(live)).cluster.specs()[0].extended) == {"pods": 0}


def test_a_pod_that_contradicts_itself_is_read_and_runs_nowhere(read):
    """kube-scheduler leaves it pending; the rest of a dump is not to suffer from it."""
    key = "nvidia.com/gpu.product"
    rule = {"key": key, "operator": "In", "values": ["A100"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    limits = {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}
    spec = {
        "containers": [{"resources": {"limits": limits}}],
        "nodeSelector": {key: "T4"},
        "affinity": {"nodeAffinity": required},
    }
    asking = {"kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    (found,) = read(yaml.safe_dump(asking)).workload.specs()
    assert not any(found.constraints.selects_node("n", {key: each}) for each in ("A100", "T4"))


def test_a_selected_product_constrains_the_model(read):
    spec = {
        "containers": [{"resources": {"limits": {"nvidia.com/gpu": 2}}}],
        "nodeSelector": {"nvidia.com/gpu.product": "Tesla-T4"},
    }
    found = read(json.dumps(pod(spec=spec)), name="m.json").workload.specs()[0]
    assert (found.gpu_count, found.gpu_milli, found.gpu_spec) == (2, 1000, "Tesla-T4")


def test_priority_gang_and_job_type_are_read(read):
    first = pod(spec={"priority": -7}, labels={"scheduling.x-k8s.io/pod-group": "g"})
    second = pod("q", {"app.kubernetes.io/job-type": "train", "scheduling.k8s.io/group-name": "h"})
    specs = read(yaml.safe_dump_all([first, second])).workload.specs()
    assert [(s.priority, s.gang, s.job_type) for s in specs] == [(-7, "g", ""), (0, "h", "train")]


def test_times_count_from_the_earliest_pod(read):
    times = {
        "alibabacloud.com/creation-time": "2023-07-01T12:00:10Z",
        "alibabacloud.com/deletion-time": "2023-07-01T12:01:10Z",
    }
    later = pod("q", {"alibabacloud.com/deletion-time": "2023-07-01T12:00:05+00:00"})
    later["metadata"]["creationTimestamp"] = "2023-07-01T12:00:00Z"
    workload = read(yaml.safe_dump_all([pod("p", times), later])).workload
    assert workload.arrival_s.tolist() == [10.0, 0.0]
    assert workload.duration_s.tolist() == [60.0, 5.0]


def test_unquoted_times_are_read_too(read):
    text = POD.replace("  name: p0", "  name: p0\n  creationTimestamp: 2023-07-01T12:00:00Z")
    assert read(text).workload.arrival_s.tolist() == [0.0]


def test_exact_seconds_win_over_dates(read):
    marks = {
        "alibabacloud.com/creation-time": "2023-07-01T12:00:10Z",
        "podium/arrival-s": "0.1",
        "podium/duration-s": "1e-7",
    }
    workload = read(yaml.safe_dump(pod("p", marks))).workload
    assert (workload.arrival_s[0], workload.duration_s[0]) == (0.1, 1e-7)


def test_pods_of_one_name_in_two_namespaces_are_told_apart(read):
    pods = [pod("p", namespace="a"), pod("p"), pod("q", namespace="a")]
    assert read(yaml.safe_dump_all(pods)).workload.names == ("a/p", "default/p", "q")


def test_a_generated_name_is_completed(read):
    nameless = pod()
    nameless["metadata"] = {"generateName": "job-"}
    assert read(yaml.safe_dump_all([pod(), nameless])).workload.names == ("p", "job-1")


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.json").write_text(json.dumps(pod("first")))
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(pod("second")))
    (tmp_path / "a.yml.gz").write_bytes(gzip.compress(yaml.safe_dump(node()).encode()))
    (tmp_path / "README.md").write_text("words")
    trace = read_manifests(tmp_path, Rejects())
    assert trace.workload.names == ("first", "second")
    assert trace.cluster.names == ("n",)
    assert trace.notes == ("only .yaml, .yml and .json files are read, not README.md",)


@pytest.mark.parametrize(
    ("item", "note"),
    [
        ({"kind": "ConfigMap"}, "ConfigMap is not read: 1 object"),
        ({"kind": "ResourceQuota"}, "ResourceQuota is not honoured: 1 object"),
        (
            node("m", spec={"taints": [{"key": "x", "effect": "PreferNoSchedule"}]}),
            "PreferNoSchedule taints are not honoured: 1 node",
        ),
        (
            node("m", labels={"nvidia.com/gpu.count": "8"}),
            "the label nvidia.com/gpu.count without the resource nvidia.com/gpu",
        ),
        (
            pod(spec={"nodeName": "gone"}),
            "bound to nodes that the cluster does not have, so left out: 1 pod",
        ),
        (
            pod() | {"status": {"phase": "Succeeded"}},
            "finished, so left out: 1 pod",
        ),
        (
            pod(spec={"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}),
            "wait for their gates (spec.schedulingGates), so left out: 1 pod",
        ),
        (
            pod(deletionTimestamp="2026-01-01T00:00:00Z"),
            "being deleted, so left out: 1 pod",
        ),
        (
            pod(annotations={"alibabacloud.com/gpu-index": "2-3"}),
            "alibabacloud.com/gpu-index is not honoured: 1 pod",
        ),
        (
            pod(spec={"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]}),
            "volumes are not known, `kubectl get",
        ),
        (
            pod(spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]}),
            "resource claims that the dump does not hold are read as no GPUs, `kubectl get",
        ),
        (
            pod(spec={"runtimeClassName": "kata"}),
            "the RuntimeClass of spec.runtimeClassName is not honoured: 1 pod",
        ),
        (
            pod(spec={"schedulerName": "volcano"}),
            "spec.schedulerName volcano is not honoured, one policy places all pods: 1 pod",
        ),
        (
            pod(spec={"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}),
            "preferences of nodes are not honoured: preferred affinity, ScheduleAnyway: 1 pod",
        ),
        (
            pod(annotations={"kueue.x-k8s.io/podset-slice-required-topology": "rack"}),
            "kueue.x-k8s.io/podset-slice-required-topology is not honoured: 1 pod",
        ),
        (
            pod(spec={"priorityClassName": "high"}),
            "spec.priorityClassName without spec.priority is read as priority 0: 1 pod",
        ),
        (
            pod(spec={"overhead": {"nvidia.com/priority": "1"}}),
            "the resource nvidia.com/priority is not modelled: 1 pod",
        ),
    ],
)
def test_what_has_no_place_in_the_model_is_noted(read, item, note):
    (found,) = read(yaml.safe_dump_all([node(), item])).notes
    assert found.startswith(note)


@pytest.mark.parametrize(
    ("item", "field", "message"),
    [
        (node(cpu="lots"), "status.allocatable.cpu", 'node "n": a quantity such as'),
        (node(cpu="-1"), "status.allocatable.cpu", "at least 0"),
        (node(cpu="1e30"), "status.allocatable.cpu", "more than a node can have"),
        (node("m", memory=None), "status.allocatable.memory", "a quantity is expected"),
        (
            node(labels={"alibabacloud.com/gpu-card-model": "A|B"}, **{"nvidia.com/gpu": 1}),
            "",
            "one model",
        ),
        (
            {"kind": "Node", "metadata": {"name": "x"}},
            "status.allocatable.cpu",
            "does not say how much",
        ),
        ({"kind": "Node", "metadata": []}, "metadata", "node: a mapping is expected, not []"),
        ({"kind": "Node"}, "metadata.name", "the node has no name"),
        ({"kind": "Pod", "spec": "x"}, "spec", "a mapping is expected"),
        ({"kind": "Pod"}, "metadata.name", "the pod has no name"),
        (pod(spec={"priority": 1e10}), "spec.priority", "a whole number"),
        (
            pod(
                annotations={
                    "alibabacloud.com/gpu-count": "17",
                    "alibabacloud.com/gpu-milli": "500",
                }
            ),
            "metadata.annotations.alibabacloud.com/gpu-count",
            "17",
        ),
        (pod(annotations={"podium/arrival-s": "-1"}), "", "arrival_s is -1"),
        (
            pod(annotations={"podium/arrival-s": "soon"}),
            "metadata.annotations.podium/arrival-s",
            "a quantity",
        ),
        (
            pod(annotations={"alibabacloud.com/creation-time": "soon"}),
            "alibabacloud.com/creation-time",
            "a time such as",
        ),
        (
            pod(
                annotations={
                    "alibabacloud.com/creation-time": "2023-07-01T12:00:10Z",
                    "alibabacloud.com/deletion-time": "2023-07-01T12:00:09Z",
                }
            ),
            "alibabacloud.com/deletion-time",
            "deleted before it is created",
        ),
        ({"apiVersion": "v1"}, "", "the object has no kind"),
    ],
)
def test_a_bad_object_is_an_input_error_with_its_place(read, tmp_path, item, field, message):
    text = "# first line\n---\n" + yaml.safe_dump(item)
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in caught.value.message
    assert caught.value.where == f"{tmp_path / 'm.yaml'}, line 3" + (f", {field}" if field else "")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("item", "where", "message"),
    [
        (
            node("odd", **{"nvidia.com/gpu": "99"}),
            "nvidia.com/gpu",
            'node "odd": 0 to 16 whole GPUs are expected, not 99',
        ),
        (
            node("odd", **{"nvidia.com/gpu": "many"}),
            "status.allocatable.nvidia.com/gpu",
            'node "odd": a quantity such as',
        ),
        (
            node("odd", **{"rdma/hca": "?"}),
            "status.allocatable.rdma/hca",
            'node "odd": a quantity such as',
        ),
        (
            pod("odd", spec={"containers": [{"resources": {"limits": {"amd.com/gpu": "1500m"}}}]}),
            "amd.com/gpu",
            'pod "odd": a whole number of GPUs is expected, not 1.5',
        ),
        (
            pod("odd", {"gpu-fraction": "1.5"}),
            "metadata.annotations.gpu-fraction",
            'pod "odd": 1.5 of a GPU is asked for',
        ),
        (
            {
                "kind": "ResourceSlice",
                "apiVersion": "resource.k8s.io/v1",
                "metadata": {"name": "odd"},
                "spec": {"driver": "gpu.nvidia.com", "nodeName": "n", "devices": [7]},
            },
            "spec.devices[0]",
            'resourceslice "odd": a mapping is expected',
        ),
    ],
)
def test_odd_devices_of_one_object_never_cost_the_whole_file(read, tmp_path, item, where, message):
    trace = read(yaml.safe_dump_all([node(), item, pod()]))
    assert (trace.cluster.names, trace.workload.names) == (("n",), ("p",))
    (note,) = trace.notes
    assert note.startswith(f"left out: {tmp_path / 'm.yaml'}, line ")
    assert f", {where}: {message}" in note


def test_two_nodes_cannot_share_a_name(read, tmp_path):
    with pytest.raises(InputError, match='node "n": another node has the same name') as caught:
        read(yaml.safe_dump_all([node(), node()]))
    assert caught.value.message.endswith(f"{tmp_path / 'm.yaml'}, line 1")
    assert caught.value.where == f"{tmp_path / 'm.yaml'}, line 11, metadata.name"


def test_two_pods_of_one_namespace_cannot_share_a_name(read, tmp_path):
    message = 'pod "p": another pod of the namespace default has the same name'
    text = yaml.safe_dump_all([pod(), pod(namespace="a"), pod(namespace="default")])
    with pytest.raises(InputError, match=message) as caught:
        read(text)
    assert caught.value.message.endswith(f"{tmp_path / 'm.yaml'}, line 1")
    trace = read(text, is_skipping=True)
    assert trace.workload.names == ("default/p", "a/p")
    assert message in trace.notes[0]


def test_priority_classes_of_the_file_and_of_kubernetes_are_known(read):
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000,
            "metadata": {"name": "high"}}  # fmt: skip
    names = ("high", "system-node-critical", "none")
    pods = [pod(name, spec={"priorityClassName": name}) for name in names]
    trace = read(yaml.safe_dump_all([*pods, high]))
    assert [spec.priority for spec in trace.workload.specs()] == [1000, 2_000_001_000, 0]
    assert trace.notes == (
        "spec.priorityClassName without spec.priority is read as priority 0: 1 pod",
    )


def by_namespace(labels):
    term = {
        "topologyKey": "zone",
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": labels},
    }
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


def test_a_namespace_selector_is_resolved_by_namespaces_that_come_later(read):
    anti = pod(spec=by_namespace({"team": "ml"}))
    spaces = [
        {"kind": "Namespace", "metadata": {"name": name, "labels": {"team": team}}}
        for name, team in (("a", "ml"), ("b", "web"))
    ]
    (spec,) = read(yaml.safe_dump_all([anti, *spaces])).workload.specs()
    assert spec.constraints.anti_affinity[0].selector.namespaces == {"a"}


def test_a_namespace_selector_without_namespaces_is_noted(read):
    trace = read(yaml.safe_dump(pod(spec=by_namespace({"team": "ml"}))))
    assert trace.workload.constraints == ()
    assert trace.notes == (
        "affinity by namespaceSelector is not honoured without Namespace objects: 1 pod",
    )


def test_a_cordoned_node_and_one_that_is_not_ready_have_taints(read):
    silent = node("silent")
    silent["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    known = node("known", spec={"taints": [{"key": "node.kubernetes.io/unreachable",
                                            "effect": "NoExecute"}]})  # fmt: skip
    known["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    trace = read(yaml.safe_dump_all([node("c", spec={"unschedulable": True}), silent, known]))
    assert [tuple(taint.key for taint in taints) for taints in trace.cluster.taints] == [
        ("node.kubernetes.io/unschedulable",),
        ("node.kubernetes.io/not-ready",),
        ("node.kubernetes.io/unreachable",),
    ]
    assert trace.notes == (
        "not ready by condition alone, read as the taint node.kubernetes.io/not-ready: 1 node",
    )


def test_a_file_of_finished_pods_alone_says_what_became_of_them(read):
    with pytest.raises(InputError, match="finished, so left out: 1 pod"):
        read(yaml.safe_dump(pod() | {"status": {"phase": "Succeeded"}}))


def test_members_of_a_typed_list_have_the_version_of_the_list(read):
    group = {"metadata": {"name": "g"}, "spec": {"minMember": 3}}
    listed = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroupList",
              "items": [group]}  # fmt: skip
    member = pod(labels={"scheduling.x-k8s.io/pod-group": "g"})
    (rule,) = read(yaml.safe_dump_all([member, listed])).workload.gang_rules
    assert rule.minimum == 3


def test_a_state_that_nobody_knows_is_a_usage_error(tmp_path):
    (tmp_path / "m.yaml").write_text(POD)
    with pytest.raises(UsageError, match='"then" is not a state'):
        read_manifests(tmp_path / "m.yaml", Rejects(), Reading(state="then"))
    with pytest.raises(UsageError, match="the seed -1"):
        read_manifests(tmp_path / "m.yaml", Rejects(), Reading(seed=-1))


def test_bad_objects_can_be_skipped_and_are_listed(read):
    trace = read(
        yaml.safe_dump_all([node(), node(), pod(spec={"priority": "x"})]), is_skipping=True
    )
    assert trace.cluster.names == ("n",)
    assert trace.workload is None
    assert [note.split(": ")[0] for note in trace.notes] == ["left out", "left out"]
    assert 'node "n": another node has the same name' in trace.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it is empty"),
        ("---\n---\n", "it is empty"),
        ("kind: ConfigMap\n", "it holds 1 ConfigMap"),
    ],
)
def test_a_file_without_nodes_or_pods_is_an_input_error(read, text, message):
    with pytest.raises(InputError, match="no Node or Pod was found") as caught:
        read(text)
    assert message in caught.value.message
    assert "kubectl get nodes,pods" in caught.value.hint


def test_a_scheduler_configuration_is_recognised(read):
    with pytest.raises(InputError) as caught:
        read("kind: KubeSchedulerConfiguration\n")
    assert "give it as a policy" in caught.value.hint


def test_nothing_is_left_when_every_object_is_bad(read):
    with pytest.raises(InputError, match="every one of them was left out"):
        read("kind: Pod\nmetadata: {}\n", is_skipping=True)


def test_a_folder_without_manifests_is_an_input_error(tmp_path):
    with pytest.raises(InputError, match="no Node or Pod was found"):
        read_manifests(tmp_path, Rejects())


def test_why_every_node_was_left_out_is_told(read):
    lacking = "kind: Node\nmetadata: {name: odd}\nstatus: {allocatable: {cpu: 8}}\n"
    with pytest.raises(InputError, match='the only node was left out: node "odd": ') as raised:
        read(lacking, is_skipping=True)
    assert "the node does not say how much memory it has" in str(raised.value)


def test_pods_without_the_nodes_that_were_left_out_are_no_answer(read):
    many = "status: {allocatable: {cpu: 8, memory: 8Gi, amd.com/gpu: 20}}"
    nodes = [f"kind: Node\nmetadata: {{name: {name}}}\n{many}\n" for name in "xy"]
    text = 'all 2 nodes were left out: node "x", node "y": 0 to 16 whole GPUs are expected'
    with pytest.raises(InputError, match=text) as raised:
        read("---\n".join((*nodes, POD)))
    assert "--cluster" in raised.value.hint


@pytest.mark.parametrize("kind", ["node", "NODE", "pod"])
def test_a_kind_in_other_letters_is_not_left_out_in_silence(read, kind):
    told = f"{kind} is spelt {kind.capitalize()}"
    text = f"{NODE}---\nkind: {kind}\nmetadata: {{name: odd}}\n"
    with pytest.raises(InputError, match=told):
        read(text)
    (note,) = read(text, is_skipping=True).notes
    assert note.startswith("left out: ")
    assert note.endswith(told)
