"""Declares the numbers of a program as constants to be tuned: the ceiling of one formula.

What tuning alone reaches says what a search for structure adds to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from podium.search.program.expression import (
    COMPARISONS,
    JUNCTIONS,
    REDUCTIONS,
    Expression,
    apply,
    name,
    with_arguments,
)
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
    drawer = _Drawer.of(program)
    weighed = with_result(program, _mapped(program.block.result, drawer.weighed, _UNWEIGHED))
    return drawer.declared(weighed)


@dataclass(slots=True)
class _Drawer:
    taken: set[str]
    constants: list[Constant] = field(default_factory=list)

    @classmethod
    def of(cls, program: Program) -> _Drawer:
        drawer = cls(names_given(program), list(program.constants))
        drawer.constants = [drawer.bounded(each) for each in drawer.constants]
        return drawer

    def declared(self, program: Program) -> Program:
        """Declares the numbers that are left."""
        functions = tuple(
            replace(each, expression=_mapped(each.expression, self.number))
            for each in program.functions
        )
        own = [_mapped(root, self.number) for root in roots(program.block)]
        block = with_roots(program.block, iter(own))
        return replace(program, block=block, functions=functions, constants=tuple(self.constants))

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


_FIXED_PARTS = dict.fromkeys(REDUCTIONS, 2) | dict.fromkeys(("power", "%", "//"), 1)
"""How many arguments are looked into: loops begin, and powers rise, as they are written."""

_EXACT = frozenset(["==", "!="])
"""What is compared exactly is no matter of taste."""

_UNWEIGHED = frozenset([*COMPARISONS, *JUNCTIONS, "not", *_FIXED_PARTS])


def _mapped(
    part: Expression,
    change: Callable[[Expression], Expression],
    closed: frozenset[str] = _EXACT,
) -> Expression:
    """Rewrites an expression from the leaves up; what has a closed head stays as it is."""
    if part.head in closed:
        return part
    count = _FIXED_PARTS.get(part.head, len(part.arguments))
    looked = tuple(_mapped(each, change, closed) for each in part.arguments[:count])
    arguments = (*looked, *part.arguments[count:])
    same = arguments == part.arguments
    return change(part if same else with_arguments(part, arguments))
