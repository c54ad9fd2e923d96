"""Makes programs without ingredients larger: by changes, by terms within steps, by other sizes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from podium.search.generators.genetic.choice import chance, pick
from podium.search.generators.genetic.growth import (
    BENT,
    MOST_CHANGED,
    break_ties,
    expanded,
    insert_change,
    insert_loop,
    insert_term,
    once_placed,
    ratios,
    reward_equality,
    see_gpu,
)
from podium.search.generators.genetic.mutation import Mutation
from podium.search.generators.genetic.positions import Draft, draft_at, put, sites
from podium.search.generators.genetic.sampling import FRACTIONS_MILLI, draw_term, small_weight
from podium.search.program.expression import (
    ALWAYS,
    COMPARISONS,
    REDUCTIONS,
    Expression,
    apply,
    field,
    mapped,
    name,
    number,
    reduction,
    renamed,
    walk,
)
from podium.search.program.ingredients import HERE
from podium.search.program.program import Program, Term, fresh, roots, terms, with_roots
from podium.search.program.units import CPU, GPU

CURVED = BENT - {"/", "if"}
"""Those of them where the change also depends on what is left, whatever it is divided by."""

STEPS = ("int", "floor")
TRIES = 5
MOST_WITHIN = 1.5
"""The largest weight of a new term in what is cut into steps: some nodes go a step up or down."""

_SIZES = {
    field("node.cpu_milli_total"): ("CPU_MILLI_EACH", 8000.0, 96000.0, 512000.0),
    field("node.memory_mib_total"): ("MEMORY_MIB_EACH", 32768.0, 393216.0, 2097152.0),
    field("node.gpu_count"): ("GPUS_EACH", 1.0, 6.0, 32.0),
}
"""What a node has in all: the name of a constant in its place, and the least, usual and most."""

_DEMANDS = (field("pod.cpu_milli"), field("pod.memory_mib"), field("pod.gpu_milli"))
_RESTS = {
    GPU: (
        (field("pod.gpu_milli"), apply("*", field("pod.gpu_count"), field("pod.gpu_milli"))),
        FRACTIONS_MILLI,
    ),
    CPU: ((field("pod.cpu_milli"),), (2000, 4000, 8000, 12000, 32000)),
}
"""What pods take, by unit, and limits at usual sizes."""

_LIMITS = {GPU: "GPU_MILLI", CPU: "CPU_MILLI"}


def count_change(rng: np.random.Generator, program: Program) -> Program | None:
    """Scores by how much placing the pod changes a part of the score, and not by what is left."""
    found = [
        (site, after, before)
        for site in ratios(program, CURVED)
        for after, before in [_around(site.part, program)]
        if before != after and after.size + before.size <= 2 * MOST_CHANGED
    ]
    if not found:
        return None
    site, after, before = pick(rng, found)
    if site.part.head == "abs" and chance(rng, 0.7):
        after, before = _one_sided(after), _one_sided(before)
    return put(program, site, apply("-", after, before))


def _one_sided(part: Expression) -> Expression:
    """Takes an absolute value for what is above zero alone."""
    return apply("max", number(0), *part.arguments)


def _around(part: Expression, program: Program) -> tuple[Expression, Expression]:
    """Expresses a quantity as it is with the pod, and as though the pod took nothing.

    Both are the same where it tells pods apart: a pod that takes nothing would be another one.
    """
    whole = expanded(part, program)
    if any(each.head in ("if", *COMPARISONS) for _, each in walk(whole)):
        return whole, whole
    before = mapped(whole, lambda each: number(0) if each in _DEMANDS else each)
    return (once_placed(part, program), whole) if before == whole else (whole, before)


def insert_within(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds a drawn term to what is cut into steps, so that most nodes stay as good as others."""
    found = [each for each in sites(program) if each.part.head in STEPS and not each.in_loop]
    if not found:
        return None
    site = pick(rng, found)
    draft, _ = draft_at(program, site)
    weight = draft.constant("FINE_WEIGHT", small_weight(rng, MOST_WITHIN), 0.001, 10.0)
    term = apply("*", weight, _drawn_telling(rng, draft))
    inner = apply("+" if chance(rng, 0.5) else "-", site.part.arguments[0], term)
    return draft.taken_up(put(program, site, apply(site.part.head, inner)))


