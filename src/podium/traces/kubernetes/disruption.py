"""Reads and writes PodDisruptionBudgets, which preemption looks at before it evicts pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.model.constraints import PodSelector
from podium.model.disruption import DisruptionBudget, is_amount
from podium.traces.fields import FieldError, mapping_at, shown, text_of, whole_of
from podium.traces.kubernetes.constraints import label_selector
from podium.traces.kubernetes.constraints_writer import selector_fields


def read_budget(value: Mapping[str, Any]) -> DisruptionBudget:
    """Describes a PodDisruptionBudget object; its status says what its controller made of it."""
    metadata = mapping_at(value, "metadata", "metadata")
    spec = mapping_at(value, "spec", "spec")
    status = mapping_at(value, "status", "status")
    desired = status.get("desiredHealthy")
    return DisruptionBudget(
        name=text_of(metadata.get("name"), "metadata.name"),
        selector=PodSelector(label_selector(spec, "selector", "spec")),
        namespace=text_of(metadata.get("namespace"), "metadata.namespace"),
        min_available=_amount(spec, "minAvailable"),
        max_unavailable=_amount(spec, "maxUnavailable"),
        desired_healthy=None if desired is None else whole_of(desired, "status.desiredHealthy"),
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
    if budget.desired_healthy is not None:
        written["status"] = {"desiredHealthy": budget.desired_healthy}
    return written


def _amount(spec: Mapping[str, Any], name: str) -> str:
    text = text_of(spec.get(name), f"spec.{name}")
    if text and not is_amount(text):
        raise FieldError(
            f"spec.{name}", f"a whole number or a percentage is expected, not {shown(text)}"
        )
    return text
