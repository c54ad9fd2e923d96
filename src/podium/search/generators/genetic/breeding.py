"""Breeds: draws new programs, and makes offspring of old ones that are fit to run and to read."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from podium.search.generators.genetic.choice import chance, pick, weighted
from podium.search.generators.genetic.crossover import CROSSOVERS, HOLDING_CROSSOVERS
from podium.search.generators.genetic.growth import GROWTHS, draw_loop
from podium.search.generators.genetic.holding import HOLDINGS, holds
from podium.search.generators.genetic.mutation import MUTATIONS
from podium.search.generators.genetic.plain_growth import PLAIN_GROWTHS
from podium.search.generators.genetic.positions import Draft
from podium.search.generators.genetic.protection import protect
from podium.search.generators.genetic.sampling import draw_term
from podium.search.program.algebra import condensed
from podium.search.program.bounds import is_sound
from podium.search.program.expression import apply, number
from podium.search.program.program import (
    Block,
    Program,
    complexity,
    guards,
    names_given,
    program_of,
    with_result,
)
from podium.search.program.shape import (
    with_ingredients,
    with_new_names,
    with_short_lines,
    without_idle_gpu,
)
from podium.search.program.simplify import simplify
from podium.search.program.units import units_of

TRIES = 40
HOPELESS = 1.5
"""A program this many times too large is not worth simplifying."""

SUMMARY = "Scores a pod on a node, as bred."
DRAWN = ("random_program",)
"""The operator of programs without parents."""

Operator = Callable[..., Program | None]
"""A mutation of one program, or a crossover of two."""

NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})
"""Operators are used as often as they are by themselves."""


@dataclass(frozen=True, slots=True)
class BreedingSettings:
    """Limits on the offspring of breeding."""

    largest: int = 160  # nodes of a program, with the ingredients that it refers to
    crossing: float = 0.35  # the share of offspring with two parents
    growing: float = 0.3  # the share of mutations that make a program larger
    plain_growing: float = 0.5  # the same without ingredients: there is more to build
    repeating: float = 0.35  # the chance of one more mutation after each
    may_take_gpu: bool = True
    draws_ingredients: bool = True  # quantities that people thought of; else fields alone
    may_hold: bool = False
    holding: float = 0.35  # the share of mutations that are about holding, where it may be


@dataclass(frozen=True, slots=True)
class Offspring:
    """A bred program and the names of the operators that made it."""

    program: Program
    operators: tuple[str, ...]
    parents: tuple[int, ...] = ()  # of those given, the ones that it is made from, by index

    @property
    def operator(self) -> str:
        """Returns the operator that made most of the difference: the first."""
        return self.operators[0]


def random_program(rng: np.random.Generator, settings: BreedingSettings | None = None) -> Program:
    """Draws a program from nothing: a sum of a few terms."""
    settings = settings or BreedingSettings()
    for _ in range(TRIES):
        empty = _empty(rng, settings)
        draft = Draft.at(empty, names_given(empty), units_of(empty))
        result = draw_term(rng, draft, 3)
        while chance(rng, 0.5):
            result = apply("+" if chance(rng, 0.5) else "-", result, draw_term(rng, draft, 2))
        found = finished(draft.taken_up(with_result(empty, result)), settings)
        if found is not None and found.block.result.head != "number":
            return found
    return program_of(number(0))


def _empty(rng: np.random.Generator, settings: BreedingSettings) -> Program:
    """Begins a program: without ingredients, with what loops see of the GPUs."""
    empty = replace(program_of(number(0)), draws_ingredients=settings.draws_ingredients)
    if settings.draws_ingredients:
        return empty
    draft = Draft.at(empty, set(), {})
    loops = [draw_loop(rng, draft) for _ in range(pick(rng, (1, 2, 2, 3)))]
    return draft.taken_up(replace(empty, block=Block(tuple(loops), number(0))))


def breed(
    rng: np.random.Generator,
    parents: Sequence[Program],
    settings: BreedingSettings | None = None,
    weights: Mapping[str, float] = NO_WEIGHTS,
) -> Offspring:
    """Breeds one offspring that differs from its parents; the first parent contributes most."""
    settings = settings or BreedingSettings()
    first = _scaled(_operators(settings, is_paired=len(parents) > 1), weights)
    later = _scaled(_operators(settings, is_paired=False), weights)
    begin = replace(parents[0], draws_ingredients=settings.draws_ingredients)
    for _ in range(TRIES):
        operators: list[str] = []
        used = [0]
        child: Program | None = begin
        while child is not None and (not operators or chance(rng, settings.repeating)):
            operator = weighted(rng, later if operators else first)
            operators.append(operator.__name__)
            child = _applied(rng, operator, child, parents, used)
        found = finished(child, settings) if child is not None else None
        if found is not None and all(_differ(found, parent) for parent in parents):
            named = with_new_names(found, [parents[index] for index in used])
            return Offspring(named, tuple(operators), tuple(used))
    return Offspring(random_program(rng, settings), DRAWN)


def _differ(one: Program, other: Program) -> bool:
    return replace(one, summary=other.summary) != other


def _applied(
    rng: np.random.Generator,
    operator: Operator,
    program: Program,
    parents: Sequence[Program],
    used: list[int],
) -> Program | None:
    if operator in HOLDING_CROSSOVERS:
        used.append(1 + int(rng.random() * (len(parents) - 1)))
        found = operator(rng, program, parents[used[-1]])
    else:
        found = operator(rng, program)
    # Later operators look up names: those of new ingredients must be there.
    return with_ingredients(found) if found is not None else None


@functools.cache
def _operators(settings: BreedingSettings, *, is_paired: bool) -> dict[Operator, float]:
    """Lists the operators that may come next, with their chances."""
    crossing = settings.crossing if is_paired else 0.0
    holding = (1 - crossing) * settings.holding if settings.may_hold else 0.0
    rest = 1 - crossing - holding
    is_plain = not settings.draws_ingredients
    growing = settings.plain_growing if is_plain else settings.growing
    groups: tuple[tuple[float, Mapping[Operator, float]], ...] = (
        (crossing, HOLDING_CROSSOVERS if settings.may_hold else CROSSOVERS),
        (holding, HOLDINGS),
        (rest * growing, PLAIN_GROWTHS if is_plain else GROWTHS),
        (rest * (1 - growing), MUTATIONS),
    )
    return {
        operator: share * often / sum(group.values())
        for share, group in groups
        if share > 0
        for operator, often in group.items()
    }


def _scaled(
    operators: Mapping[Operator, float], weights: Mapping[str, float]
) -> dict[Operator, float]:
    return {each: often * weights.get(each.__name__, 1.0) for each, often in operators.items()}


def finished(program: Program, settings: BreedingSettings | None = None) -> Program | None:
    """Makes a program safe, small and readable; returns None if that is impossible."""
    settings = settings or BreedingSettings()
    if complexity(program) > HOPELESS * settings.largest or (
        holds(program) and not settings.may_hold
    ):
        return None
    program = simplify(condensed(simplify(protect(with_ingredients(program)))))
    if program.block.result.head == "number" and not any(guards(program.block)):
        return None  # all nodes are alike to it
    program = with_short_lines(without_idle_gpu(with_ingredients(program)))
    if complexity(program) > settings.largest or (program.takes_gpu and not settings.may_take_gpu):
        return None
    return replace(program, summary=SUMMARY) if is_sound(program) else None
