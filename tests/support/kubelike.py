"""Writes objects as an API server gives them: nodes with GPUs, pods with UIDs, claims, slices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from podium.kube import LiveState
from podium.model.records import node_view
from support.manifests import node, pod


def gpu_node(
    name: str, gpus: int = 4, model: str = "A100", labels: dict[str, str] | None = None
) -> dict[str, Any]:
    """Writes a node of 8 CPUs and 32 GiB with GPUs of one model."""
    known = {"nvidia.com/gpu.product": model} if gpus else {}
    made = node(name, {**known, **(labels or {})})
    for part in ("capacity", "allocatable"):
        resources = {**made["status"][part], "nvidia.com/gpu": str(gpus)}
        made["status"][part] = {k: v for k, v in resources.items() if v != "0"}
    return made


def gpu_pod(
    name: str, gpus: int = 1, annotations: dict[str, str] | None = None, **spec: object
) -> dict[str, Any]:
    """Writes a pod that asks for a CPU, a GiB and some GPUs."""
    requests = {"cpu": "1", "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    made = pod(name, requests=requests, **spec)
    made["metadata"]["annotations"] = annotations or {}
    return made


def live(made: dict[str, Any], uid: str, node: str = "", phase: str = "") -> dict[str, Any]:
    """Gives a pod as it is once the API server knows it, bound or not."""
    metadata = {**made["metadata"], "uid": uid, "creationTimestamp": "2026-11-15T10:00:00Z"}
    spec = {**made["spec"]} | ({"nodeName": node} if node else {})
    status = {"phase": phase or ("Running" if node else "Pending")}
    return {**made, "metadata": metadata, "spec": spec, "status": status}


def group(name: str, minimum: int, key: str = "") -> dict[str, Any]:
    """Writes a PodGroup of Kubernetes 1.36."""
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def resource_slice(node_name: str, gpus: int) -> dict[str, Any]:
    """Writes what a DRA driver says of the GPUs of a node."""
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {"type": {"string": "gpu"}, "productName": {"string": "A100"}},
            "capacity": {"memory": {"value": "40Gi"}},
        }
        for i in range(gpus)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-gpu"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def claim(name: str, pool: str, devices: list[str]) -> dict[str, Any]:
    """Writes a claim to which devices are allocated."""
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": pool, "device": each}
        for each in devices
    ]
    exactly = {"deviceClassName": "gpu.nvidia.com", "count": len(devices)}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def write_dump(folder: Path, objects: list[Any]) -> Path:
    """Writes objects to a file as kubectl would."""
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return file


def image(state: LiveState) -> tuple[dict[str, Any], dict[str, Any]]:
    """Shows a state so that two of them can be compared: no numbers that depend on the order."""
    kinds, racks = state.gpu_kinds, state.domain_names[0]
    nodes = {}
    for name, at in state.index.items():
        view = node_view(state.nodes[at])
        kind = kinds[view.gpu_model] if view.gpu_count else None
        rack = racks[view.rack] if view.rack >= 0 else ""
        nodes[name] = (view._replace(gpu_model=0, rack=0), kind, rack)
    pods = {uid: (pod.node, pod.slots, pod.spec) for uid, pod in state.pods.items()}
    return nodes, pods
