"""Writes manifests of nodes and pods, as short as tests need them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

DUMP = Path(__file__).parent / "cluster_dump.yaml"
_CLAIM = "persistentVolumeClaim:\n        claimName: corpus"


def write_dump_without_claims(path: Path) -> str:
    """Writes the dump of a cluster such that all is known of what its pods ask for."""
    text = DUMP.read_text()
    assert _CLAIM in text
    path.write_text(text.replace(_CLAIM, "emptyDir: {}"))
    return str(path)


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


def claim_volumes(claims: Sequence[str]) -> list[dict[str, Any]]:
    """Writes the volumes of a pod that uses claims."""
    return [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": name}}
        for number, name in enumerate(claims)
    ]


def claim(
    name: str, namespace: str = "default", gib: int = 1, mode: str = "ReadWriteOnce", **spec: object
) -> dict[str, Any]:
    """Writes a volume claim, bound where it names its volume."""
    storage = {"requests": {"storage": f"{gib}Gi"}}
    bound_to = {"pv.kubernetes.io/bind-completed": "yes"} if spec.get("volumeName") else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "annotations": bound_to},
        "spec": {"accessModes": [mode], "resources": storage, "storageClassName": "", **spec},
    }


def volume(
    name: str, labels: dict[str, str] | None = None, gib: int = 1,
    affinity: list[dict[str, Any]] | None = None, **spec: object,
) -> dict[str, Any]:  # fmt: skip
    """Writes a volume that is available, on the nodes that meet all expressions."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": affinity}]}
    places = {} if affinity is None else {"nodeAffinity": {"required": terms}}
    own = {"capacity": {"storage": f"{gib}Gi"}, "hostPath": {"path": "/none"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {**own, "accessModes": ["ReadWriteOnce"], **places, **spec},
        "status": {"phase": "Available"},
    }


def storage_class(
    name: str, provisioner: str = "csi.example.com", mode: str = "WaitForFirstConsumer",
    **fields: object,
) -> dict[str, Any]:  # fmt: skip
    """Writes a storage class."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **fields,
    }
