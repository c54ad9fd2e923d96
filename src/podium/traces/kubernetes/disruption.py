"""Reads and writes PodDisruptionBudgets, which preemption looks at before it evicts pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.model.constraints import PodSelector
from podium.model.disruption import DisruptionBudget, is_amount
from podium.traces.fields import FieldError, mapping_at, shown, text_of, whole_of
from podium.traces.kubernetes.constraints import label_selector
from podium.traces.kubernetes.constraints_writer import selector_fields

_LONG_AGO = "1970-01-01T00:00:00Z"  # when an eviction began plays no part


def read_budget(value: Mapping[str, Any]) -> DisruptionBudget:
    """Describes a PodDisruptionBudget object; its status says what its controller made of it."""
    metadata = mapping_at(value, "metadata", "metadata")
    spec = mapping_at(value, "spec", "spec")
    status = mapping_at(value, "status", "status")
    disrupted = mapping_at(status, "disruptedPods", "status.disruptedPods")
    return DisruptionBudget(
        name=text_of(metadata.get("name"), "metadata.name"),
        selector=PodSelector(label_selector(spec, "selector", "spec")),
        namespace=text_of(metadata.get("namespace"), "metadata.namespace"),
        min_available=_amount(spec, "minAvailable"),
        max_unavailable=_amount(spec, "maxUnavailable"),
        desired_healthy=_number(status, "desiredHealthy"),
        disruptions_allowed=_number(status, "disruptionsAllowed"),
        disrupted=tuple(sorted(disrupted)),
    )


def budget_object(budget: DisruptionBudget) -> dict[str, Any]:
    """Gives the PodDisruptionBudget object of a description."""
    amounts = {"minAvailable": budget.min_available, "maxUnavailable": budget.max_unavailable}
    spec = {
        name: amount if amount.endswith("%") else int(amount)
        for name, amount in amounts.items()
        if amount
    }
    metadata = {"name": budget.name}
    written: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata | ({"namespace": budget.namespace} if budget.namespace else {}),
        "spec": {**spec, **selector_fields(budget.selector, "selector")},
    }
    status = _status(budget)
    return written | ({"status": status} if status else {})


def _status(budget: DisruptionBudget) -> dict[str, Any]:
    numbers = {
        "desiredHealthy": budget.desired_healthy,
        "disruptionsAllowed": budget.disruptions_allowed,
    }
    found: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    if budget.disrupted:
        found["disruptedPods"] = dict.fromkeys(budget.disrupted, _LONG_AGO)
    return found


def _number(status: Mapping[str, Any], name: str) -> int | None:
    value = status.get(name)
    return None if value is None else whole_of(value, f"status.{name}")


def _amount(spec: Mapping[str, Any], name: str) -> str:
    text = text_of(spec.get(name), f"spec.{name}")
    if text and not is_amount(text):
        raise FieldError(
            f"spec.{name}", f"a whole number or a percentage is expected, not {shown(text)}"
        )
    return text
