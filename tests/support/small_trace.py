"""Writes the three pods of `support.runs` as the files that a user would have."""

import gzip
import json

import yaml

from support.runs import THREE_PODS, THREE_PODS_NODES

SMALL = ("--trace", "pods.csv", "--cluster", "nodes.csv", "--node-order", "listed")
"""Options that simulate the files of this module."""

PLAIN = ("--policy", "first-fit", *SMALL)


def write_small_trace(folder):
    """Writes `nodes.csv` and `pods.csv`."""
    nodes = [
        f"{node.name},{node.cpu_milli},{node.memory_mib},{node.gpu_count},{node.gpu_model}"
        for node in THREE_PODS_NODES
    ]
    pods = [
        f"{pod.name},{pod.cpu_milli},{pod.memory_mib},{pod.gpu_count},{pod.gpu_milli},"
        f"{pod.arrival_s:.0f},{pod.arrival_s + pod.duration_s:.0f}"
        for pod in THREE_PODS
    ]
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time"
    write_lines(folder / "nodes.csv", ["sn,cpu_milli,memory_mib,gpu,model", *nodes])
    write_lines(folder / "pods.csv", [header, *pods])


def write_lines(path, lines):
    """Writes lines, each ended."""
    path.write_text("".join(f"{line}\n" for line in lines))


def write_orders(path, *orders):
    """Writes orders as `jsonl.gz`."""
    text = "".join(json.dumps(order) + "\n" for order in orders)
    path.write_bytes(gzip.compress(text.encode()))


def write_simon_config(folder, **custom):
    """Writes a Config of the published simulator and the manifests that it names."""
    manifests = folder / "manifests"
    manifests.mkdir()
    documents = [*map(_node_manifest, THREE_PODS_NODES), *map(_pod_manifest, THREE_PODS)]
    (manifests / "all.yaml").write_text(yaml.safe_dump_all(documents))
    config = {
        "apiVersion": "simon/v1alpha1",
        "kind": "Config",
        "spec": {"cluster": {"customConfig": "manifests"}, "customConfig": custom},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))


def _node_manifest(node):
    amounts = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "alibabacloud.com/gpu-count": str(node.gpu_count),
        "alibabacloud.com/gpu-milli": "1000",
    }
    labels = {"alibabacloud.com/gpu-card-model": node.gpu_model}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": node.name, "labels": labels},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def _pod_manifest(pod):
    requests = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    annotations = {
        "alibabacloud.com/gpu-count": str(pod.gpu_count),
        "alibabacloud.com/gpu-milli": str(pod.gpu_milli),
    }
    container = {"name": "main", "image": "any", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod.name, "annotations": annotations},
        "spec": {"containers": [container]},
    }


SCHEDULER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "packing",
            "plugins": {
                "score": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": "NodeResourcesFit", "weight": 1}],
                }
            },
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "MostAllocated"}},
                }
            ],
        }
    ],
}


def write_scheduler(path, *more_plugins):
    """Writes the configuration of a scheduler that packs, with more score plugins."""
    config = json.loads(json.dumps(SCHEDULER))
    enabled = config["profiles"][0]["plugins"]["score"]["enabled"]
    enabled += [{"name": name} for name in more_plugins]
    path.write_text(yaml.safe_dump(config))
