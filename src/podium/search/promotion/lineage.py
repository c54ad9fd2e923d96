"""Tells what of a formula people wrote, and what a search added to it."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from podium.search.program.expression import HOLD, Expression, mapped, number, walk, with_arguments
from podium.search.program.ingredients import CONSTANTS, INGREDIENTS, NOTES
from podium.search.program.layout import text_of
from podium.search.program.program import Program, guards, terms
from podium.search.promotion.ablation import addends

_ANY = number(0)
"""Stands for any number: formulas that differ in numbers alone are one formula."""

UNNAMED = "a number"
_COMMUTING = ("+", "*", "and", "or", "min", "max")


@dataclass(frozen=True, slots=True)
class Lineage:
    """A formula beside the nearest one that people wrote."""

    seed: str  # the name of that formula; empty: none has anything in common with it
    summary: str  # what that formula does, in its author's words
    ingredients: tuple[str, ...]  # quantities that people named and defined
    kept: tuple[str, ...]  # terms and guards that are the seed's, but for numbers
    added: tuple[str, ...]  # those that are not
    dropped: tuple[str, ...]  # terms and guards of the seed that are gone
    constants: tuple[tuple[str, float, float], ...]  # that differ: name, in the seed, and here
    is_unchanged: bool = False  # it is the seed, with all its numbers

    @property
    def is_written(self) -> bool:
        """Returns whether people wrote all of it but the numbers."""
        return bool(self.seed) and not self.added

    def as_object(self) -> dict[str, Any]:
        """Describes the lineage as JSON types."""
        lists = ("ingredients", "kept", "added", "dropped")
        return {
            "seed": self.seed,
            "seed_summary": self.summary,
            **{each: list(getattr(self, each)) for each in lists},
            "constants": [
                {"name": title, "seed": before, "here": here}
                for title, before, here in self.constants
            ],
        }


def lineage_of(program: Program, seeds: Mapping[str, Program]) -> Lineage:
    """Finds the formula of people that has most in common with a program, and the difference."""
    own = _Anatomy.of(program)
    known = {title: _Anatomy.of(each) for title, each in seeds.items()}
    nearest = max(known, key=lambda title: own.shared(known[title]), default="")
    used = own.ingredients
    is_foreign = own.parts and own.shared(known[nearest])[:2] == (0, 0) if nearest else True
    if is_foreign:
        return Lineage("", "", used, (), tuple(own.parts.values()), (), ())
    seed = known[nearest].parts
    named = _changed(seeds[nearest], program)
    changed = (*named, *_numbers(known[nearest], own, {each[1:] for each in named}))
    kept = tuple(text for key, text in own.parts.items() if key in seed)
    return Lineage(
        nearest, seeds[nearest].summary.strip().split("\n")[0], used,
        kept,
        tuple(text for key, text in own.parts.items() if key not in seed),
        tuple(text for key, text in seed.items() if key not in own.parts) if kept else (),
        changed, known[nearest].exact == own.exact and not changed,
    )  # fmt: skip


def _numbers(
    seed: _Anatomy, own: _Anatomy, known: Set[tuple[float, float]]
) -> Iterator[tuple[str, float, float]]:
    """Lists numbers without a name that differ in parts which are written alike otherwise."""
    pairs = dict.fromkeys(
        pair
        for key in own.parts
        if key in seed.parts
        for pair in zip(_values(seed.exact[key]), _values(own.exact[key]), strict=False)
        if len(_values(seed.exact[key])) == len(_values(own.exact[key]))
    )
    for before, here in pairs:
        if before != here and (before, here) not in known:
            yield UNNAMED, before, here


def _values(expression: Expression) -> list[float]:
    return [float(part.value) for _, part in walk(expression) if part.head == "number"]


def _changed(seed: Program, program: Program) -> tuple[tuple[str, float, float], ...]:
    before = {each.name: float(each.value) for each in seed.constants}
    return tuple(
        (each.name, before[each.name], float(each.value))
        for each in program.constants
        if each.name in before and before[each.name] != each.value
    )


@dataclass(frozen=True, slots=True)
class _Anatomy:
    """What a program adds up and where it returns early, each without numbers and as written.

    Everything is written out down to fields of pod and node: whoever names a quantity otherwise, or
    has a function for it, computes the same.
    """

    parts: dict[Expression, str]
    pieces: frozenset[Expression]  # what the parts are made of
    exact: dict[Expression, Expression]  # the parts with their numbers

    @classmethod
    def of(cls, program: Program) -> _Anatomy:
        named = {each.name: each.expression for each in terms(program.block)}
        inner = named | {each.name: number(each.value) for each in program.constants}
        parts: dict[Expression, str] = {}
        exact: dict[Expression, Expression] = {}
        for expression, shown in _listed(program, named):
            whole = _filled(expression, inner)
            bare = _numberless(whole)
            exact.setdefault(bare, whole)
            parts.setdefault(bare, shown)
        pieces = (piece for key in parts for _, piece in walk(key))
        made_of = frozenset(each for each in pieces if each not in (_ANY, HOLD))
        return cls(parts, made_of, exact)

    @property
    def ingredients(self) -> tuple[str, ...]:
        """Lists the quantities of people in it, in their order."""
        return tuple(title for title, form in _forms().items() if form in self.pieces)

    def shared(self, other: _Anatomy) -> tuple[int, int, int]:
        """Measures what two programs have in common: whole parts first, then pieces."""
        whole = sum(key.size for key in self.parts if key in other.parts)
        pieces = sum(each.size for each in self.pieces & other.pieces if each.head != "field")
        return whole, pieces, -sum(key.size for key in other.parts)


@functools.cache
def _forms() -> dict[str, Expression]:
    """Writes every ingredient out, without numbers."""
    values = INGREDIENTS | {title: number(each.value) for title, each in CONSTANTS.items()}
    return {title: _numberless(_filled(each, values)) for title, each in INGREDIENTS.items()}


def _listed(program: Program, named: Mapping[str, Expression]) -> Iterator[tuple[Expression, str]]:
    """Lists the guards of a program and the terms of its score, each with how it is written."""
    inner = list(guards(program.block))
    for each in inner:
        yield each.condition, f"if {text_of(each.condition)}"
    for result in (*(each.block.result for each in inner), program.block.result):
        for term in _summands(result, named):
            yield term, text_of(term)


def _summands(expression: Expression, named: Mapping[str, Expression]) -> Iterator[Expression]:
    """Lists what a score is the sum of; a name that nothing is said of stands for its sum."""
    for _, addend, _ in addends(expression):
        meant = named.get(str(addend.value)) if addend.head == "name" else None
        if meant is not None and not _is_loop(meant) and meant not in NOTES:
            yield from _summands(meant, named)
        elif addend.head != "number" and addend != HOLD:
            yield addend


def _is_loop(expression: Expression) -> bool:
    return expression.head in ("sum", "smallest", "largest")


def _filled(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """Writes the definitions of names into their places, until none is left."""

    def change(part: Expression) -> Expression:
        is_given = part.head == "name" and part.value in values
        return _filled(values[part.value], values) if is_given else part

    return expression if expression.names.isdisjoint(values) else mapped(expression, change)


def _numberless(expression: Expression) -> Expression:
    """Takes numbers, signs and scales away, and the order in which things are added."""

    def change(part: Expression) -> Expression:
        if part.head == "number":
            return _ANY
        others = [each for each in part.arguments if each != _ANY]
        is_scaled = part.head == "neg" or (
            part.head in ("*", "/") and part.arguments[1:] == (_ANY,)
        )
        if is_scaled or (part.head == "*" and len(others) == 1):
            return others[0] if others else _ANY
        if part.head in _COMMUTING:
            return with_arguments(part, tuple(sorted(part.arguments, key=_order)))
        return part

    return mapped(expression, change)


def _order(expression: Expression) -> tuple[Any, ...]:
    parts = tuple(_order(each) for each in expression.arguments)
    return (expression.head, str(expression.value), parts)
