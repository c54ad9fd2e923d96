"""Objects that are written for kube-scheduler say what the trace says."""

import pytest

from podium.kube.local.workload import first_pods, is_part, node_objects, pod_objects
from podium.model import Cluster, NodeSpec, PodSpec
from podium.traces import load_trace
from support.kubelike import write_dump

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
    for pod in pod_objects(PODS):
        assert not {"priority", "nodeName", "schedulingGroup"} & pod["spec"].keys()
        assert pod["metadata"]["namespace"] == "default"


def test_nodes_with_names_that_kubernetes_refuses_are_numbered():
    named = node_objects(Cluster.of([NodeSpec("Node_1", 8000, 8192), NodeSpec("b", 8000, 8192)]))
    assert [node["metadata"]["name"] for node in named] == ["node-0000", "node-0001"]
    kept = node_objects(Cluster.of(NODES))
    assert [node["metadata"]["name"] for node in kept] == ["big", "cpu"]


@pytest.mark.parametrize(("most", "count"), [(None, 9), (4, 4), (100, 20)])
def test_pods_come_until_they_ask_for_all_gpus(most, count):
    """Eight GPUs are asked for by the ninth pod: one of them asks for nothing."""
    pods = [PodSpec(f"p{i}", 1, 1, int(i != 3), 1000) for i in range(20)]
    assert len(first_pods(pods, Cluster.of(NODES), most)) == count
