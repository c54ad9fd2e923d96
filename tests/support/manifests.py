"""Writes manifests of nodes and pods, as short as tests need them."""

from __future__ import annotations

from typing import Any


def node(name: str, labels: dict[str, str] | None = None, **spec: object) -> dict[str, Any]:
    """Writes a node of 8 CPUs, 32 GiB and 4 GPUs, labelled with its name as a kubelet does."""
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "4"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"capacity": resources, "allocatable": resources},
    }


def pod(
    name: str,
    labels: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    namespace: str = "default",
    **spec: object,
) -> dict[str, Any]:
    """Writes a pod with one container that asks for resources, which are its limits too."""
    resources = {"requests": requests or {}, "limits": requests or {}}
    container = {"name": "main", "image": "none", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def bound(manifest: dict[str, Any], node_name: str) -> dict[str, Any]:
    """Lets a pod run on a node."""
    spec = {**manifest["spec"], "nodeName": node_name}
    return {**manifest, "spec": spec, "status": {"phase": "Running"}}
