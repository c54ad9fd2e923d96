"""Bounds every value that a program can compute, on any cluster that Podium can describe.

Plain Python counts without limit and compiled code in 64 bits; the two agree as long as whole
numbers stay exact in a double and the others finite.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium.search.program.expression import COMPARISONS, JUNCTIONS, Expression
from podium.search.program.ingredients import CONSTANTS, INGREDIENTS, genuine
from podium.search.program.program import Constant, Function, Program, Statement, Term, terms
from podium.search.program.units import FIELDS, MOST_GPUS

MOST_WHOLE = 2.0**53
MOST = 1e100
LARGEST_EXPONENT = 200.0


class Bounds(NamedTuple):
    """The least and the greatest value, and whether all values are whole numbers, or some."""

    low: float
    high: float
    is_whole: bool = False
    is_mixed: bool = False

    @property
    def may_be_whole(self) -> bool:
        """Returns whether Python may count such a value exactly, without limit."""
        return self.is_whole or self.is_mixed

    @property
    def is_sound(self) -> bool:
        """Returns whether plain and compiled code agree on all these values."""
        most = MOST_WHOLE if self.may_be_whole else MOST
        return -most < self.low <= self.high < most

    @property
    def has_zero(self) -> bool:
        """Returns whether dividing by such a value can fail."""
        return self.low <= 0 <= self.high


UNSOUND = Bounds(-math.inf, math.inf)
_TRUTH = Bounds(0, 1, True)
_TRUTHS = frozenset([*COMPARISONS, *JUNCTIONS, "not", "always"])


@dataclass(slots=True)
class Known:
    """Knows the bounds of names, and remembers those of expressions."""

    names: dict[str, Bounds]
    functions: dict[str, Function] = field(default_factory=dict)
    found: dict[Expression, Bounds] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program) -> Known:
        """Bounds the constants of a program: a tunable one by what it may become."""
        names = {each.name: _bounds_of_constant(each) for each in program.constants}
        if all(_is_usual(title, names[title]) for title in CONSTANTS if title in names):
            own = ingredient_bounds()
            names |= {title: own[title] for title in genuine(terms(program.block))}
        return cls(names, {each.name: each for each in program.functions})

    def define(self, name: str, expression: Expression) -> Bounds:
        """Bounds a term for those that refer to it."""
        if name not in self.names:
            self.names[name] = bounds_of(expression, self)
        return self.names[name]

    def called(self, name: str, arguments: list[Bounds]) -> Bounds:
        """Bounds what a function returns for arguments within bounds."""
        function = self.functions.get(name)
        if function is None or len(arguments) != len(function.parameters):
            return UNSOUND
        given = dict(zip(function.parameters, arguments, strict=True))
        return bounds_of(function.expression, Known(self.names | given, self.functions))


def _bounds_of_constant(constant: Constant) -> Bounds:
    low, high = constant.bounds or (constant.value, constant.value)
    return Bounds(low, high, constant.bounds is None and isinstance(constant.value, int))


def _is_usual(title: str, bounds: Bounds) -> bool:
    expected = _bounds_of_constant(CONSTANTS[title])
    return expected.low <= bounds.low and bounds.high <= expected.high


@functools.cache
def ingredient_bounds() -> dict[str, Bounds]:
    """Bounds the ingredients, once."""
    known = Known({title: _bounds_of_constant(each) for title, each in CONSTANTS.items()})
    return {title: known.define(title, each) for title, each in INGREDIENTS.items()}


def is_sound(program: Program) -> bool:
    """Returns whether every value is bounded, and no division, root or logarithm can fail."""
    known = Known.of(program)
    for statement in program.block.statements:
        if not _is_sound(statement, known):
            return False
    return bounds_of(program.block.result, known).is_sound


def _is_sound(statement: Statement, known: Known) -> bool:
    if isinstance(statement, Term):
        return known.define(statement.name, statement.expression).is_sound
    if not bounds_of(statement.condition, known).is_sound:
        return False
    inner = all(_is_sound(each, known) for each in statement.block.statements)
    result = statement.block.result
    return inner and (result.head == "hold" or bounds_of(result, known).is_sound)


def is_within(records: npt.NDArray[np.void], record: str) -> bool:
    """Returns whether the fields of nodes or pods are within their bounds."""
    return all(
        each.low <= records[title].min(initial=0) and records[title].max(initial=0) <= each.high
        for title in records.dtype.names or ()
        if (each := _FIELDS.get(f"{record}.{title}")) is not None
    )


def bounds_of(expression: Expression, known: Known) -> Bounds:
    """Bounds an expression; it is unsound as a whole if any part is."""
    head = expression.head
    if head == "number":
        return Bounds(expression.value, expression.value, isinstance(expression.value, int))
    if head == "field":
        return _FIELDS[expression.value]
    if head == "name":
        return known.names.get(expression.value, UNSOUND)
    found = known.found.get(expression)
    if found is None:
        found = known.found[expression] = _bounds(expression, known)
    return found


def _bounds(expression: Expression, known: Known) -> Bounds:
    parts = [bounds_of(part, known) for part in expression.arguments]
    if UNSOUND in parts:
        return UNSOUND
    if expression.head in _TRUTHS:
        return _TRUTH
    if expression.head == "call":
        return known.called(expression.value, parts)
    found = _operation(expression.head, parts)
    return found if found.is_sound else UNSOUND


_FIELDS = {title: Bounds(each.low, each.high, True) for title, each in FIELDS.items()}


def _operation(head: str, parts: list[Bounds]) -> Bounds:
    if head in ("+", "-", "*"):
        return _arithmetic(head, parts[0], parts[1])
    if head in ("/", "//", "%"):
        return _division(head, parts[0], parts[1])
    if head in ("min", "max"):
        return _extreme(head, parts)
    if head in ("sum", "smallest", "largest"):
        return _reduction(head, *parts)
    if head == "if":
        return _hull(parts[1], parts[2])
    if head == "power":
        return _power(parts[0], parts[1])
    return _function(head, parts[0]) if parts else UNSOUND


def _arithmetic(head: str, left: Bounds, right: Bounds) -> Bounds:
    sorts = _sorts(left, right)
    if head == "+":
        return Bounds(left.low + right.low, left.high + right.high, *sorts)
    if head == "-":
        return Bounds(left.low - right.high, left.high - right.low, *sorts)
    return _corners([a * b for a in left[:2] for b in right[:2]], *sorts)


def _sorts(left: Bounds, right: Bounds) -> tuple[bool, bool]:
    """Returns whether what is computed from both is whole, and if not, whether it may be."""
    is_whole = left.is_whole and right.is_whole
    return is_whole, not is_whole and left.may_be_whole and right.may_be_whole


def _division(head: str, left: Bounds, right: Bounds) -> Bounds:
    if right.has_zero:
        return UNSOUND
    sorts = _sorts(left, right)
    if head == "%":
        most = max(abs(right.low), abs(right.high))
        return Bounds(-most, most, *sorts)
    found = _corners([a / b for a in left[:2] for b in right[:2]])
    if head == "/" or not found.is_sound:
        return found
    return Bounds(math.floor(found.low), math.floor(found.high), *sorts)


def _extreme(head: str, parts: list[Bounds]) -> Bounds:
    pick = min if head == "min" else max
    low, high = pick(part.low for part in parts), pick(part.high for part in parts)
    return Bounds(low, high, *_either(*parts))


def _either(*parts: Bounds) -> tuple[bool, bool]:
    """Returns whether one of several values is whole, whichever; if not, whether it may be."""
    is_whole = all(part.is_whole for part in parts)
    return is_whole, not is_whole and any(part.may_be_whole for part in parts)


def _reduction(head: str, value: Bounds, _condition: Bounds, start: Bounds) -> Bounds:
    if head != "sum":
        return _hull(value, start)
    low, high = MOST_GPUS * min(0, value.low), MOST_GPUS * max(0, value.high)
    is_whole = value.is_whole and start.is_whole
    is_mixed = not is_whole and start.may_be_whole
    return Bounds(low + start.low, high + start.high, is_whole, is_mixed)


def _hull(one: Bounds, other: Bounds) -> Bounds:
    return Bounds(min(one.low, other.low), max(one.high, other.high), *_either(one, other))


def _power(base: Bounds, exponent: Bounds) -> Bounds:
    raised = exponent.low
    if exponent.low != exponent.high or (base.low < 0 and raised != int(raised)):
        return UNSOUND
    if base.has_zero and raised < 0:
        return UNSOUND
    try:
        ends = [float(base.low) ** raised, float(base.high) ** raised]
    except OverflowError:
        return UNSOUND
    is_mixed = raised >= 0 and base.may_be_whole and exponent.may_be_whole
    return _corners([*ends, 0.0] if base.has_zero and raised > 0 else ends, False, is_mixed)


def _function(head: str, part: Bounds) -> Bounds:
    low, high, *sorts = part
    if head == "neg":
        return Bounds(-high, -low, *sorts)
    if head == "abs":
        least = 0.0 if part.has_zero else min(abs(low), abs(high))
        return Bounds(least, max(abs(low), abs(high)), *sorts)
    if head in ("int", "floor", "ceil"):
        return Bounds(math.floor(low), math.ceil(high), True)
    if head == "tanh":
        return Bounds(-1.0, 1.0)
    if head == "exp" and high <= LARGEST_EXPONENT:
        return Bounds(math.exp(low), math.exp(high))
    if head == "sqrt" and low >= 0:
        return Bounds(math.sqrt(low), math.sqrt(high))
    if head == "log" and low > 0:
        return Bounds(math.log(low), math.log(high))
    return UNSOUND


def _corners(values: list[float], *sorts: bool) -> Bounds:
    return Bounds(min(values), max(values), *sorts)
