"""Reads a Kubernetes Node object as a node description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from podium.model.cluster import LIMIT, NodeSpec
from podium.traces.fields import (
    FieldError,
    flag_of,
    mapping_at,
    mappings_at,
    quantity_of,
    text_of,
    texts_at,
)
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.gpu_convention import node_gpus, node_model, unmodelled

CORDONED = "spec.unschedulable is not honoured"
TAINTED = "NoSchedule and NoExecute taints are not honoured"
UNLISTED_GPUS = "the label nvidia.com/gpu.count without the resource nvidia.com/gpu gives no GPUs"

_MIB = 1024**2


def node_spec(node: Mapping[str, Any], remarks: Counter[str]) -> NodeSpec:
    """Describes a node; counts in `remarks` what has no place in the description."""
    metadata = mapping_at(node, "metadata", "metadata")
    name = text_of(metadata.get("name"), "metadata.name")
    if not name:
        raise FieldError("metadata.name", "the node has no name")
    labels = texts_at(metadata, "labels", "metadata.labels")
    resources = _resources(node)
    gpu_count = node_gpus(resources)
    _remark(node, labels, resources, remarks)
    return NodeSpec(
        name=name,
        cpu_milli=_amount(resources, "cpu", Fraction(1, 1000)),
        memory_mib=_amount(resources, "memory", Fraction(_MIB)),
        gpu_count=gpu_count,
        gpu_model=node_model(labels) if gpu_count else "",
        rack=next((labels[key] for key in keys.RACK_LABELS if labels.get(key)), ""),
        labels=labels,
    )


def _resources(node: Mapping[str, Any]) -> dict[str, Fraction]:
    status = mapping_at(node, "status", "status")
    found: dict[str, Fraction] = {}
    for part in ("capacity", "allocatable"):
        field = f"status.{part}"
        amounts = mapping_at(status, part, field)
        found |= {key: quantity_of(value, f"{field}.{key}") for key, value in amounts.items()}
    return found


def _amount(resources: Mapping[str, Fraction], key: str, unit: Fraction) -> int:
    if key not in resources:
        raise FieldError(
            f"status.allocatable.{key}", f"the node does not say how much {key} it has"
        )
    # Rounded down: capacity is never overstated.
    amount = int(resources[key] / unit)
    if amount > LIMIT:
        raise FieldError(f"status.allocatable.{key}", "is more than a node can have")
    return amount


def _remark(
    node: Mapping[str, Any],
    labels: Mapping[str, str],
    resources: Mapping[str, Fraction],
    remarks: Counter[str],
) -> None:
    spec = mapping_at(node, "spec", "spec")
    if spec.get("unschedulable") is not None and flag_of(
        spec["unschedulable"], "spec.unschedulable"
    ):
        remarks[CORDONED] += 1
    taints = mappings_at(spec, "taints", "spec.taints")
    effects = {text_of(taint.get("effect"), "spec.taints") for taint in taints}
    if effects & {"NoSchedule", "NoExecute"}:
        remarks[TAINTED] += 1
    if keys.NVIDIA_COUNT in labels and not {keys.NVIDIA_GPU, keys.GPU_COUNT} & resources.keys():
        remarks[UNLISTED_GPUS] += 1
    for name in unmodelled(resources):
        remarks[f"the resource {name} is not modelled"] += 1
