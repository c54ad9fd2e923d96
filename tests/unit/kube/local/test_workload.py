"""Objects that are written for kube-scheduler say what the trace says."""

import json
from dataclasses import replace

from podium.kube.local.workload import is_part, node_objects, pod_objects, running_objects
from podium.model import Cluster, NodeSpec, PodSpec
from podium.traces import load_trace
from support.kubelike import write_dump
from support.manifests import node, pod

NODES = [NodeSpec("big", 96000, 393216, 8, "A100"), NodeSpec("cpu", 8000, 8192)]
PODS = [
    PodSpec("x/Odd_Name", 1000, 1024, 2, 1000, priority=7, gang="g", node="big"),
    PodSpec("half", 500, 512, 1, 500),
    PodSpec("plain", 500, 512),
    PodSpec("picky", 500, 512, 1, 1000, gpu_spec="A100|V100"),
]


def test_what_is_read_back_is_what_was_written(tmp_path):
    cluster = Cluster.of(NODES)
    dump = write_dump(tmp_path, [*node_objects(cluster), *pod_objects(PODS)])
    trace = load_trace(str(dump))
    asked = ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
    assert [[getattr(pod, name) for name in asked] for pod in trace.workload.specs()] == [
        [getattr(pod, name) for name in asked] for pod in PODS
    ]
    for name in ("cpu_milli_total", "memory_mib_total", "gpu_count"):
        assert trace.cluster.nodes[name].tolist() == cluster.nodes[name].tolist()
    assert trace.workload.names == tuple(f"pod-{i:04}" for i in range(4))


def test_kube_scheduler_counts_whole_gpus_and_podium_parts():
    whole, half, plain, picky = pod_objects(PODS)
    assert whole["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] == "2"
    assert not whole["metadata"]["annotations"]
    assert "nvidia.com/gpu" not in half["spec"]["containers"][0]["resources"]["requests"]
    assert half["metadata"]["annotations"]["alibabacloud.com/gpu-milli"] == "500"
    assert [is_part(pod) for pod in PODS] == [False, True, False, False]
    assert "affinity" not in plain["spec"]
    terms = picky["spec"]["affinity"]["nodeAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["A100", "V100"]


def test_an_api_server_would_take_them():
    """It takes priorities only from classes, and what is bound is not scheduled."""
    for made in pod_objects(PODS):
        assert not {"priority", "nodeName", "schedulingGroup"} & made["spec"].keys()
        assert made["metadata"]["namespace"] == "default"


def test_nodes_with_names_that_kubernetes_refuses_are_numbered():
    named = node_objects(Cluster.of([NodeSpec("Node_1", 8000, 8192), NodeSpec("b", 8000, 8192)]))
    assert [each["metadata"]["name"] for each in named] == ["node-0000", "node-0001"]
    kept = node_objects(Cluster.of(NODES))
    assert [each["metadata"]["name"] for each in kept] == ["big", "cpu"]
    (dotted,) = node_objects(Cluster.of([NodeSpec("ip-10-0-0-1.ec2.internal", 8000, 8192)]))
    assert dotted["metadata"]["name"] == "ip-10-0-0-1.ec2.internal"


def test_pods_that_run_are_written_where_they_run():
    running = replace(PODS[1], node="big", gpu_slots=(3,))
    (made,) = running_objects([running])
    assert (made["metadata"]["name"], made["spec"]["nodeName"]) == ("running-0000", "big")
    assert made["metadata"]["annotations"]["alibabacloud.com/gpu-index"] == "3"


def test_devices_of_a_dump_are_written_as_they_are_listed(tmp_path):
    labels = {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}
    listed = {"t4": ({"nvidia.com/gpu": "16"}, labels),
              "mig": ({"nvidia.com/mig-1g.5gb": "7", "nvidia.com/mig-3g.20gb": "2"}, {}),
              "amd": ({"amd.com/gpu": "8"}, {}),
              "whole": ({"nvidia.com/gpu": "8"}, {})}  # fmt: skip
    nodes = [with_devices(node(name, own), amounts) for name, (amounts, own) in listed.items()]
    asked = [{"nvidia.com/gpu": "3"}, {"nvidia.com/mig-3g.20gb": "1"}, {"amd.com/gpu": "2"}]
    pods = [pod(f"p{i}", requests=amounts) for i, amounts in enumerate(asked)]
    first = load_trace(str(write_dump(tmp_path, [*nodes, *pods])))
    written = [*node_objects(first.cluster), *pod_objects(first.workload.specs())]
    gpus = [device_amounts(each) for each in written]
    assert gpus == [*(amounts for amounts, _ in listed.values()), *asked]
    again = load_trace(str(write_dump(tmp_path, written)))
    assert again.cluster.nodes["gpu_count"].tolist() == first.cluster.nodes["gpu_count"].tolist()
    assert again.cluster.gpu_kinds == first.cluster.gpu_kinds


def test_parts_of_cards_beside_which_others_run_are_read_back(tmp_path):
    """HAMi lists a card many times over and knows its memory better than any list of products."""
    cards = [{"id": f"GPU-{i}", "count": 10, "devmem": 24576, "type": "NVIDIA-A10"} for i in (0, 1)]
    listed = with_devices(node("n"), {"nvidia.com/gpu": "20"})
    listed["metadata"]["annotations"] = {"hami.io/node-nvidia-register": json.dumps(cards)}
    half = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "12288", "nvidia.com/gpucores": "50"}
    runs = pod("runs", requests=half, nodeName="n")
    runs["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": "GPU-1,NVIDIA,12288,50:;"}
    first = load_trace(str(write_dump(tmp_path, [listed, runs])))
    (spec,) = first.workload.specs()
    written = [*node_objects(first.cluster), *running_objects([spec]), *pod_objects([spec])]
    assert [device_amounts(each) for each in written] == [{"nvidia.com/gpu": "2"}, {}, {}]
    again = load_trace(str(write_dump(tmp_path, written)))
    assert again.cluster.gpu_kinds == first.cluster.gpu_kinds
    asked = [(each.gpu_milli, each.gpu_memory_mib) for each in again.workload.specs()]
    assert asked == [(500, 12288)] * 2
    assert [each.gpu_slots for each in again.workload.specs()] == [(1,), ()]


def with_devices(made, amounts):
    resources = {"cpu": "8", "memory": "8Gi", **amounts}
    return {**made, "status": {"capacity": resources, "allocatable": resources}}


def device_amounts(manifest):
    if manifest["kind"] == "Node":
        amounts = manifest["status"]["allocatable"]
    else:
        amounts = manifest["spec"]["containers"][0]["resources"]["limits"]
    return {name: amount for name, amount in amounts.items() if "nvidia" in name or "amd" in name}
