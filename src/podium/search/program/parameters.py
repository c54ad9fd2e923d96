"""Declares the numbers of a program as constants to be tuned: the ceiling of one formula.

What tuning alone reaches says what a search for structure adds to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from podium.search.program.expression import Expression, apply, name, with_arguments
from podium.search.program.program import (
    Constant,
    Program,
    fresh,
    names_given,
    roots,
    with_result,
    with_roots,
)

MOST = 12
FIXED = (0, 1, -1, 1000)
"""Numbers that are not tuned: zero, one, and a whole GPU."""

RANGE = 4.0
"""How many times larger or smaller a number may become."""


def with_tunables(program: Program) -> Program:
    """Declares the numbers of a program, and a weight for each term of its score."""
    drawer = _Drawer(names_given(program), list(program.constants))
    drawer.constants = [drawer.bounded(each) for each in drawer.constants]
    weighed = with_result(program, _mapped(program.block.result, drawer.weighed))
    block = with_roots(
        weighed.block, iter([_mapped(r, drawer.number) for r in roots(weighed.block)])
    )
    return replace(weighed, block=block, constants=tuple(drawer.constants))


@dataclass(slots=True)
class _Drawer:
    taken: set[str]
    constants: list[Constant] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return sum(each.bounds is not None for each in self.constants) >= MOST

    def bounded(self, constant: Constant) -> Constant:
        if constant.bounds or constant.value in FIXED or self.is_full:
            return constant
        return replace(constant, bounds=_bounds(constant.value))

    def number(self, part: Expression) -> Expression:
        if part.head != "number" or part.value in FIXED or self.is_full:
            return part
        return self._declared("NUMBER", float(part.value), _bounds(float(part.value)))

    def weighed(self, part: Expression) -> Expression:
        if part.head not in ("+", "-") or self.is_full:
            return part
        return apply(part.head, *(self._weighed(each) for each in part.arguments))

    def _weighed(self, part: Expression) -> Expression:
        if part.head == "number" or part.head in ("+", "-") or self.is_full:
            return part
        return apply("*", self._declared("WEIGHT", 1.0, (-2.0, RANGE)), part)

    def _declared(self, base: str, value: float, bounds: tuple[float, float]) -> Expression:
        title = fresh(base, self.taken)
        self.taken.add(title)
        self.constants.append(Constant(title, value, bounds))
        return name(title)


def _bounds(value: float) -> tuple[float, float]:
    return (min(value / RANGE, value * RANGE), max(value / RANGE, value * RANGE))


def _mapped(part: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """Rewrites an expression from the leaves up; conditions and loops stay as they are."""
    if part.head in ("sum", "smallest", "largest", "power", "%", "//"):
        return part
    arguments = tuple(_mapped(each, change) for each in part.arguments)
    if part.head == "if":
        arguments = (part.arguments[0], *arguments[1:])
    same = arguments == part.arguments
    return change(part if same else with_arguments(part, arguments))
