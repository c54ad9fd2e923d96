"""Breeds: draws new programs, and makes offspring of old ones that are fit to run and to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from podium.search.generators.genetic.choice import chance, pick, weighted
from podium.search.generators.genetic.crossover import CROSSOVERS, HOLDING_CROSSOVERS
from podium.search.generators.genetic.growth import GROWTHS
from podium.search.generators.genetic.holding import HOLDINGS, holds
from podium.search.generators.genetic.mutation import MUTATIONS, Mutation
from podium.search.generators.genetic.positions import Draft
from podium.search.generators.genetic.protection import protect
from podium.search.generators.genetic.sampling import draw_term
from podium.search.program.bounds import is_sound
from podium.search.program.expression import apply, number
from podium.search.program.program import Program, complexity, program_of, with_result
from podium.search.program.shape import (
    with_ingredients,
    with_new_names,
    with_short_lines,
    without_idle_gpu,
)
from podium.search.program.simplify import simplify

TRIES = 40
HOPELESS = 1.5
"""A program this many times too large is not worth simplifying."""

SUMMARY = "Scores a pod on a node, as bred."


@dataclass(frozen=True, slots=True)
class BreedingSettings:
    """Limits on the offspring of breeding."""

    largest: int = 120  # nodes of a program, with the ingredients that it refers to
    crossing: float = 0.35  # the share of offspring with two parents
    growing: float = 0.3  # the share of mutations that make a program larger
    repeating: float = 0.35  # the chance of one more mutation after each
    may_take_gpu: bool = True
    may_hold: bool = False
    holding: float = 0.35  # the share of mutations that are about holding, where it may be


@dataclass(frozen=True, slots=True)
class Offspring:
    """A bred program and the names of the operators that made it."""

    program: Program
    operators: tuple[str, ...]


def random_program(rng: np.random.Generator, settings: BreedingSettings | None = None) -> Program:
    """Draws a program from nothing: a sum of a few terms."""
    settings = settings or BreedingSettings()
    for _ in range(TRIES):
        empty = program_of(number(0))
        draft = Draft.at(empty, set(), {})
        result = draw_term(rng, draft, 3)
        while chance(rng, 0.5):
            result = apply("+" if chance(rng, 0.5) else "-", result, draw_term(rng, draft, 2))
        found = finished(draft.taken_up(with_result(empty, result)), settings)
        if found is not None and found.block.result.head != "number":
            return found
    return program_of(number(0))


def breed(
    rng: np.random.Generator, parents: Sequence[Program], settings: BreedingSettings | None = None
) -> Offspring:
    """Breeds one offspring that differs from its parents; the first parent contributes most."""
    settings = settings or BreedingSettings()
    for _ in range(TRIES):
        operators: list[str] = []
        child: Program | None = parents[0]
        if len(parents) > 1 and chance(rng, settings.crossing):
            child = _crossed(rng, parents, settings, operators)
        while child is not None and (not operators or chance(rng, settings.repeating)):
            child = _mutated(rng, child, settings, operators)
        found = finished(child, settings) if child is not None else None
        if found is not None and all(_differ(found, parent) for parent in parents):
            return Offspring(with_new_names(found, parents), tuple(operators))
    return Offspring(random_program(rng, settings), ("random_program",))


def _differ(one: Program, other: Program) -> bool:
    return replace(one, summary=other.summary) != other


def _crossed(
    rng: np.random.Generator,
    parents: Sequence[Program],
    settings: BreedingSettings,
    operators: list[str],
) -> Program | None:
    crossover = weighted(rng, HOLDING_CROSSOVERS if settings.may_hold else CROSSOVERS)
    operators.append(crossover.__name__)
    return crossover(rng, parents[0], pick(rng, parents[1:]))


def _mutated(
    rng: np.random.Generator, program: Program, settings: BreedingSettings, operators: list[str]
) -> Program | None:
    mutation = weighted(rng, _mutations(rng, settings))
    operators.append(mutation.__name__)
    found = mutation(rng, program)
    # Later operators look up names: those of new ingredients must be there.
    return with_ingredients(found) if found is not None else None


def _mutations(rng: np.random.Generator, settings: BreedingSettings) -> dict[Mutation, float]:
    if settings.may_hold and chance(rng, settings.holding):
        return HOLDINGS
    return GROWTHS if chance(rng, settings.growing) else MUTATIONS


def finished(program: Program, settings: BreedingSettings | None = None) -> Program | None:
    """Makes a program safe, small and readable; returns None if that is impossible."""
    settings = settings or BreedingSettings()
    if complexity(program) > HOPELESS * settings.largest or (
        holds(program) and not settings.may_hold
    ):
        return None
    program = simplify(protect(with_ingredients(program)))
    program = with_short_lines(without_idle_gpu(with_ingredients(program)))
    if complexity(program) > settings.largest or (program.takes_gpu and not settings.may_take_gpu):
        return None
    return replace(program, summary=SUMMARY) if is_sound(program) else None
