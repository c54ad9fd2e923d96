"""Reads how important pods are: priorities, their classes, and who may evict others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from podium.model.cluster import LIMIT
from podium.model.workload import PodSpec
from podium.traces.fields import FieldError, flag_of, mapping_at, shown, text_of, whole_of

_PREEMPTING = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Says what pods have that name a class: a priority, and whether they may evict others."""

    name: str = ""
    priority: int = 0
    never_preempts: bool = False
    is_default: bool = False  # of pods that name none, when an API server admits them


DEFAULT_CLASS = ""
"""Stands for the class that pods get which name none."""

# https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/
BUILT_IN_CLASSES = {
    "system-cluster-critical": PriorityClass("system-cluster-critical", 2_000_000_000),
    "system-node-critical": PriorityClass("system-node-critical", 2_000_001_000),
}


def of_class(spec: PodSpec, known: PriorityClass) -> PodSpec:
    """Gives a pod the priority of its class."""
    is_meek = spec.never_preempts or known.never_preempts
    return replace(spec, priority=known.priority, never_preempts=is_meek)


def read_priority_class(value: Mapping[str, Any]) -> PriorityClass:
    """Reads a PriorityClass."""
    metadata = mapping_at(value, "metadata", "metadata")
    return PriorityClass(
        text_of(metadata.get("name"), "metadata.name"),
        whole_of(value.get("value") or 0, "value", -LIMIT),
        never_preempts(value, "preemptionPolicy"),
        value.get("globalDefault") is not None and flag_of(value["globalDefault"], "globalDefault"),
    )


def never_preempts(parent: Mapping[str, Any], field: str) -> bool:
    """Tells whether a pod, or those of a PriorityClass, may not evict others."""
    policy = text_of(parent.get("preemptionPolicy"), field)
    if policy not in ("", _PREEMPTING, "Never"):
        raise FieldError(field, f"{_PREEMPTING} or Never is expected, not {shown(policy)}")
    return policy == "Never"


def priority_class_of(spec: Mapping[str, Any]) -> str:
    """Names the class of a pod whose spec does not say what it stands for."""
    if spec.get("priority") is not None:
        return ""
    return text_of(spec.get("priorityClassName"), "spec.priorityClassName")
