"""Says in two sentences what a formula does and why, out of the notes on what it is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podium.search.program.expression import HOLD, Expression, mapped, number, walk
from podium.search.program.ingredients import NOTES
from podium.search.program.layout import text_of
from podium.search.program.program import Program, guards, terms
from podium.search.program.writer import phrase
from podium.search.promotion.ablation import addends
from podium.search.promotion.authorship import Authorship

MOST = 3
"""Quantities of one term that are named; more explain nothing."""

Definitions = Mapping[str, Expression]


def described(program: Program, authorship: Authorship | None) -> str:
    """Says what counts against and for a node, when pods are held, and which formula is behind."""
    counted: dict[int, list[str]] = {-1: [], 1: []}
    for words, sign in _terms(program):
        counted[sign].append(words)
    told = [
        f"{side} a node counts {'; and '.join(counted[sign])}"
        for side, sign in (("Against", -1), ("For", 1))
        if counted[sign]
    ]
    refused = _refusals(program)
    told += [f"It refuses a node if {', or if '.join(refused)}"] if refused else []
    if authorship is not None and authorship.kept and not authorship.is_ingredient:
        told.append(f"The reason is that of {authorship.seed}: {_lower(authorship.summary)}")
    return " ".join(f"{each}." for each in told)


def _refusals(program: Program) -> list[str]:
    """Writes the conditions under which a node is refused, with their numbers."""
    values = {each.name: number(_short(each.value)) for each in program.constants}

    def change(part: Expression) -> Expression:
        return values.get(str(part.value), part) if part.head == "name" else part

    held = [each for each in guards(program.block) if each.block.result == HOLD]
    return [text_of(mapped(each.condition, change)) for each in held]


def _short(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _terms(program: Program) -> Iterator[tuple[str, int]]:
    """Lists the terms of the score in words, each with its sign."""
    definitions = {each.name: each.expression for each in terms(program.block)}
    values = {each.name: float(each.value) for each in program.constants}
    for part, sign in _summands(program.block.result, definitions):
        if part.head != "number" and part != HOLD:
            yield _words(part, definitions), sign * _sign(part, values)


def _summands(
    expression: Expression, definitions: Definitions, sign: int = 1
) -> Iterator[tuple[Expression, int]]:
    for _, addend, turned in addends(expression):
        meant = definitions.get(str(addend.value)) if addend.head == "name" else None
        if meant is None or meant in NOTES or meant.head in ("sum", "smallest", "largest"):
            yield addend, sign * turned
        else:
            yield from _summands(meant, definitions, sign * turned)


def _words(part: Expression, definitions: Definitions) -> str:
    """Names what a term is made of, in the words of the notes."""
    found = dict.fromkeys(_quantities(part, definitions))
    is_stepped = any(each.head == "int" for _, each in walk(part))
    words = " and ".join(list(found)[:MOST]) or phrase(part)
    return f"{words} (in whole steps)" if is_stepped else words


def _quantities(part: Expression, definitions: Definitions) -> Iterator[str]:
    for _, each in walk(part):
        if each.head == "field":
            yield phrase(each)
        elif each.head == "name" and each.value in definitions:
            meant = definitions[each.value]
            note = NOTES.get(meant)
            yield from [_lower(note)] if note else _quantities(meant, definitions)


def _sign(part: Expression, values: Mapping[str, float]) -> int:
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