def insert_rest(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds to steps what the pod would leave of something, where that is little or much."""
    seeing = replace(program, takes_gpu=True) if chance(rng, 0.5) else program
    found = [each for each in sites(seeing) if each.part.head in STEPS and not each.in_loop]
    if not found:
        return None
    site = pick(rng, found)
    draft, _ = draft_at(seeing, site)
    unit, (demands, limits) = pick(rng, list(_RESTS.items()))
    leaves = [each for each in draft.leaves[unit[:3]] if each not in demands]
    leaves += [each for each in leaves if each == name(HERE)] * 6  # what it looks at the GPU for
    if not leaves:
        return None
    rest = apply("-", pick(rng, leaves), pick(rng, demands))
    limit = draft.constant(f"{_LIMITS[unit]}_LIMIT", pick(rng, limits), limits[0] / 4, limits[-1])
    is_little = apply("<" if chance(rng, 0.7) else ">=", rest, limit)
    steps = draft.constant("STEPS", float(f"{np.exp(rng.uniform(-1.0, 2.3)):.2g}"), 0.01, 100.0)
    term = apply("*", steps, apply("/", apply("if", is_little, rest, number(0)), limit))
    inner = apply("+" if chance(rng, 0.5) else "-", site.part.arguments[0], term)
    return draft.taken_up(put(seeing, site, apply(site.part.head, inner)))


def _drawn_telling(rng: np.random.Generator, draft: Draft) -> Expression:
    """Draws a term; if it has a ratio of something to itself, another one."""
    for _ in range(TRIES):
        term = draw_term(rng, draft, 2)
        if not any(p.head == "/" and p.arguments[0] == p.arguments[1] for _, p in walk(term)):
            break
    return term


def fix_sizes(rng: np.random.Generator, program: Program) -> Program | None:
    """Divides by sizes that all nodes share, where a score divides by each node's own."""
    draft = Draft.at(program, set(), {})
    sizes: dict[Expression, Expression] = {}

    def fixed(part: Expression) -> Expression:
        if part not in _SIZES:
            return part
        if part not in sizes:
            title, least, usual, most = _SIZES[part]
            value = float(f"{usual * np.exp(rng.normal(0.0, 0.3)):.2g}")
            sizes[part] = draft.constant(title, value, least, most)
        return sizes[part]

    def change(part: Expression) -> Expression:
        if part.head != "/":
            return part
        return apply("/", part.arguments[0], mapped(part.arguments[1], fixed))

    changed = iter([mapped(root, change) for root in roots(program.block)])
    found = replace(program, block=with_roots(program.block, changed))
    return draft.taken_up(found) if sizes else None


def limit_loop(rng: np.random.Generator, program: Program) -> Program | None:
    """Leaves out GPUs of which little is free, where a loop counts all of them."""
    found = [each for each in terms(program.block) if _counts_all(each.expression)]
    if not found:
        return None
    old = pick(rng, found)
    draft = Draft.at(program, set(), {})
    limit = draft.constant("GPU_MILLI_LIMIT", pick(rng, FRACTIONS_MILLI), 10, 1000)
    value, _, start = old.expression.arguments
    loop = reduction(old.expression.head, value, apply(">=", field("left"), limit), start.value)
    new = Term(fresh("gpu_milli_seen", draft.taken), loop)  # the old name would not be true
    changed = iter([renamed(root, {old.name: new.name}) for root in roots(program.block)])
    block = with_roots(program.block, changed)
    block = replace(block, statements=(new, *block.statements))
    return draft.taken_up(replace(program, block=block))


def _counts_all(part: Expression) -> bool:
    """Returns whether a loop is about all GPUs, whatever else is known."""
    return part.head in REDUCTIONS and part.arguments[1] == ALWAYS and not part.names


PLAIN_GROWTHS: dict[Mutation, float] = {
    insert_term: 1.0, break_ties: 2.0, reward_equality: 1.0, insert_loop: 1.0, insert_change: 1.0,
    see_gpu: 5.0, count_change: 14.0, insert_within: 12.0, fix_sizes: 5.0, limit_loop: 4.0,
    insert_rest: 16.0,
}  # fmt: skip
"""For programs that are made of fields, arithmetic and loops over slots alone."""
