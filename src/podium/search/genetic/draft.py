"""Knows what may be drawn at one place of a program, and takes up new constants."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from podium.search.genetic.expression import Expression, name
from podium.search.genetic.expression import field as read
from podium.search.genetic.fields import DRAWN, FIELDS
from podium.search.genetic.inference import unit_of
from podium.search.genetic.ingredients import CONSTANTS, GPU_INGREDIENTS, INGREDIENTS
from podium.search.genetic.program import (
    Block,
    Constant,
    Program,
    Term,
    fresh,
    names_given,
    terms,
)
from podium.search.genetic.units import Unit, unit_of_name

LIKELY = {
    "stranded_gpu_milli_more": 2, "starved_gpu_milli_more": 4, "lost_gpu_milli": 2,
    "cpu_per_gpu_total": 2,
}  # fmt: skip
"""Ingredients that are drawn so many times as often as others."""

Leaves = dict[tuple[int, int, int], list[Expression]]


@dataclass(slots=True)
class Draft:
    """Holds the leaves that can be drawn, by dimension, and the constants drawn so far."""

    leaves: Leaves
    taken: set[str]
    constants: list[Constant] = field(default_factory=list)

    @classmethod
    def at(cls, program: Program, visible: set[str], units: dict[str, Unit]) -> Draft:
        """Prepares drawing where some names are visible."""
        leaves: Leaves = {dims: list(found) for dims, found in _field_leaves().items()}
        ingredients = available(program)
        for title in ingredients:
            found = leaves.setdefault(ingredient_units()[title][:3], [])
            found += [name(title)] * LIKELY.get(title, 1)
        for title in visible:
            unit = units[title]
            if title not in ingredients and unit.kind != "boolean":
                leaves.setdefault(unit[:3], []).append(name(title))
        for found in leaves.values():
            found.sort(key=lambda leaf: str(leaf.value))
        return cls(leaves, names_given(program) | set(INGREDIENTS) | set(CONSTANTS))

    @property
    def names(self) -> set[str]:
        """Lists the names that may be referred to."""
        every = itertools.chain.from_iterable(self.leaves.values())
        return {leaf.value for leaf in every if leaf.head == "name"}

    @property
    def is_usual_known(self) -> bool:
        """Tells whether CPUS_PER_GPU is the constant of that name, and not a term."""
        return "stranded_gpu_milli_more" in self.names

    def in_loop(self) -> Draft:
        """Adds the free part of the slot, which is what a loop is about."""
        gpu = (0, 0, 1)
        leaves = self.leaves | {gpu: [*self.leaves[gpu], *[read("left")] * 6]}
        return Draft(leaves, self.taken, self.constants)

    def constant(self, base: str, value: float, low: float, high: float) -> Expression:
        """Adds a tunable constant and refers to it."""
        title = fresh(base, self.taken)
        self.taken.add(title)
        self.constants.append(Constant(title, value, (low, high)))
        return name(title)

    def taken_up(self, program: Program) -> Program:
        """Gives a program the constants that were drawn."""
        return replace(program, constants=(*program.constants, *self.constants))


@functools.cache
def ingredient_units() -> dict[str, Unit]:
    """Finds the unit of each ingredient."""
    units = {title: unit_of_name(title) for title in CONSTANTS}
    for title, expression in INGREDIENTS.items():
        units[title] = unit_of(expression, units)
    return units


@functools.cache
def _field_leaves() -> Leaves:
    leaves: Leaves = {}
    for title in DRAWN:
        leaves.setdefault(FIELDS[title].unit[:3], []).append(read(title))
    return leaves


@functools.cache
def _closures() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for title, expression in INGREDIENTS.items():
        inner = expression.names
        found[title] = {title, *inner}.union(*(found[each] for each in inner - CONSTANTS.keys()))
    return found


def available(program: Program) -> list[str]:
    """Lists the numeric ingredients that a program has, or may get without a clash of names."""
    given = {term.name: term.expression for term in terms(program.block)}
    constants = {constant.name for constant in program.constants}
    clashes = CONSTANTS.keys() & given.keys() | {
        title
        for title, expression in INGREDIENTS.items()
        if title in constants or given.get(title, expression) != expression
    }
    return [
        title
        for title, closure in _closures().items()
        if not closure & clashes
        and (program.takes_gpu or title not in GPU_INGREDIENTS)
        and title != "is_share"
    ]


def visible_names(program: Program) -> list[set[str]]:
    """Lists, for each root expression, the names that are given before it."""
    constants = {constant.name for constant in program.constants}
    return list(_visible(program.block, constants))


def _visible(block: Block, known: set[str]) -> Iterator[set[str]]:
    for statement in block.statements:
        yield set(known)
        if isinstance(statement, Term):
            known.add(statement.name)
        else:
            yield from _visible(statement.block, set(known))
    yield set(known)
