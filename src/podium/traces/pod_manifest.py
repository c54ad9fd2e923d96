"""Reads a Kubernetes Pod object as a pod description."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from podium.model.cluster import LIMIT
from podium.model.workload import PodSpec, pod_problem
from podium.traces import keys
from podium.traces.fields import (
    FieldError,
    mapping_at,
    number_of,
    text_of,
    texts_at,
    time_of,
    whole_of,
)
from podium.traces.gpu_convention import pod_gpus, unmodelled
from podium.traces.model_constraint import model_constraint
from podium.traces.pod_request import pod_resources

BOUND = "spec.nodeName is not honoured, bound pods are read as arrivals"
FINISHED = "status.phase is not honoured, finished pods are read as arrivals"
PINNED = f"{keys.GPU_INDEX} is not honoured"
SELECTING = "node selection by more than the GPU model is not honoured"
CPU_SELECTING = "selection of a GPU model without asking for a GPU is not honoured"
CLASSED = "spec.priorityClassName without spec.priority is read as priority 0"

_MIB = 1024**2
_FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class PodDraft:
    """Holds a pod whose name and arrival depend on the pods beside it."""

    spec: PodSpec
    namespace: str
    created_s: float | None  # since 1970; the earliest pod of all becomes 0


def pod_draft(pod: Mapping[str, Any], remarks: Counter[str], index: int) -> PodDraft:
    """Describes a pod; counts in `remarks` what has no place in the description."""
    metadata = mapping_at(pod, "metadata", "metadata")
    spec = mapping_at(pod, "spec", "spec")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    labels = texts_at(metadata, "labels", "metadata.labels")
    resources = pod_resources(spec)
    gpus = pod_gpus(annotations, resources)
    created_s, arrival_s, duration_s = _times(metadata, annotations)
    described = PodSpec(
        name=_name(metadata, index),
        cpu_milli=_amount(resources, "cpu", Fraction(1, 1000)),
        memory_mib=_amount(resources, "memory", Fraction(_MIB)),
        gpu_count=gpus.count,
        gpu_milli=gpus.milli,
        gpu_spec=_gpu_spec(spec, annotations, gpus.count, remarks),
        arrival_s=arrival_s,
        duration_s=duration_s,
        priority=whole_of(spec.get("priority") or 0, "spec.priority", -LIMIT),
        gang=_first(keys.GANG_KEYS, labels, annotations),
        job_type=_first((keys.JOB_TYPE,), labels, annotations),
    )
    problem = pod_problem(described)
    if problem:
        raise FieldError("", problem)
    _remark(pod, annotations, resources, remarks)
    return PodDraft(described, text_of(metadata.get("namespace"), "metadata.namespace"), created_s)


def _name(metadata: Mapping[str, Any], index: int) -> str:
    name = text_of(metadata.get("name"), "metadata.name")
    prefix = text_of(metadata.get("generateName"), "metadata.generateName")
    if not name and not prefix:
        raise FieldError("metadata.name", "the pod has no name")
    return name or f"{prefix}{index}"


def _amount(resources: Mapping[str, Fraction], key: str, unit: Fraction) -> int:
    # Rounded up: a request is never understated.
    amount = math.ceil(resources.get(key, Fraction(0)) / unit)
    if amount > LIMIT:
        raise FieldError(f"spec.containers, {key}", "is more than a pod can ask for")
    return amount


def _gpu_spec(
    spec: Mapping[str, Any], annotations: Mapping[str, str], gpu_count: int, remarks: Counter[str]
) -> str:
    constraint = model_constraint(spec)
    if constraint.has_others:
        remarks[SELECTING] += 1
    if constraint.models and not gpu_count:
        remarks[CPU_SELECTING] += 1
    annotated = annotations.get(keys.GPU_CARD_MODEL, "")
    if annotated or not gpu_count:
        return annotated
    return "|".join(constraint.models)


def _times(
    metadata: Mapping[str, Any], annotations: Mapping[str, str]
) -> tuple[float | None, float | None, float | None]:
    arrival_s = _seconds(annotations, keys.ARRIVAL_S)
    duration_s = _seconds(annotations, keys.DURATION_S)
    created_s = None
    if annotations.get(keys.CREATION_TIME):
        created_s = time_of(annotations[keys.CREATION_TIME], keys.CREATION_TIME)
    elif metadata.get("creationTimestamp") is not None:
        created_s = time_of(metadata["creationTimestamp"], "metadata.creationTimestamp")
    if duration_s is None and created_s is not None and annotations.get(keys.DELETION_TIME):
        duration_s = time_of(annotations[keys.DELETION_TIME], keys.DELETION_TIME) - created_s
        if duration_s < 0:
            raise FieldError(keys.DELETION_TIME, "the pod is deleted before it is created")
    return created_s, arrival_s, duration_s


def _seconds(annotations: Mapping[str, str], key: str) -> float | None:
    text = annotations.get(key)
    return None if text is None else number_of(text, f"metadata.annotations.{key}")


def _first(names: tuple[str, ...], labels: Mapping[str, str], marks: Mapping[str, str]) -> str:
    return next((found[key] for key in names for found in (labels, marks) if found.get(key)), "")


def _remark(
    pod: Mapping[str, Any],
    annotations: Mapping[str, str],
    resources: Mapping[str, Fraction],
    remarks: Counter[str],
) -> None:
    spec = mapping_at(pod, "spec", "spec")
    status = mapping_at(pod, "status", "status")
    is_finished = text_of(status.get("phase"), "status.phase") in _FINISHED_PHASES
    seen = {
        FINISHED: is_finished,
        BOUND: bool(spec.get("nodeName")) and not is_finished,
        PINNED: bool(annotations.get(keys.GPU_INDEX)),
        CLASSED: bool(spec.get("priorityClassName")) and spec.get("priority") is None,
    }
    remarks.update([text for text, is_seen in seen.items() if is_seen])
    remarks.update(f"the resource {name} is not modelled" for name in unmodelled(resources))
