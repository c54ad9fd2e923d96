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
    FRACTIONS_MILLI,
    NUMBERS,
    draw,
    draw_reduction,
    draw_term,
    small_weight,
)
from podium.search.generators.genetic.worth import WORTH_GROWTHS
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
from podium.search.program.functions import substituted
from podium.search.program.ingredients import GPU_INGREDIENTS, HERE
from podium.search.program.program import (
    Block,
    Program,
    Statement,
    Term,
    fresh,
    roots,
    terms,
    with_result,
    with_roots,
)
from podium.search.program.units import BOOLEAN, CPU, GPU, is_number, unit_of, units_of

DEPTH = 3
MOST_CHANGED = 40
"""Parts of a quantity whose change is counted; it is written twice."""

BENT = frozenset(["power", "max", "min", "abs", "int", "floor", "sqrt", "/", "if"])
"""Operations that a change does not go through unchanged."""

CURVED = BENT - {"/", "if"}
"""Those of them where the change also depends on what is left, whatever it is divided by."""

STEPS = ("int", "floor")
TRIES = 5
MOST_WITHIN = 1.5
"""The largest weight of a new term in what is cut into steps: some nodes go a step up or down."""

_TAKEN = {"node.cpu_milli_left": "pod.cpu_milli", "node.memory_mib_left": "pod.memory_mib"}
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
    before, after = _expanded(part, program), once_placed(part, program)
    if before == after or after.size > MOST_CHANGED:
        return None
    weight = draft.constant("WEIGHT", float(f"{rng.normal(0.0, 1.0):.2g}"), -10.0, 10.0)
    change = apply("*", weight, apply("-", after, before))
    return draft.taken_up(put(program, site, apply("+", site.part, change)))


def count_change(rng: np.random.Generator, program: Program) -> Program | None:
    """Scores by how much placing the pod changes a part of the score, and not by what is left."""
    found = [
        (site, after, before)
        for site in _ratios(program, CURVED)
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


def _around(part: Expression, program: Program) -> tuple[Expression, Expression]:
    """Expresses a quantity as it is with the pod, and as though the pod took nothing.

    Both are the same where it tells pods apart: a pod that takes nothing would be another one.
    """
    whole = _expanded(part, program)
    if any(each.head in ("if", *COMPARISONS) for _, each in walk(whole)):
        return whole, whole
    before = mapped(whole, lambda each: number(0) if each in _DEMANDS else each)
    return (once_placed(part, program), whole) if before == whole else (whole, before)


def _bent_part(rng: np.random.Generator, program: Program) -> Expression | None:
    """Picks a ratio of the score whose change says more than the pod alone."""
    found = _ratios(program, BENT)
    return pick(rng, found).part if found else None


def _ratios(program: Program, heads: Container[str]) -> list[Site]:
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

    return mapped(_expanded(part, program), change)


def _expanded(part: Expression, program: Program) -> Expression:
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


PLAIN_GROWTHS: dict[Mutation, float] = {
    insert_term: 1.0, break_ties: 2.0, reward_equality: 1.0, insert_loop: 1.0, insert_change: 1.0,
    see_gpu: 5.0, count_change: 14.0, insert_within: 12.0, fix_sizes: 5.0, limit_loop: 4.0,
    insert_rest: 16.0,
}  # fmt: skip
"""For programs that are made of fields, arithmetic and loops over slots alone."""

GROWTHS: dict[Mutation, float] = {
    insert_term: 2.0, break_ties: 5.0, reward_equality: 1.0, see_gpu: 3.0, insert_change: 0.5,
    **WORTH_GROWTHS,
}  # fmt: skip
