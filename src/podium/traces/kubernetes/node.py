"""Reads a Kubernetes Node object as a node description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from podium.model.cluster import LIMIT, NodeSpec
from podium.model.constraints import UNSCHEDULABLE, Taint
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
from podium.traces.kubernetes.constraints import read_taints
from podium.traces.kubernetes.domains import KNOWN, Domains
from podium.traces.kubernetes.gpu_convention import node_gpus, node_model, unmodelled

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"

SOFT_TAINTED = "PreferNoSchedule taints are not honoured"
NOT_READY = f"not ready by condition alone, read as the taint {_NOT_READY}"
UNLISTED_GPUS = "the label nvidia.com/gpu.count without the resource nvidia.com/gpu gives no GPUs"

_MIB = 1024**2


def node_spec(node: Mapping[str, Any], remarks: Counter[str], domains: Domains = KNOWN) -> NodeSpec:
    """Describes a node; counts in `remarks` what has no place in the description."""
    metadata = mapping_at(node, "metadata", "metadata")
    name = text_of(metadata.get("name"), "metadata.name")
    if not name:
        raise FieldError("metadata.name", "the node has no name")
    labels = texts_at(metadata, "labels", "metadata.labels")
    resources = _resources(node)
    gpu_count = node_gpus(resources)
    _remark(labels, resources, remarks)
    found = domains.of(labels)
    return NodeSpec(
        name=name,
        cpu_milli=_amount(resources, "cpu", Fraction(1, 1000)),
        memory_mib=_amount(resources, "memory", Fraction(_MIB)),
        gpu_count=gpu_count,
        gpu_model=node_model(labels) if gpu_count else "",
        rack=found["rack"],
        labels=labels,
        taints=tuple(_taints(node, remarks)),
        block=found["block"],
        zone=found["zone"],
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


def _taints(node: Mapping[str, Any], remarks: Counter[str]) -> Iterator[Taint]:
    """Gives the taints of a node, with those that its state stands for."""
    spec = mapping_at(node, "spec", "spec")
    written = read_taints(spec, "spec.taints")
    yield from written
    keys_written = {taint.key for taint in written}
    is_cordoned = spec.get("unschedulable") is not None and flag_of(
        spec["unschedulable"], "spec.unschedulable"
    )
    if is_cordoned and UNSCHEDULABLE not in keys_written:
        yield Taint(UNSCHEDULABLE)
    # The node controller taints a node some seconds after its condition has changed.
    if not _is_ready(node) and not keys_written & {_NOT_READY, _UNREACHABLE}:
        remarks[NOT_READY] += 1
        yield Taint(_NOT_READY)
    if any(taint.effect == "PreferNoSchedule" for taint in written):
        remarks[SOFT_TAINTED] += 1


def _is_ready(node: Mapping[str, Any]) -> bool:
    status = mapping_at(node, "status", "status")
    for condition in mappings_at(status, "conditions", "status.conditions"):
        if condition.get("type") == "Ready":
            return text_of(condition.get("status"), "status.conditions") == "True"
    return True


def _remark(
    labels: Mapping[str, str], resources: Mapping[str, Fraction], remarks: Counter[str]
) -> None:
    if keys.NVIDIA_COUNT in labels and not {keys.NVIDIA_GPU, keys.GPU_COUNT} & resources.keys():
        remarks[UNLISTED_GPUS] += 1
    for name in unmodelled(resources):
        remarks[f"the resource {name} is not modelled"] += 1
