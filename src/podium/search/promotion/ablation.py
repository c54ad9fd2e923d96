"""Measures what is lost without each part of a program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podium.search.candidate.gates import read_candidate
from podium.search.candidate.verdict import Verdict
from podium.search.program.expression import (
    ALWAYS,
    HOLD,
    REDUCTIONS,
    SUMS,
    Expression,
    Path,
    number,
    replaced,
)
from podium.search.program.ingredients import NOTES
from podium.search.program.layout import text_of
from podium.search.program.program import (
    Block,
    Program,
    Term,
    roots,
    with_root,
)
from podium.search.program.simplify import simplify
from podium.search.program.writer import write
from podium.search.promotion.cuts import without_guards

Kind = Literal["term", "guard", "quantity"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a program, and the training fitness without it."""

    kind: Kind
    code: str
    note: str  # what it means, where that is known
    fitness_without: float | None  # None: without it there is no valid program
    loss: float | None

    def as_object(self) -> dict[str, Any]:
        """Describes the part as JSON types; what is unknown is left out."""
        found = {"kind": self.kind, "code": self.code, "sentence": self.note}
        if self.fitness_without is None or self.loss is None:
            return {**found}
        numbers = {"fitness_without": self.fitness_without, "loss": self.loss}
        return {**found, **{name: round(value, 4) for name, value in numbers.items()}}


@dataclass(frozen=True, slots=True)
class _Ablation:
    kind: Kind
    code: str
    programs: tuple[Program, ...]  # ways to leave it out; the first that is accepted counts
    note: str = ""


def ablate(
    program: Program, score: Callable[[str], float], fitness: float | None = None
) -> tuple[Part, ...]:
    """Leaves out the terms, guards and named quantities of a program, one at a time."""
    whole = score(write(program)) if fitness is None else fitness
    listed = (*_quantities(program), *_guards(program), *_addends(program))
    return tuple(_part(ablation, score, whole) for ablation in listed)


def _part(ablation: _Ablation, score: Callable[[str], float], whole: float) -> Part:
    kind, code, note = ablation.kind, ablation.code, ablation.note
    for text in (write(simplify(program)) for program in ablation.programs):
        if isinstance(read_candidate(text), Verdict):
            continue
        found = score(text)
        if math.isfinite(found):
            return Part(kind, code, note, found, whole - found)
    return Part(kind, code, note, None, None)


Role = Term | Block | None
"""Whose expression one of the `roots` is: a term's, the result of a block, or a condition."""


def _roles(block: Block) -> Iterator[Role]:
    for statement in block.statements:
        if isinstance(statement, Term):
            yield statement
        else:
            yield None
            yield from _roles(statement.block)
    yield block


def _quantities(program: Program) -> Iterator[_Ablation]:
    for index, role in enumerate(_roles(program.block)):
        if isinstance(role, Term):
            numbers = tuple(with_root(program, index, number(value)) for value in (0, 1))
            yield _Ablation("quantity", role.name, numbers, NOTES.get(role.expression, ""))


def _guards(program: Program) -> Iterator[_Ablation]:
    for index, root in enumerate(roots(program.block)):
        if root.head in REDUCTIONS and root.arguments[1] != ALWAYS:
            value, condition, start = root.arguments
            open_loop = Expression(root.head, (value, ALWAYS, start), root.value)
            changed = with_root(program, index, open_loop)
            yield _Ablation("guard", f"if {text_of(condition)}", (changed,))
    for guard, smaller in without_guards(program):
        yield _Ablation("guard", f"if {text_of(guard.condition)}", (smaller,))


def _addends(program: Program) -> Iterator[_Ablation]:
    for index, role in enumerate(_roles(program.block)):
        if not isinstance(role, Block):
            continue
        for path, addend, sign in addends(role.result):
            if addend.head != "number" and addend != HOLD:
                smaller = with_root(program, index, replaced(role.result, path, number(0)))
                yield _Ablation("term", ("" if sign > 0 else "-") + text_of(addend), (smaller,))


def addends(
    expression: Expression, path: Path = (), sign: int = 1
) -> Iterator[tuple[Path, Expression, int]]:
    """Lists the terms of a sum with their signs."""
    if expression.head in SUMS:
        left, right = expression.arguments
        yield from addends(left, (*path, 0), sign)
        yield from addends(right, (*path, 1), sign if expression.head == "+" else -sign)
    elif expression.head == "neg":
        yield from addends(expression.arguments[0], (*path, 0), -sign)
    else:
        yield path, expression, sign
