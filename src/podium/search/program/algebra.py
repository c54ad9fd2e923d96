"""Condenses scores: merges terms that are alike, and drops those that never change a decision.

Unlike simplifying this may round otherwise, and shifts or scales scores: it is for new programs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from podium.search.program.expression import (
    HOLD,
    REDUCTIONS,
    Expression,
    apply,
    name,
    number,
    walk,
)
from podium.search.program.program import (
    Block,
    Constant,
    Guard,
    Program,
    Statement,
    guards,
    terms,
)

_OF_POD = "pod."
DIGITS = 12
"""Factors are rounded to so many digits: 0.1 + 0.2 is 0.3."""


@dataclass(frozen=True, slots=True)
class Addend:
    """One term of a sum: a factor, a weight to be tuned, if any, and what is weighed."""

    factor: float
    weight: str
    core: Expression


def condensed(program: Program) -> Program:
    """Returns a program that decides alike, with fewer terms in its scores where possible."""
    by_node = _by_node(program)
    tests = [each.condition for each in guards(program.block) if each.block.result != HOLD]
    # What is returned early is compared with what other nodes get: there every shift counts.
    is_shifted = any(_depends(test, by_node) for test in tests)
    weights = {each.name: each for each in program.constants}
    merger = _Merger(weights, None if is_shifted else by_node)
    block = _condensed(program.block, merger)
    constants = tuple(merger.weights[each.name] for each in program.constants)
    return replace(program, block=block, constants=constants)


def _condensed(block: Block, merger: _Merger) -> Block:
    statements: list[Statement] = [
        replace(each, block=_condensed(each.block, merger)) if isinstance(each, Guard) else each
        for each in block.statements
    ]
    return Block(tuple(statements), merger.merged(block.result))


def _by_node(program: Program) -> set[str]:
    """Lists the terms whose values differ between nodes."""
    found: set[str] = set()
    for term in terms(program.block):
        if _depends(term.expression, found):
            found.add(term.name)
    return found


def _depends(expression: Expression, by_node: set[str]) -> bool:
    if not expression.names.isdisjoint(by_node):
        return True
    if any(not each.startswith(_OF_POD) for each in expression.fields):
        return True
    return any(part.head in REDUCTIONS for _, part in walk(expression))


@dataclass(slots=True)
class _Merger:
    weights: dict[str, Constant]
    by_node: set[str] | None  # terms that differ between nodes; None: every number counts

    def merged(self, result: Expression) -> Expression:
        """Merges what is alike in a sum; one that cannot be shorter stays as it is."""
        if result.head == "hold":
            return result
        given = list(addends(result, self.weights))
        kept: dict[Expression, Addend] = {}
        for each in given:
            if self.by_node is None or _depends(each.core, self.by_node):
                self._add(kept, each)
        found = [each for each in kept.values() if each.factor != 0]
        if len(found) == len(given):
            return result
        is_alone = self.by_node is not None and len(found) == 1 and found[0].factor > 0
        return sum_of([replace(found[0], factor=1.0)] if is_alone else found)

    def _add(self, kept: dict[Expression, Addend], new: Addend) -> None:
        old = kept.get(new.core)
        if old is None:
            kept[new.core] = new
        elif old.weight == new.weight:
            kept[new.core] = replace(old, factor=_rounded(old.factor + new.factor))
        elif not self._merge_weights(old, new):
            kept[apply("neg", new.core)] = new  # beside the other, under a key of its own

    def _merge_weights(self, old: Addend, new: Addend) -> bool:
        """Lets the weight of one term stand for that of another."""
        if not old.weight or not old.factor:  # what is left of it counts for nothing
            return False
        weight = self.weights[old.weight]
        other = self.weights[new.weight].value if new.weight else 1.0
        value = _rounded(weight.value + other * new.factor / old.factor)
        low, high = weight.bounds or (value, value)
        if not low <= value <= high:
            return False
        self.weights[old.weight] = replace(weight, value=value)
        return True


def addends(
    expression: Expression, weights: Iterable[str] = (), factor: float = 1.0
) -> Iterable[Addend]:
    """Lists the terms of a sum, however it is nested.

    >>> from podium.search.program.expression import field
    >>> a, b = field("node.gpu_count"), field("pod.gpu_count")
    >>> [each.factor for each in addends(apply("-", a, apply("*", number(2), apply("-", a, b))))]
    [1.0, -2.0, 2.0]
    """
    head, parts = expression.head, expression.arguments
    if head in ("+", "-"):
        yield from addends(parts[0], weights, factor)
        yield from addends(parts[1], weights, factor if head == "+" else -factor)
    elif head == "neg":
        yield from addends(parts[0], weights, -factor)
    elif head == "*" and parts[0].head == "number":
        yield from addends(parts[1], weights, factor * parts[0].value)
    elif head == "*" and parts[1].head == "number":
        yield from addends(parts[0], weights, factor * parts[1].value)
    elif head == "*" and parts[0].head == "name" and parts[0].value in weights:
        yield Addend(factor, str(parts[0].value), parts[1])
    else:
        yield Addend(factor, "", expression)


def sum_of(parts: Iterable[Addend]) -> Expression:
    """Writes a sum, what is added first."""
    ordered = sorted(parts, key=lambda each: each.factor < 0)
    if not ordered:
        return number(0)
    found: Expression | None = None
    for each in ordered:
        part = _weighed(each)
        if found is None:
            found = apply("neg", part) if each.factor < 0 else part
        else:
            found = apply("-" if each.factor < 0 else "+", found, part)
    assert found is not None
    return found


def _weighed(addend: Addend) -> Expression:
    part = addend.core
    if addend.weight:
        part = apply("*", name(addend.weight), part)
    size = abs(addend.factor)
    if size == 1:
        return part
    return apply("*", number(int(size) if float(size).is_integer() else size), part)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
