"""Measures how fast the state of a live cluster follows its events, and how much memory it takes.

    python bench/kube_cache.py [--nodes 5000] [--pods 20000] [--json]

The state is fed with JSON as an API server sends it, 4 KiB a pod, and looked at after every 100
events, as a scheduler does. Each pod has a life of six events: it is made, bound, started, ready,
done, gone. Pods of one Job are alike but for their names; in the second row no two pods are.
Exits with 1 where a target is missed: 20,000 events a second on one core, 300 MB in all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podium.kube.feed import Feed
from podium.kube.objects import event_decoder
from podium.kube.resources import NODES, PODS
from podium.kube.state import LiveState

LEAST_EVENTS_PER_S = 20_000
MOST_MB = 300.0
LOOK_AFTER = 100
NODE_LABELS = {
    f"nvidia.com/{name}": value
    for name, value in {
        "gpu.product": "NVIDIA-A100-SXM4-80GB", "gpu.memory": "81920", "gpu.count": "8",
        "gpu.family": "ampere", "gpu.machine": "DGX", "gpu.compute.major": "8",
        "gpu.compute.minor": "0", "gpu.replicas": "1", "mig.strategy": "single",
        "cuda.driver.major": "550", "gpu.deploy.driver": "true", "gpu.deploy.dcgm": "true",
    }.items()
} | {f"feature.node.kubernetes.io/cpu-cpuid.{i}": "true" for i in range(40)}  # fmt: skip


def main() -> int:
    """Measures and judges."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    before = resident_mb()
    feed = filled(given.nodes, given.pods)
    rows = {
        "memory_mb": round(resident_mb(), 1),
        "memory_of_state_mb": round(resident_mb() - before, 1),
        "events_per_s": round(speed(feed, given.nodes, jobs=8)),
        "events_per_s_no_two_alike": round(speed(feed, given.nodes, jobs=1)),
    }
    is_met = rows["memory_mb"] <= MOST_MB and rows["events_per_s"] >= LEAST_EVENTS_PER_S
    if given.json:
        print(json.dumps({**rows, "is_met": is_met}))
    else:
        for name, value in rows.items():
            print(f"{name:28} {value:>12,}")
        print("met" if is_met else f"missed: {LEAST_EVENTS_PER_S:,} events/s, {MOST_MB:g} MB")
    return 0 if is_met else 1


