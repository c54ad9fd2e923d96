"""Makes a program larger: a term, a bonus, a change, a worth of GPU, or a look at each GPU."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

import numpy as np

from podium.search.generators.genetic.choice import chance, pick
from podium.search.generators.genetic.mutation import Mutation
from podium.search.generators.genetic.positions import (
    Draft,
    Site,
    draft_at,
    put,
    result_sites,
    sites,
    visible_names,
)
from podium.search.generators.genetic.sampling import (
    NUMBERS,
    draw,
    draw_reduction,
    draw_term,
    small_weight,
)
from podium.search.generators.genetic.worth import WORTH_GROWTHS
from podium.search.program.expression import (
    REDUCTIONS,
    Expression,
    apply,
    field,
    mapped,
    name,
    number,
    reduction,
)
from podium.search.program.functions import substituted
from podium.search.program.ingredients import GPU_INGREDIENTS, HERE
from podium.search.program.program import (
    Block,
    Program,
    Statement,
    Term,
    fresh,
    terms,
    with_result,
)
from podium.search.program.units import BOOLEAN, is_number, unit_of, units_of

DEPTH = 3
MOST_CHANGED = 40
"""Parts of a quantity whose change is counted; it is written twice."""

BENT = frozenset(["power", "max", "min", "abs", "int", "floor", "sqrt", "/", "if"])
"""Operations that a change does not go through unchanged."""

_TAKEN = {"node.cpu_milli_left": "pod.cpu_milli", "node.memory_mib_left": "pod.memory_mib"}
_FREE = reduction("sum", field("left"))


def insert_term(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds a drawn term to one of the scores."""

    def drawn(draft: Draft) -> Expression:
        term = draw_term(rng, draft, DEPTH)
        if not chance(rng, 0.5):
            return term
        weight = float(f"{np.exp(rng.normal(0.0, 1.5)):.2g}")
        return apply("*", draft.constant("WEIGHT", weight, 0.001, 100.0), term)

    return _with_term(rng, program, drawn)


def break_ties(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds a drawn term so small that it decides between nodes of about the same score."""

    def drawn(draft: Draft) -> Expression:
        return apply("*", _small_weight(rng, draft), draw_term(rng, draft, 2))

    return _with_term(rng, program, drawn)


def _with_term(
    rng: np.random.Generator, program: Program, draw_one: Callable[[Draft], Expression]
) -> Program | None:
    """Adds a term to one of the scores, or takes it from it."""
    found = result_sites(program)
    if not found:
        return None
    site = pick(rng, found)
    draft, _ = draft_at(program, site)
    term = draw_one(draft)
    head = "+" if chance(rng, 0.5) else "-"
    return draft.taken_up(put(program, site, apply(head, site.part, term)))


def _small_weight(rng: np.random.Generator, draft: Draft) -> Expression:
    return draft.constant("FINE_WEIGHT", small_weight(rng), 0.001, 10.0)


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


def insert_change(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds how much placing the pod changes a quantity of the node, of the score or drawn anew."""
    found = result_sites(program)
    if not found:
        return None
    site = pick(rng, found)
    draft, _ = draft_at(program, site)
    part = _bent_part(rng, program)
    if part is None or chance(rng, 0.5):
        inner = draw_term(rng, draft, 2)
        is_gap = chance(rng, 0.5)
        limit = draw_term(rng, draft, 1) if is_gap else number(0)
        part = apply("max", number(0), apply("-", inner, limit))
        part = part if is_gap else apply("power", inner, number(2))
    before, after = expanded(part, program), once_placed(part, program)
    if before == after or after.size > MOST_CHANGED:
        return None
    weight = draft.constant("WEIGHT", float(f"{rng.normal(0.0, 1.0):.2g}"), -10.0, 10.0)
    change = apply("*", weight, apply("-", after, before))
    return draft.taken_up(put(program, site, apply("+", site.part, change)))


def _bent_part(rng: np.random.Generator, program: Program) -> Expression | None:
    """Picks a ratio of the score whose change says more than the pod alone."""
    found = ratios(program, BENT)
    return pick(rng, found).part if found else None


def ratios(program: Program, heads: Container[str]) -> list[Site]:
    """Lists the parts of scores that have no unit, with some of the operations."""
    units = units_of(program)
    results = {each.root for each in result_sites(program)}
    return [
        each
        for each in sites(program)
        if each.root in results and each.part.head in heads and is_number(unit_of(each.part, units))
    ]


def once_placed(part: Expression, program: Program) -> Expression:
    """Expresses a quantity as it is once the pod has taken its CPU, memory and GPU."""
    wanted = apply("*", field("pod.gpu_count"), field("pod.gpu_milli"))
    free = {each.name for each in terms(program.block) if each.expression == _FREE}

    def change(each: Expression) -> Expression:
        if each.head == "field" and each.value in _TAKEN:
            return apply("-", each, field(_TAKEN[each.value]))
        if each == name(HERE):
            return apply("-", each, field("pod.gpu_milli"))
        return apply("-", each, wanted) if each.head == "name" and each.value in free else each

    return mapped(expanded(part, program), change)


def expanded(part: Expression, program: Program) -> Expression:
    """Writes terms into the place of their names; loops stay."""
    known: dict[str, Expression] = {}
    for term in terms(program.block):
        if term.expression.head not in REDUCTIONS:
            known[term.name] = substituted(term.expression, known)
    return substituted(part, known)


def see_gpu(rng: np.random.Generator, program: Program) -> Program | None:
    """Scores each GPU for a share pod, by what is left on it."""
    if program.block.result.head == "hold":
        return None
    program = replace(program, takes_gpu=True)
    draft = Draft.at(program, visible_names(program)[-1], units_of(program))
    # The first is the field of the slot, as it must be read: some pods have no slot.
    title = pick(rng, sorted(GPU_INGREDIENTS)) if program.draws_ingredients else HERE
    ratio = apply("/", name(title), number(1000))
    head = "+" if chance(rng, 0.3) else "-"
    fine = apply("*", _small_weight(rng, draft), ratio)
    return draft.taken_up(with_result(program, apply(head, program.block.result, fine)))


GROWTHS: dict[Mutation, float] = {
    insert_term: 2.0, break_ties: 5.0, reward_equality: 1.0, see_gpu: 3.0, insert_change: 0.5,
    **WORTH_GROWTHS,
}  # fmt: skip
