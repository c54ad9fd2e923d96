"""Infers the unit of an expression; literal numbers go with any unit."""

from __future__ import annotations

from collections.abc import Mapping

from podium.model.records import GPU_MILLI
from podium.search.genetic.expression import COMPARISONS, JUNCTIONS, Expression, number
from podium.search.genetic.fields import FIELDS
from podium.search.genetic.program import Program, terms
from podium.search.genetic.units import (
    BOOLEAN,
    COUNT,
    GPU,
    RATIO,
    Unit,
    divided,
    joined,
    multiplied,
    unit_of_name,
)

Units = Mapping[str, Unit]
"""The units of constants and terms, by name."""

LEAST_NORM = 100
"""A literal of at least this in a denominator stands for a quantity, as in `left / 1000`."""

_BOOLEAN = frozenset([*COMPARISONS, *JUNCTIONS, "not", "always"])
_LIKE = frozenset(["+", "-", "min", "max", "%", "neg", "abs", "sum", "smallest", "largest"])


def units_of(program: Program) -> dict[str, Unit]:
    """Finds the unit of every constant and term."""
    units = {constant.name: unit_of_name(constant.name) for constant in program.constants}
    for term in terms(program.block):
        units[term.name] = unit_of(term.expression, units)
    return units


def unit_of(expression: Expression, units: Units) -> Unit:
    """Infers a unit; a literal alone is a ratio."""
    return _unit(expression, units) or RATIO


def _unit(expression: Expression, units: Units) -> Unit | None:
    head, arguments = expression.head, expression.arguments
    if head == "number":
        return None
    if head == "field":
        return FIELDS[expression.value].unit
    if head == "name":
        return units.get(expression.value, RATIO)
    if head in _BOOLEAN:
        return BOOLEAN
    if head in _LIKE:
        return _joined(arguments[:1] if head in ("sum", "neg", "abs") else arguments, units, head)
    if head == "if":
        return _joined(arguments[1:], units, head)
    return _scaled(head, arguments, units)


def _joined(arguments: tuple[Expression, ...], units: Units, head: str) -> Unit | None:
    parts = arguments[:1] if head in ("smallest", "largest") else arguments
    known = [unit for part in parts if (unit := _unit(part, units)) is not None]
    if not known:
        return COUNT if head == "sum" else None
    # A boolean that is added counts.
    return joined([COUNT if unit == BOOLEAN else unit for unit in known])


def _scaled(head: str, arguments: tuple[Expression, ...], units: Units) -> Unit | None:
    first = _unit(arguments[0], units) if arguments else None
    if head in ("*", "/", "//"):
        second = _unit(arguments[1], units)
        if first is None and second is None:
            return None
        if head == "*" and number(GPU_MILLI) in arguments and COUNT in (first, second):
            return GPU  # so many GPUs
        if head == "*":
            return multiplied(first or _scale(second), second or _scale(first))
        is_norm = arguments[1].head == "number" and arguments[1].value >= LEAST_NORM
        return RATIO if is_norm else divided(first or RATIO, second or RATIO)
    if head == "int":
        return COUNT if first in (None, RATIO, COUNT) else first
    if head == "power" and first is not None:
        return _power(first, arguments[1].value if arguments[1].head == "number" else None)
    return RATIO


def _scale(other: Unit | None) -> Unit:
    return COUNT if other == COUNT else RATIO


def _power(unit: Unit, exponent: float | None) -> Unit:
    if exponent is None or exponent != int(exponent):
        return RATIO
    whole = int(exponent)
    return Unit(unit.cpu * whole, unit.memory * whole, unit.gpu * whole)


def is_typed(expression: Expression, units: Units) -> bool:
    """Tells whether sums, choices and comparisons meet only like units, ratios and counts alike."""
    if not all(is_typed(part, units) for part in expression.arguments):
        return False
    arguments = expression.arguments[1:] if expression.head == "if" else expression.arguments
    if expression.head not in ("+", "-", "min", "max", "if", *COMPARISONS):
        return True
    known = {unit[:3] for part in arguments if (unit := _unit(part, units)) is not None}
    return len(known) <= 1
