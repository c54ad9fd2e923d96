"""Writes the dump of a cluster of 180 GPUs, as kubectl prints one: 36 nodes, and what runs there.

DGX and GPU nodes have taints, T4s are time-sliced by 4, a JobSet is a gang, DaemonSets and static
pods are on every node, some pods have finished, and one pending pod is mistyped.
"""

from __future__ import annotations

import json
import random
from itertools import count
from pathlib import Path

KINDS = (
    ("dgx-h100", 10, 8, "NVIDIA-H100-80GB-HBM3", 1),
    ("a100", 8, 8, "NVIDIA-A100-SXM4-80GB", 1),
    ("l40s", 6, 4, "NVIDIA-L40S", 1),
    ("t4", 3, 4, "Tesla-T4-SHARED", 4),
    ("cpu", 9, 0, "", 1),
)
TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
NOW_H = 200
RUNNING, FINISHED, PENDING = 44, 60, 12


def write_dump(path: Path, *, seed: int = 1, has_gang: bool = True) -> Path:
    """Writes the dump."""
    path.write_text(json.dumps(dump(seed=seed, has_gang=has_gang)))
    return path


def dump(*, seed: int = 1, has_gang: bool = True) -> dict:
    """Makes the List of nodes and pods."""
    rng, numbers = random.Random(seed), count()
    nodes = [_node(f"{kind}-{i:02}", kind, *rest) for kind, n, *rest in KINDS for i in range(n)]
    pods = [pod for node in nodes for pod in _of_node(node["metadata"]["name"])]
    room = _Room()
    for _ in range(RUNNING):
        pods += room.placed(_job(rng, next(numbers)))
    if has_gang:
        for i in range(2):
            pods += room.placed(_in_gang(_pod(f"llm-{i}", 8, cpu=64, memory=512), i))
    for _ in range(FINISHED):
        job = _job(rng, next(numbers))
        hours = rng.choice([1, 2, 5, 9])
        pods.append(_finished(job, rng.randrange(100), hours, is_well=rng.random() < 0.9))
    pods += [_job(rng, next(numbers), most=8) for _ in range(PENDING - 1)]
    pods.append(_pod("mistyped", 1, cpu=3_000, memory=4))
    return {"apiVersion": "v1", "kind": "List", "items": nodes + pods}


def _node(name: str, kind: str, gpus: int, product: str, replicas: int) -> dict:
    has = {"cpu": "128", "memory": "1024Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "pool": kind}
    spec: dict = {}
    if gpus:
        has["nvidia.com/gpu"] = str(gpus * replicas)
        labels |= {
            "nvidia.com/gpu.product": product, "nvidia.com/gpu.count": str(gpus),
            "nvidia.com/gpu.replicas": str(replicas), "nvidia.com/gpu.memory": "81559",
        }  # fmt: skip
        spec["taints"] = [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    status = {"allocatable": has, "capacity": has, "conditions": [
        {"type": "Ready", "status": "True", "lastHeartbeatTime": _time(NOW_H)}
    ]}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": spec, "status": status}  # fmt: skip


def _of_node(node: str) -> list[dict]:
    agent = _owned(_pod(f"agent-{node}", 0, cpu=1, memory=2, namespace="kube-system"), "DaemonSet")
    agent["spec"]["tolerations"] = [{"operator": "Exists"}]
    static = _owned(_pod(f"proxy-{node}", 0, cpu=1, memory=1, namespace="kube-system"), "Node")
    static["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "abc"}
    return [_running(each, node, 1) for each in (agent, static)]


def _job(rng: random.Random, number: int, most: int = 4) -> dict:
    gpus = rng.choice([each for each in (0, 1, 1, 2, 4, 4, 8) if each <= most])
    cpu, memory = rng.choice([4, 8, 24]), rng.choice([16, 64, 200])
    return _pod(f"job-{number}", gpus, cpu=cpu, memory=memory)


def _pod(name: str, gpus: int, *, cpu: int, memory: int, namespace: str = "team") -> dict:
    asked = {"cpu": str(cpu), "memory": f"{memory}Gi"}
    spec: dict = {"containers": [{"name": "main", "resources": {"requests": asked}}]}
    if gpus:
        asked["nvidia.com/gpu"] = str(gpus)
        spec["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": str(gpus)}
        spec["tolerations"] = [TOLERATION]
        spec["nodeSelector"] = {"pool": ("dgx-h100", "a100")[len(name) % 2]}
        if gpus <= 4 and len(name) % 3 == 0:
            del spec["nodeSelector"]
    metadata = {"name": name, "namespace": namespace, "uid": name, "labels": {},
                "creationTimestamp": _time(NOW_H - 1)}  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec,
            "status": {"phase": "Pending"}}  # fmt: skip


def _owned(pod: dict, kind: str) -> dict:
    owner = {"kind": kind, "name": "owner", "controller": True, "apiVersion": "v1", "uid": "o"}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


def _in_gang(pod: dict, index: int) -> dict:
    pod["metadata"]["labels"] = {
        "jobset.sigs.k8s.io/jobset-name": "llm", "jobset.sigs.k8s.io/job-index": str(index),
        "scheduling.x-k8s.io/pod-group": "llm",
    }  # fmt: skip
    return pod


def _running(pod: dict, node: str, begun_h: int) -> dict:
    pod["metadata"]["creationTimestamp"] = _time(begun_h)
    pod["spec"]["nodeName"] = node
    state = {"running": {"startedAt": _time(begun_h)}}
    pod["status"] = {"phase": "Running", "startTime": _time(begun_h),
                     "containerStatuses": [{"name": "main", "state": state}]}  # fmt: skip
    return pod


def _finished(pod: dict, begun_h: int, hours: int, *, is_well: bool) -> dict:
    times = {"startedAt": _time(begun_h), "finishedAt": _time(begun_h + hours)}
    pod["metadata"]["creationTimestamp"] = _time(begun_h)
    pod["spec"]["nodeName"] = "dgx-h100-00"
    pod["status"] = {"phase": "Succeeded" if is_well else "Failed", "startTime": _time(begun_h),
                     "containerStatuses": [{"state": {"terminated": times}}]}  # fmt: skip
    return pod


class _Room:
    """Places pods where whole GPUs are left, in order of nodes."""

    def __init__(self) -> None:
        self._gpus = {f"{kind}-{i:02}": gpus for kind, n, gpus, _, shared in KINDS for i in range(n)
                      if shared == 1}  # fmt: skip
        self._hour = count(120)

    def placed(self, pod: dict) -> list[dict]:
        """Gives the pod where it runs, or nothing."""
        limits = pod["spec"]["containers"][0]["resources"].get("limits", {})
        gpus, pool = int(limits.get("nvidia.com/gpu", 0)), pod["spec"].get("nodeSelector", {})
        for node, free in self._gpus.items():
            is_right = node.startswith(pool.get("pool", "") or ("cpu" if not gpus else ""))
            if is_right and free >= gpus and (gpus or node.startswith("cpu")):
                self._gpus[node] -= gpus
                return [_running(pod, node, min(next(self._hour), NOW_H - 2))]
        return []


def _time(hour: int) -> str:
    return f"2026-03-{1 + hour // 24:02}T{hour % 24:02}:00:00Z"
