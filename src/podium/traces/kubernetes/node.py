"""Reads a Kubernetes Node object as a node description."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from podium.model.cluster import LIMIT, NodeSpec, node_problem
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
from podium.traces.kubernetes.constraints import read_taints
from podium.traces.kubernetes.devices import DeviceError, NodeDevices, require_whole
from podium.traces.kubernetes.devices.partitions import partition_share
from podium.traces.kubernetes.domains import KNOWN, Domains

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"

SOFT_TAINTED = "PreferNoSchedule taints are not honoured"
NOT_READY = f"not ready by condition alone, read as the taint {_NOT_READY}"

_MIB = 1024**2


def node_spec(node: Mapping[str, Any], remarks: Counter[str], domains: Domains = KNOWN) -> NodeSpec:
    """Describes a node without its devices; counts in `remarks` what has no place in it."""
    metadata = mapping_at(node, "metadata", "metadata")
    name = text_of(metadata.get("name"), "metadata.name")
    if not name:
        raise FieldError("metadata.name", "the node has no name")
    labels = texts_at(metadata, "labels", "metadata.labels")
    resources = node_resources(node)
    found = domains.of(labels)
    return NodeSpec(
        name=name,
        cpu_milli=_amount(resources, "cpu", Fraction(1, 1000)),
        memory_mib=_amount(resources, "memory", Fraction(_MIB)),
        rack=found["rack"],
        labels=labels,
        taints=tuple(_taints(node, remarks)),
        block=found["block"],
        zone=found["zone"],
    )


def node_outline(node: Mapping[str, Any]) -> list[NodeSpec]:
    """Describes who may go to a node of which the rest cannot be read; nothing if not even that."""
    try:
        metadata = mapping_at(node, "metadata", "metadata")
        name = text_of(metadata.get("name"), "metadata.name")
        labels = texts_at(metadata, "labels", "metadata.labels")
        taints = tuple(_taints(node, Counter()))
    except FieldError:
        return []
    return [NodeSpec(name, LIMIT, LIMIT, labels=labels, taints=taints)]


def node_with_devices(spec: NodeSpec, devices: NodeDevices) -> NodeSpec:
    """Completes a node's description once everything is known that tells of its devices."""
    described = replace(
        spec,
        gpu_count=devices.count,
        gpu_model=devices.model,
        gpu_memory_mib=devices.memory_mib,
        gpu_replicas=devices.replicas,
        extended=devices.extended,
        has_partitions=any(map(partition_share, devices.extended)),
    )
    problem = node_problem(described)
    if problem and node_problem(replace(spec, gpu_count=devices.count, gpu_model=devices.model)):
        raise FieldError("", problem)
    if problem:
        raise DeviceError("", problem)
    return described


def node_resources(node: Mapping[str, Any]) -> dict[str, Fraction]:
    """Gives what a node has to offer.

    Capacity stands for allocatable where there is none, as the API server has it, and for CPU and
    memory that it lacks. Any other resource that only capacity lists is not to be had.
    """
    status = mapping_at(node, "status", "status")
    found: dict[str, Fraction] = {}
    for part in ("capacity", "allocatable"):
        field = f"status.{part}"
        amounts = mapping_at(status, part, field)
        if amounts:
            found = {key: found[key] for key in ("cpu", "memory") if key in found}
        found |= {key: _quantity(value, field, key) for key, value in amounts.items()}
    return found


def _quantity(value: Any, field: str, key: str) -> Fraction:
    try:
        amount = quantity_of(value, f"{field}.{key}")
    except FieldError as error:
        if key in ("cpu", "memory"):
            raise
        # One odd device never costs the whole file.
        raise DeviceError(error.field, str(error)) from error
    require_whole(key, amount)
    return amount


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
