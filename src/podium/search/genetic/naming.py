"""Finds a name for a term in what it computes."""

from __future__ import annotations

from podium.search.genetic.expression import COMPARISONS, JUNCTIONS, Expression, walk
from podium.search.genetic.inference import Units, unit_of
from podium.search.genetic.units import BOOLEAN, CPU, GPU, MEMORY, Unit

_RESOURCES = (("cpu", "cpu"), ("memory", "memory"), ("gpu", "gpu"))
_SUFFIXES = {
    "/": "ratio", "-": "gap", "+": "total", "*": "weight", "abs": "distance", "int": "steps",
    "min": "cap", "max": "floor", "power": "penalty", "if": "choice", "sqrt": "root", "neg": "cost",
    "sum": "sum", "smallest": "least", "largest": "most", "%": "rest", "//": "times",
}  # fmt: skip
_MEASURES = {CPU: "cpu_milli", MEMORY: "memory_mib", GPU: "gpu_milli"}


def name_for(expression: Expression, units: Units) -> str:
    """Makes a name of the resources that occur and of the last operation.

    >>> from podium.search.genetic.expression import apply, field
    >>> name_for(apply("/", field("pod.cpu_milli"), field("node.cpu_milli_left")), {})
    'cpu_ratio'
    """
    if expression.head in COMPARISONS or expression.head in (*JUNCTIONS, "not"):
        return f"is_{_subject(expression, units)}_{_side(expression.head)}"
    suffix = _SUFFIXES.get(expression.head, "term")
    unit = unit_of(expression, units)
    if unit in _MEASURES:
        return f"{_MEASURES[unit]}_{suffix}"
    if expression.head == "sum" and expression.arguments[0].head == "number":
        return "gpus_counted"
    return f"{_subject(expression, units)}_{suffix}"


def _side(head: str) -> str:
    sides = {"<": "low", "<=": "low", ">": "high", ">=": "high", "==": "exact", "!=": "other"}
    return sides.get(head, "case")


def _subject(expression: Expression, units: Units) -> str:
    found: list[str] = []
    for _, part in walk(expression):
        found += _resources(part, units)
    # In the order in which resources are always listed.
    return "_".join(word for _, word in _RESOURCES if word in found) or "score"


def _resources(part: Expression, units: Units) -> list[str]:
    if part.head == "field" or part.head == "name":
        unit = unit_of(part, units)
        powers = [word for key, word in _RESOURCES if _power(unit, key)]
        text = str(part.value).lower()
        return powers or [word for _, word in _RESOURCES if word in text and unit != BOOLEAN]
    return []


def _power(unit: Unit, key: str) -> int:
    return int(getattr(unit, key))
