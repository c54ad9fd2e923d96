"""Writes the nodes and pods of a trace as objects that kube-scheduler and Podium both count."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from podium.model.cluster import Cluster, NodeSpec
from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.model.workload import PodSpec
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.partitions import partition_share
from podium.traces.kubernetes.devices.plugins import is_counted
from podium.traces.kubernetes.writer import node_object, pod_object

NAMESPACE = "default"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,63}}$){_PART}(\.{_PART})*")


def node_objects(cluster: Cluster) -> list[dict[str, Any]]:
    """Writes all nodes; those whose names Kubernetes would refuse are numbered."""
    named = zip(cluster.specs(), node_names(cluster), strict=True)
    return [_node(replace(spec, name=name)) for spec, name in named]


def node_names(cluster: Cluster) -> list[str]:
    """Names all nodes as Kubernetes takes them."""
    names = list(cluster.names)
    is_valid = all(_NAME.fullmatch(name) for name in names)
    return names if is_valid else [f"node-{i:04}" for i in range(len(names))]


def pod_objects(pods: Iterable[PodSpec]) -> list[dict[str, Any]]:
    """Writes pods, numbered in their order: all wait, in one namespace and of one priority."""
    return [_pod(spec, f"pod-{number:04}") for number, spec in enumerate(pods)]


def running_objects(pods: Iterable[PodSpec]) -> list[dict[str, Any]]:
    """Writes pods that run already, on the nodes that they name, as the others are written."""
    return [
        _pod(spec, f"running-{number:04}", spec.node, spec.gpu_slots)
        for number, spec in enumerate(pods)
    ]


def is_part(spec: PodSpec) -> bool:
    """Tells whether a pod asks for less than whole GPUs, and not for devices that are less."""
    is_device = any(partition_share(name) for name, _ in spec.constraints.extended)
    return spec.gpu_count > 0 and spec.gpu_milli < WHOLE_GPU and not is_device


def _counts_devices(resources: Iterable[str]) -> bool:
    """Tells whether resources say already which devices there are, or are asked for."""
    return any(is_counted(name, {}) or partition_share(name) for name in resources)


def _node(spec: NodeSpec) -> dict[str, Any]:
    node = node_object(spec)
    labels = node["metadata"].setdefault("labels", {})
    labels["kubernetes.io/hostname"] = spec.name
    if spec.gpu_count:
        labels[keys.NVIDIA_PRODUCT] = labels.pop(keys.GPU_CARD_MODEL)
        if spec.gpu_memory_mib:
            labels[keys.NVIDIA_MEMORY] = str(spec.gpu_memory_mib)
        if spec.gpu_replicas > 1 and not _counts_devices(spec.extended):
            labels[keys.NVIDIA_REPLICAS] = str(spec.gpu_replicas)
    for resources in node["status"].values():
        for name in keys.OPEN_GPU_SHARE:
            resources.pop(name, None)
        devices = spec.gpu_count * spec.gpu_replicas
        # HAMi lists a card many times over; parts of it are counted by Podium.
        is_more = spec.extended.get(keys.NVIDIA_GPU, 0) > devices
        if spec.gpu_count and (is_more or not _counts_devices(spec.extended)):
            resources[keys.NVIDIA_GPU] = str(devices)
    return node


def _pod(
    spec: PodSpec, name: str, node: str = "", gpu_slots: tuple[int, ...] = ()
) -> dict[str, Any]:
    """Writes a pod: whole GPUs as a resource, and parts of them, which have none, as annotations.

    An API server takes priorities from classes only, and gangs need objects of their own.
    """
    plain = replace(
        spec, constraints=replace(spec.constraints, volumes=(), sole_claims=()),
        name=name, namespace=NAMESPACE, node=node, gpu_slots=gpu_slots, gang="", priority=0,
        gpu_spec="", arrival_s=None, duration_s=None, is_terminating=False, never_preempts=False,
        exit="",
    )  # fmt: skip
    pod = pod_object(plain, is_calendar_exact=True)
    pod["metadata"].setdefault("annotations", {})
    containers = pod["spec"]["containers"]
    if is_part(spec):
        # What HAMi asks for is one of the many times that a card is listed, not a card.
        for resources in containers[0]["resources"].values():
            resources.pop(keys.NVIDIA_GPU, None)
    elif spec.gpu_count:
        for key in keys.OPEN_GPU_SHARE:
            del pod["metadata"]["annotations"][key]
        is_told = _counts_devices(name for name, _ in spec.constraints.extended)
        for resources in containers[0]["resources"].values():
            if not is_told:
                resources[keys.NVIDIA_GPU] = str(spec.gpu_count)
    if spec.gpu_spec:
        pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", _models(spec.gpu_spec))
    return pod


def _models(gpu_spec: str) -> dict[str, Any]:
    models = list(_listed(gpu_spec))
    wanted = {"key": keys.NVIDIA_PRODUCT, "operator": "In", "values": models}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    return {"requiredDuringSchedulingIgnoredDuringExecution": terms}


def _listed(gpu_spec: str) -> Iterator[str]:
    return (model.strip() for model in gpu_spec.split("|") if model.strip())
