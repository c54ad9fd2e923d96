"""Expressions of a policy: a number, a field, a name, or an operation on expressions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import field as attribute
from typing import Any

_NONE: frozenset[str] = frozenset()

Path = tuple[int, ...]
"""Leads from an expression to one of its parts, argument by argument."""

SUMS = ("+", "-")
PRODUCTS = ("*", "/", "//", "%")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
JUNCTIONS = ("and", "or")
CALLS = ("abs", "min", "max", "int")
FUNCTIONS = ("sqrt", "exp", "log", "tanh", "floor", "ceil")
REDUCTIONS = ("sum", "smallest", "largest")
"""Over GPU slots; arguments: what is reduced, the condition, and the number to begin with."""


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """Applies a head to arguments; numbers, fields and names have a value instead.

    Heads: number, field, name; the operators above; neg, not, power, if (condition, then,
    else); always, the condition that is no condition; the reductions, whose value is the span
    "gpus" (the node's GPUs) or "slots" (all slots of the record); call, whose value is a function
    of the program; and hold, which refuses.
    """

    head: str
    arguments: tuple[Expression, ...] = ()
    value: Any = None
    # Computed once, from the parts': breeding asks for them all the time.
    size: int = attribute(init=False, repr=False)
    names: frozenset[str] = attribute(init=False, repr=False)
    fields: frozenset[str] = attribute(init=False, repr=False)
    calls: frozenset[str] = attribute(init=False, repr=False)
    digest: int = attribute(init=False, repr=False)

    def __post_init__(self) -> None:
        names = frozenset((self.value,)) if self.head == "name" else _NONE
        fields = frozenset((self.value,)) if self.head == "field" else _NONE
        calls = frozenset((self.value,)) if self.head == "call" else _NONE
        size = 0 if self.head == "always" else 1
        for part in self.arguments:
            size += part.size
            names = names | part.names if part.names else names
            fields = fields | part.fields if part.fields else fields
            calls = calls | part.calls if part.calls else calls
        give = object.__setattr__
        give(self, "size", size)
        give(self, "names", names)
        give(self, "fields", fields)
        give(self, "calls", calls)
        give(self, "digest", hash((self.head, self.value, *(p.digest for p in self.arguments))))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Expression) or self.digest != other.digest:
            return False
        same = self.head == other.head and self.value == other.value
        return same and self.arguments == other.arguments

    def __hash__(self) -> int:
        return self.digest

    def __reduce__(self) -> tuple[type[Expression], tuple[object, ...]]:
        # A digest holds for one process only.
        return Expression, (self.head, self.arguments, self.value)

    @property
    def is_leaf(self) -> bool:
        """Returns whether the expression has no arguments."""
        return not self.arguments


ALWAYS = Expression("always")
HOLD = Expression("hold")


def number(value: float) -> Expression:
    """Builds a literal number."""
    return Expression("number", (), value)


def field(name: str) -> Expression:
    """Builds a read of a pod's or node's field, as it is written."""
    return Expression("field", (), name)


def name(identifier: str) -> Expression:
    """Builds a reference to a term or a constant."""
    return Expression("name", (), identifier)


def call(function: str, *arguments: Expression) -> Expression:
    """Calls a function of the program."""
    return Expression("call", arguments, function)


def apply(head: str, *arguments: Expression) -> Expression:
    """Applies an operation, as Python reads it: negated numbers are negative, junctions flat."""
    return _normal(head, arguments, None)


def reduction(
    head: str, value: Expression, condition: Expression = ALWAYS, start: float = 0,
    span: str = "gpus",
) -> Expression:  # fmt: skip
    """Builds a loop over GPU slots."""
    return Expression(head, (value, condition, number(start)), span)


def walk(expression: Expression, path: Path = ()) -> Iterator[tuple[Path, Expression]]:
    """Visits an expression and its parts, the whole first."""
    waiting = [(path, expression)]
    while waiting:
        path, expression = waiting.pop()
        yield path, expression
        for index, part in reversed(list(enumerate(expression.arguments))):
            waiting.append(((*path, index), part))


def part_at(expression: Expression, path: Path) -> Expression:
    """Returns the part that a path leads to."""
    for index in path:
        expression = expression.arguments[index]
    return expression


def replaced(expression: Expression, path: Path, part: Expression) -> Expression:
    """Returns the expression with another part at the end of a path."""
    if not path:
        return part
    inner = replaced(expression.arguments[path[0]], path[1:], part)
    arguments = list(expression.arguments)
    arguments[path[0]] = inner
    return with_arguments(expression, tuple(arguments))


def with_arguments(expression: Expression, arguments: tuple[Expression, ...]) -> Expression:
    """Applies the same head to other arguments."""
    return _normal(expression.head, arguments, expression.value)


def _normal(head: str, arguments: tuple[Expression, ...], value: object) -> Expression:
    if head == "neg" and arguments[0].head == "number":
        return number(-arguments[0].value)
    if head in JUNCTIONS and any(part.head == head for part in arguments):
        parts = (part.arguments if part.head == head else (part,) for part in arguments)
        return Expression(head, tuple(itertools.chain(*parts)))
    return Expression(head, arguments, value)


def mapped(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Changes every part, from the leaves up."""
    if expression.arguments:
        arguments = tuple(mapped(part, change) for part in expression.arguments)
        if any(new is not old for new, old in zip(arguments, expression.arguments, strict=True)):
            expression = with_arguments(expression, arguments)
    return change(expression)


def renamed(expression: Expression, names: dict[str, str]) -> Expression:
    """Returns the expression with its names replaced, those of functions too."""
    if expression.names.isdisjoint(names) and expression.calls.isdisjoint(names):
        return expression

    def change(part: Expression) -> Expression:
        if part.head not in ("name", "call") or part.value not in names:
            return part
        return Expression(part.head, part.arguments, names[part.value])

    return mapped(expression, change)


def has_field(expression: Expression, fields: frozenset[str]) -> bool:
    """Returns whether an expression reads one of the fields."""
    return not fields.isdisjoint(expression.fields)
