"""Finds the GPU models that a pod's node selector and node affinity allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.traces.fields import FieldError, list_at, mapping_at, mappings_at, text_of, texts_at
from podium.traces.keys import MODEL_LABELS

_AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class ModelConstraint:
    """Says which models are allowed, and whether other constraints were seen."""

    models: tuple[str, ...]  # in the order written, empty = any
    has_others: bool  # selects nodes by something else than the GPU model


def model_constraint(spec: Mapping[str, Any]) -> ModelConstraint:
    """Reads `nodeSelector` and the required `In` terms of the node affinity."""
    selector = texts_at(spec, "nodeSelector", "spec.nodeSelector")
    selected = [{selector[key]: None} for key in MODEL_LABELS if key in selector]
    has_others = len(selected) < len(selector)
    affinity, has_other_terms = _affinity_models(spec)
    if affinity is not None:
        selected.append(affinity)
    return ModelConstraint(_common(selected), has_others or has_other_terms)


def _common(choices: list[dict[str, None]]) -> tuple[str, ...]:
    if not choices:
        return ()
    common = [model for model in choices[0] if all(model in choice for choice in choices)]
    if not common:
        raise FieldError(
            "spec.affinity", "no GPU model satisfies the node selector and the node affinity"
        )
    return tuple(common)


def _affinity_models(spec: Mapping[str, Any]) -> tuple[dict[str, None] | None, bool]:
    affinity = mapping_at(spec, "affinity", "spec.affinity")
    node_affinity = mapping_at(affinity, "nodeAffinity", "spec.affinity.nodeAffinity")
    required = mapping_at(
        node_affinity, "requiredDuringSchedulingIgnoredDuringExecution", _AFFINITY
    )
    terms = mappings_at(required, "nodeSelectorTerms", f"{_AFFINITY}.nodeSelectorTerms")
    allowed: dict[str, None] = {}
    is_any, has_others = not terms, False
    for index, term in enumerate(terms):
        models, has_more = _term_models(term, f"{_AFFINITY}.nodeSelectorTerms[{index}]")
        has_others |= has_more
        # Terms are alternatives: one that leaves the model open leaves it open altogether.
        is_any |= models is None
        allowed.update(models or {})
    return None if is_any else allowed, has_others


def _term_models(term: Mapping[str, Any], field: str) -> tuple[dict[str, None] | None, bool]:
    models: dict[str, None] | None = None
    has_others = bool(mappings_at(term, "matchFields", f"{field}.matchFields"))
    for rule in mappings_at(term, "matchExpressions", f"{field}.matchExpressions"):
        key = text_of(rule.get("key"), f"{field}.key")
        if key not in MODEL_LABELS or text_of(rule.get("operator"), f"{field}.operator") != "In":
            has_others = True
            continue
        values = [text_of(value, field) for value in list_at(rule, "values", f"{field}.values")]
        models = {value: None for value in values if models is None or value in models}
    return models, has_others