def filled(nodes: int, pods: int) -> Feed:
    """Builds a state from lists, with the client library loaded that a watch needs."""
    import aiohttp
    import kubernetes_asyncio

    del aiohttp, kubernetes_asyncio
    feed = Feed(LiveState())
    for i in range(nodes):
        feed.apply(NODES, "ADDED", encoded(node(i)))
    for i in range(pods):
        feed.apply(PODS, "ADDED", encoded(pod(f"old-{i}", i // 8, f"node-{i % nodes}", "Running")))
    if len(feed.state.nodes) != nodes or len(feed.state.pods) != pods:
        raise RuntimeError("the state is not what was fed")
    return feed


def speed(feed: Feed, nodes: int, jobs: int, pods: int = 3000) -> float:
    """Counts the events of a second of CPU time, decoded, applied and looked at."""
    lives = [list(life(f"new-{jobs}-{i}", i // jobs, f"node-{i % nodes}")) for i in range(pods)]
    lines = [line for step in zip(*lives, strict=True) for line in step]
    begun_s = time.process_time()
    for number, line in enumerate(lines):
        event = event_decoder.decode(line)
        feed.apply(PODS, event.type, event.object)  # type: ignore[arg-type]
        if number % LOOK_AFTER == 0:
            len(feed.state.nodes)
    return len(lines) / (time.process_time() - begun_s)


def life(name: str, job: int, node_name: str) -> Iterator[bytes]:
    """Writes the events of one pod, from its making to its end."""
    steps = (
        ("ADDED", pod(name, job, "", "Pending")),
        ("MODIFIED", pod(name, job, node_name, "Pending")),
        ("MODIFIED", pod(name, job, node_name, "Running")),
        ("MODIFIED", pod(name, job, node_name, "Running", is_ready=True)),
        ("MODIFIED", pod(name, job, node_name, "Succeeded")),
        ("DELETED", pod(name, job, node_name, "Succeeded")),
    )
    for type_, value in steps:
        yield encoded({"type": type_, "object": value})


def node(number: int) -> dict[str, Any]:
    """Writes a node as a GPU operator labels it."""
    name = f"node-{number}"
    labels = {**NODE_LABELS, "kubernetes.io/hostname": name, "rack": f"r{number // 16}"}
    resources = {"cpu": "128", "memory": "1031Gi", "pods": "110", "nvidia.com/gpu": "8"}
    images = [{"names": [f"registry.example/image-{i}@sha256:{i:064x}"]} for i in range(50)]
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-15T10:00:00Z"}
    status = {"capacity": resources, "allocatable": resources, "conditions": [ready],
              "images": images}  # fmt: skip
    metadata = {"name": name, "uid": f"n-{number}", "resourceVersion": "1", "labels": labels}
    return {"kind": "Node", "apiVersion": "v1", "metadata": metadata, "spec": {}, "status": status}


def pod(name: str, job: int, node_name: str, phase: str, *, is_ready: bool = False) -> Any:
    """Writes a pod of a Job as an API server does, with all that Podium does not read."""
    amounts = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    resources = {"limits": amounts, "requests": amounts}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{job}", "uid": f"j-{job}",
             "controller": True}  # fmt: skip
    labels = {"app": "train", "batch.kubernetes.io/job-name": f"job-{job}", "team": "vision",
              "controller-uid": f"j-{job}", "job-name": f"job-{job}"}  # fmt: skip
    written = {f"f:{part}": {f"f:field-{i}": {} for i in range(30)} for part in ("spec", "status")}
    metadata = {
        "name": name, "namespace": "vision", "uid": f"uid-{name}", "resourceVersion": "12345678",
        "creationTimestamp": "2026-11-15T10:00:00Z", "labels": labels, "ownerReferences": [owner],
        "annotations": {"prometheus.io/scrape": "true"},
        "managedFields": [{"manager": "kube-controller-manager", "fieldsV1": written}],
    }  # fmt: skip
    container = {
        "name": "main", "image": "registry.example/train:1.2.3", "resources": resources,
        "command": ["python", "-m", "train", "--epochs", "90"],
        "env": [{"name": f"VARIABLE_{i}", "value": "some value"} for i in range(12)],
        "volumeMounts": [{"name": f"kube-api-access-{name}", "mountPath": "/var/run/secrets"}],
    }  # fmt: skip
    spec: dict[str, Any] = {
        "containers": [container], "restartPolicy": "Never", "schedulerName": "default-scheduler",
        "priority": 0, "serviceAccountName": "default", "nodeSelector": {"pool": "gpu"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [{"name": f"kube-api-access-{name}", "projected": {"defaultMode": 420}}],
    }  # fmt: skip
    if node_name:
        spec["nodeName"] = node_name
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec,
            "status": pod_status(phase, resources, is_ready=is_ready)}  # fmt: skip


def pod_status(phase: str, resources: Any, *, is_ready: bool) -> dict[str, Any]:
    """Writes what a kubelet says of a pod."""
    names = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    state = str(is_ready)
    conditions = [
        {"type": name, "status": state, "lastTransitionTime": "2026-11-15T10:00:05Z"}
        for name in names
    ]
    if phase == "Pending":
        return {"phase": phase, "conditions": conditions[-1:]}
    container = {
        "name": "main", "resources": resources, "ready": is_ready, "image": "train:1.2.3",
        "state": {"running": {"startedAt": "2026-11-15T10:00:04Z"}},
    }  # fmt: skip
    return {
        "phase": phase, "conditions": conditions, "startTime": "2026-11-15T10:00:01Z",
        "hostIP": "10.0.0.1", "podIP": "10.1.0.1", "containerStatuses": [container],
    }  # fmt: skip


def encoded(value: Any) -> bytes:
    """Writes JSON as an API server does."""
    return json.dumps(value, separators=(",", ":")).encode()


def resident_mb() -> float:
    """Returns the memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
