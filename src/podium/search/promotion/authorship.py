"""Tells what of a formula people wrote, and what a search added to it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

from podium.search.program.expression import (
    FUNCTIONS,
    HOLD,
    SUMS,
    Expression,
    mapped,
    name,
    number,
    walk,
    with_arguments,
)
from podium.search.program.functions import substituted
from podium.search.program.ingredients import CONSTANTS, INGREDIENTS, NOTES, needed
from podium.search.program.layout import text_of
from podium.search.program.program import Block, Function, Program, guards, terms
from podium.search.promotion.ablation import addends

_ANY = number(0)
"""Stands for any number: formulas that differ in numbers alone are one formula."""

UNNAMED = "a number"
_SHAPES = ("int", "abs", *FUNCTIONS)
_COMMUTING = ("+", "*", "and", "or", "min", "max")

Strand = tuple[tuple[str, ...], Expression]
"""What a term adds up inside functions such as int: the functions around it, and itself."""


@dataclass(frozen=True, slots=True)
class Authorship:
    """A formula beside the nearest one that people wrote."""

    seed: str  # that formula, a seed or an ingredient; empty: none has anything in common with it
    summary: str  # what that formula does, in its author's words
    ingredients: tuple[str, ...]  # quantities that people named and defined
    kept: tuple[str, ...]  # terms and guards that are the seed's, but for numbers and left-outs
    added: tuple[str, ...]  # those that are not
    dropped: tuple[str, ...]  # terms and guards of the seed that are gone
    constants: tuple[tuple[str, float, float], ...]  # that differ: name, in the seed, and here
    is_unchanged: bool = False  # it is the seed, with all its numbers
    others: tuple[str, ...] = ()  # further seeds of which something is in the terms kept

    @property
    def is_written(self) -> bool:
        """Returns whether people wrote all of it but the numbers."""
        return bool(self.seed) and not self.added

    @property
    def is_ingredient(self) -> bool:
        """Returns whether the nearest formula is an ingredient."""
        return self.seed in INGREDIENTS

    @property
    def title(self) -> str:
        """Names the nearest formula."""
        return f"the {'ingredient' if self.is_ingredient else 'formula'} {self.seed}"

    @property
    def lent(self) -> str:
        """Says from which further formulas of people its terms are made."""
        return f"what it adds up of {' and '.join(self.others)}" if self.others else ""

    def as_object(self) -> dict[str, Any]:
        """Describes the authorship as JSON types."""
        lists = ("ingredients", "kept", "added", "dropped")
        return {
            "seed": self.seed,
            "seed_summary": self.summary,
            **({"other_seeds": list(self.others)} if self.others else {}),
            **{each: list(getattr(self, each)) for each in lists},
            "constants": [
                {"name": title, "seed": before, "here": here}
                for title, before, here in self.constants
            ],
        }


def authorship_of(program: Program, seeds: Mapping[str, Program]) -> Authorship:
    """Finds the formula of people that has most in common with a program, and the difference.

    An ingredient is a formula of people too: a search may end with one and nothing else.
    """
    own = _Anatomy.of(program)
    written = {**_alone(), **seeds}
    formulas = {title: _Anatomy.of(each) for title, each in seeds.items()}
    known = formulas | _ingredient_anatomies()  # of equals the first
    nearest = max(known, key=lambda title: own.shared(known[title]))
    if own.parts and own.shared(known[nearest])[:2] == (0, 0):
        return Authorship("", "", own.ingredients, (), tuple(own.parts.values()), (), ())
    seed = known[nearest]
    shares = [_Share.of(key, own, seed, formulas) for key in own.parts]
    kept = tuple(text for each in shares for text in each.kept)
    others = tuple(dict.fromkeys(title for each in shares for title in each.lenders))
    if own.parts and not kept and not others:  # what is like a formula is not it
        return Authorship("", "", own.ingredients, (), tuple(own.parts.values()), (), ())
    named = _changed([written[each] for each in (nearest, *others)], program)
    changed = (*named, *_numbers(seed, own, {each[1:] for each in named}))
    return Authorship(
        nearest, written[nearest].summary.strip().split("\n")[0], own.ingredients, kept,
        tuple(text for each in shares for text in each.added),
        tuple(_dropped(own, seed)) if kept else (), changed,
        is_unchanged=seed.exact == own.exact and not changed, others=others,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Share:
    """What of one term people wrote: all of it, or some of what it adds up, or nothing."""

    kept: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    lenders: tuple[str, ...] = ()  # seeds but the nearest that something of it comes from

    @classmethod
    def of(
        cls, key: Expression, own: _Anatomy, seed: _Anatomy, formulas: Mapping[str, _Anatomy]
    ) -> _Share:
        shown, strands = own.parts[key], own.strands[key]
        if seed.has(key):
            return cls(kept=(shown,))
        lenders = {
            each: next((title for title, one in formulas.items() if one.lends(each)), "")
            for each in strands
            if not seed.lends(each)
        }
        strange = [each for each, title in lenders.items() if not title]
        if len(strange) == len(strands):
            return cls(added=(shown,))
        titles = tuple(title for title in lenders.values() if title)
        if not strange:
            return cls((shown,), (), titles)
        kept = tuple(f"{text} in {shown}" for each, text in strands.items() if each not in strange)
        return cls(kept, tuple(f"{strands[each]} in {shown}" for each in strange), titles)


def _dropped(own: _Anatomy, seed: _Anatomy) -> Iterator[str]:
    """Lists the parts of a seed, and what they add up, that are gone."""
    for part, shown in seed.parts.items():
        if any(_is_trimmed(key, part) for key in own.parts):
            continue
        strands = seed.strands[part]
        gone = [each for each in strands if not own.uses(each)]
        if len(gone) == len(strands):
            yield shown
        else:
            yield from (f"{strands[each]} in {shown}" for each in gone)


@functools.cache
def _alone() -> dict[str, Program]:
    """Makes a program of every ingredient, whose score it is."""
    return {
        title: Program(
            Block(tuple(needed({title})), name(title)),
            tuple(each for each in CONSTANTS.values() if each.name in _constants(title)),
            summary=NOTES[INGREDIENTS[title]],
        )
        for title in INGREDIENTS
    }


def _constants(title: str) -> set[str]:
    return set().union(*(each.expression.names for each in needed({title}))) & CONSTANTS.keys()


@functools.cache
def _ingredient_anatomies() -> dict[str, _Anatomy]:
    return {title: _Anatomy.of(each) for title, each in _alone().items()}


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


def _changed(written: Iterable[Program], program: Program) -> tuple[tuple[str, float, float], ...]:
    """Lists named numbers that differ from those of the first formula that has them."""
    before: dict[str, float] = {}
    for each in (constant for formula in written for constant in formula.constants):
        before.setdefault(each.name, float(each.value))
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
    strands: dict[Expression, dict[Strand, str]]  # what each part adds up inside functions

    @classmethod
    def of(cls, program: Program) -> _Anatomy:
        named = {each.name: each.expression for each in terms(program.block)}
        inner = named | {each.name: number(each.value) for each in program.constants}
        parts: dict[Expression, str] = {}
        exact: dict[Expression, Expression] = {}
        strands: dict[Expression, dict[Strand, str]] = {}
        called = {each.name: each for each in program.functions}
        for expression, shown in _listed(program, named):
            whole = _filled(expression, inner, called)
            bare = _numberless(whole)
            exact.setdefault(bare, whole)
            parts.setdefault(bare, shown)
            listed = (
                ((form, _numberless(_filled(each, inner, called))), text_of(each))
                for form, each in _strands(expression, named)
                if form
            )
            strands.setdefault(bare, {each: text for each, text in listed if each[1] != _ANY})
        pieces = (piece for key in parts for _, piece in walk(key))
        made_of = frozenset(each for each in pieces if each not in (_ANY, HOLD))
        return cls(parts, made_of, exact, strands)

    @property
    def ingredients(self) -> tuple[str, ...]:
        """Lists the quantities of people in it, in their order."""
        forms = {title: next(iter(each.parts)) for title, each in _ingredient_anatomies().items()}
        return tuple(title for title, form in forms.items() if self._names(form))

    def _names(self, form: Expression) -> bool:
        # Reduction may have cut a condition that is always met on the training cases.
        return form in self.pieces or any(
            _is_loosened(piece, form) for piece in self.pieces if piece.head == form.head == "if"
        )

    def has(self, part: Expression) -> bool:
        """Returns whether a part is one of these, or what is left of one."""
        return any(_is_trimmed(part, each) for each in self.parts)

    def lends(self, strand: Strand) -> bool:
        """Returns whether one of these parts adds that up, in the same functions."""
        inner = (each for strands in self.strands.values() for each in strands)
        return any(_is_strand_of(strand, each) for each in inner)

    def uses(self, strand: Strand) -> bool:
        """Returns whether one of these parts adds that up, or what is left of it."""
        inner = (each for strands in self.strands.values() for each in strands)
        return any(_is_strand_of(each, strand) for each in inner)

    def shared(self, other: _Anatomy) -> tuple[int, int, int]:
        """Measures what two programs have in common: whole parts first, then pieces."""
        whole = sum(key.size for key in self.parts if other.has(key))
        whole += sum(
            each[1].size
            for key in self.parts
            if not other.has(key)
            for each in self.strands[key]
            if other.lends(each)
        )
        pieces = sum(each.size for each in self.pieces & other.pieces if each.head != "field")
        return whole, pieces, -sum(key.size for key in other.parts)


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


def _strands(
    expression: Expression, named: Mapping[str, Expression], form: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Expression]]:
    """Lists what a term adds up, however it is scaled, and the functions around each."""
    meant = named.get(str(expression.value)) if expression.head == "name" else None
    if meant is not None and meant not in NOTES:
        inner = list(_strands(meant, named, form))
        # A name that stands for one thing says more than its definition.
        yield from inner if len(inner) > 1 or inner[0][0] != form else [(form, expression)]
    elif expression.head in _SHAPES:
        yield from _strands(expression.arguments[0], named, (*form, expression.head))
    elif expression.head in (*SUMS, "neg"):
        for each in expression.arguments:
            yield from _strands(each, named, form)
    elif (scaled := _scaled(expression, named)) is not None:
        yield from _strands(scaled, named, form)
    else:
        yield form, expression


def _scaled(expression: Expression, named: Mapping[str, Expression]) -> Expression | None:
    """Returns what an expression is a multiple of, if it is one."""
    others = [each for each in expression.arguments if not _is_constant(each, named)]
    is_multiple = expression.head == "*" or (
        expression.head == "/" and others == [expression.arguments[0]]
    )
    return others[0] if is_multiple and len(others) == 1 else None


def _is_constant(expression: Expression, named: Mapping[str, Expression]) -> bool:
    is_name = expression.head == "name" and expression.value not in named
    return is_name or expression.head == "number"


def _is_loop(expression: Expression) -> bool:
    return expression.head in ("sum", "smallest", "largest")


def _filled(
    expression: Expression, values: Mapping[str, Expression], called: Mapping[str, Function]
) -> Expression:
    """Writes the definitions of names and functions into their places, until none is left."""

    def change(part: Expression) -> Expression:
        if part.head == "name" and part.value in values:
            return _filled(values[part.value], values, called)
        if part.head == "call":
            function = called[part.value]
            given = dict(zip(function.parameters, part.arguments, strict=True))
            return _filled(substituted(function.expression, given), values, called)
        return part

    return mapped(expression, change)


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


def _is_trimmed(part: Expression, whole: Expression) -> bool:
    """Returns whether a part is a whole of which pieces may have been left out, not the root.

    Reduction leaves out what makes no difference on the training cases: the rest is as much the
    work of whoever wrote the whole.
    """
    if part == whole:
        return True
    if part.head != whole.head or part.is_leaf or part.value != whole.value:
        return False
    return _are_within(part.arguments, whole.arguments)


def _is_strand_of(part: Strand, whole: Strand) -> bool:
    """Returns whether a strand is another, or one of those that the other sums up."""
    if part[0] != whole[0]:
        return False
    sums = (whole[1], *(each for _, each, _ in addends(whole[1])))
    return any(_is_trimmed(part[1], each) for each in sums)


def _is_loosened(part: Expression, whole: Expression) -> bool:
    """Returns whether a choice is another one with a simpler condition."""
    is_same = part.arguments[1:] == whole.arguments[1:]
    return is_same and _is_within(part.arguments[0], whole.arguments[0])


def _are_within(parts: tuple[Expression, ...], wholes: tuple[Expression, ...]) -> bool:
    if len(parts) == len(wholes):
        return all(map(_is_within, parts, wholes))
    return all(any(_is_within(part, whole) for whole in wholes) for part in parts)


@functools.lru_cache(maxsize=1 << 16)
def _is_within(part: Expression, whole: Expression) -> bool:
    if part.size > whole.size:
        return False
    return _is_trimmed(part, whole) or any(_is_within(part, each) for each in whole.arguments)


def _order(expression: Expression) -> tuple[Any, ...]:
    parts = tuple(_order(each) for each in expression.arguments)
    return (expression.head, str(expression.value), parts)
