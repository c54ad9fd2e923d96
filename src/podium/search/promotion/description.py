"""Says in two sentences what a formula does and why, out of the notes on what it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from podium.search.program.expression import HOLD, Expression, walk
from podium.search.program.ingredients import NOTES
from podium.search.program.program import Guard, Program, guards, terms
from podium.search.program.writer import phrase
from podium.search.promotion.ablation import addends
from podium.search.promotion.lineage import Lineage

MOST = 3
"""Quantities of one term that are named; more explain nothing."""


def described(program: Program, lineage: Lineage | None) -> str:
    """Says what counts against and for a node, when pods are held, and which formula is behind."""
    against: list[str] = []
    favour: list[str] = []
    for words, sign in _terms(program):
        (favour if sign > 0 else against).append(words)
    told = [f"Against a node counts {'; and '.join(against)}"] if against else []
    told += (
        [f"{'for it' if told else 'For a node counts'} {'; and '.join(favour)}"] if favour else []
    )
    first = "; ".join(told)
    held = [each for each in guards(program.block) if each.block.result == HOLD]
    if held:
        first += ("; " if first else "") + f"it refuses a node where {_conditions(held)}"
    second = ""
    if lineage is not None and lineage.seed and lineage.summary:
        second = f" The reason is that of {lineage.seed}: {_lower(lineage.summary)}."
    return (first + "." if first else "") + second


def _conditions(held: list[Guard]) -> str:
    return ", or ".join(phrase(each.condition) for each in held)


def _terms(program: Program) -> Iterator[tuple[str, int]]:
    definitions = {each.name: each.expression for each in terms(program.block)}
    values = {each.name: float(each.value) for each in program.constants}
    for _, addend, sign in addends(program.block.result):
        whole = definitions.get(addend.value, addend) if addend.head == "name" else addend
        own = addend if whole in NOTES else whole
        for _, part, turned in addends(own) if own.head in ("+", "-", "neg") else [((), own, 1)]:
            if part.head != "number" and part != HOLD:
                words = _quantities(part, definitions)
                yield words, sign * turned * _sign(part, values)


def _quantities(part: Expression, definitions: dict[str, Expression]) -> str:
    """Names what a term is made of, in the words of the notes."""
    found: dict[str, None] = {}
    for _, each in walk(part):
        note = NOTES.get(definitions[each.value], "") if each.value in definitions else ""
        if each.head == "name" and note:
            found[_lower(note)] = None
        elif each.head == "field":
            found[phrase(each)] = None
    steps = "whole steps of " if any(each.head == "int" for _, each in walk(part)) else ""
    return steps + (" and ".join(list(found)[:MOST]) or phrase(part))


def _sign(part: Expression, values: dict[str, float]) -> int:
    """Returns the sign of the numbers that a term is multiplied with."""
    if part.head == "neg":
        return -_sign(part.arguments[0], values)
    if part.head in ("*", "/"):
        left, right = (_sign(each, values) for each in part.arguments)
        return left * right
    value = part.value if part.head == "number" else values.get(str(part.value), 1.0)
    return -1 if value < 0 else 1


def _lower(note: str) -> str:
    """Takes a note into a sentence."""
    words = note.strip().rstrip(".")
    return words if words[:2].isupper() else words[:1].lower() + words[1:]
