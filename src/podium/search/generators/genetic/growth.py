"""Makes a program larger: another term, a bonus, a worth of GPU, or a look at each GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.search.generators.genetic.choice import chance, pick
from podium.search.generators.genetic.mutation import Mutation
from podium.search.generators.genetic.positions import (
    Draft,
    draft_at,
    put,
    result_sites,
    visible_names,
)
from podium.search.generators.genetic.sampling import NUMBERS, draw, draw_reduction, draw_term
from podium.search.generators.genetic.worth import WORTH_GROWTHS
from podium.search.program.expression import apply, name, number
from podium.search.program.ingredients import GPU_INGREDIENTS, HERE
from podium.search.program.program import Block, Program, Statement, Term, fresh, with_result
from podium.search.program.units import BOOLEAN, is_number, unit_of, units_of

DEPTH = 3


def insert_term(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds a drawn term to one of the scores."""
    found = result_sites(program)
    if not found:
        return None
    site = pick(rng, found)
    draft, _ = draft_at(program, site)
    term = draw_term(rng, draft, DEPTH)
    if chance(rng, 0.5):
        weight = float(f"{np.exp(rng.normal(0.0, 1.5)):.2g}")
        term = apply("*", draft.constant("WEIGHT", weight, 0.001, 100.0), term)
    head = "+" if chance(rng, 0.5) else "-"
    return draft.taken_up(put(program, site, apply(head, site.part, term)))


def reward_equality(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds a bonus where a condition holds."""
    found = result_sites(program)
    if not found:
        return None
    site = pick(rng, found)
    draft, _ = draft_at(program, site)
    condition = draw(rng, draft, BOOLEAN, 2)
    bonus = draft.constant("BONUS", float(pick(rng, NUMBERS[1:])), -20.0, 20.0)
    reward = apply("if", condition, bonus, number(0))
    return draft.taken_up(put(program, site, apply("+", site.part, reward)))


def insert_loop(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds a loop over GPU slots and uses it, as a ratio, in the score."""
    if program.block.result.head == "hold":
        return None
    draft = Draft.at(program, visible_names(program)[-1], units_of(program))
    loop = draw_loop(rng, draft)
    is_count = is_number(unit_of(loop.expression, units_of(program)))
    part = name(loop.name) if is_count else apply("/", name(loop.name), number(1000))
    weight = draft.constant("WEIGHT", float(f"{rng.normal(0.0, 1.0):.2g}"), -10.0, 10.0)
    result = apply("+", program.block.result, apply("*", weight, part))
    statements: tuple[Statement, ...] = (*program.block.statements, loop)
    return draft.taken_up(replace(program, block=Block(statements, result)))


def draw_loop(rng: np.random.Generator, draft: Draft) -> Term:
    """Draws a loop over GPU slots, with a name that says what kind of quantity it is."""
    loop = draw_reduction(rng, draft)
    title = fresh("gpus_seen" if is_number(unit_of(loop, {})) else "gpu_milli_seen", draft.taken)
    draft.taken.add(title)
    return Term(title, loop)


def see_gpu(rng: np.random.Generator, program: Program) -> Program | None:
    """Scores each GPU for a share pod, by what is left on it."""
    if program.block.result.head == "hold":
        return None
    program = replace(program, takes_gpu=True)
    draft = Draft.at(program, visible_names(program)[-1], units_of(program))
    # The first is the field of the slot, as it must be read: some pods have no slot.
    title = pick(rng, sorted(GPU_INGREDIENTS)) if program.draws_ingredients else HERE
    ratio = apply("/", name(title), number(1000))
    weight = draft.constant("WEIGHT", float(f"{rng.normal(0.0, 1.0):.2g}"), -10.0, 10.0)
    result = apply("+", program.block.result, apply("*", weight, ratio))
    return draft.taken_up(with_result(program, result))


PLAIN_GROWTHS: dict[Mutation, float] = {
    insert_term: 4.0, reward_equality: 1.5, insert_loop: 3.0, see_gpu: 0.7,
}  # fmt: skip
"""For programs that are made of fields, arithmetic and loops over slots alone."""

GROWTHS: dict[Mutation, float] = {
    insert_term: 4.0, reward_equality: 1.5, see_gpu: 0.7, **WORTH_GROWTHS,
}  # fmt: skip
