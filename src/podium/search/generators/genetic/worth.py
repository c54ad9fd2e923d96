"""Grows programs by what free GPU is worth: in steps, and at several levels of CPU beside it.

A free part of a GPU is worth what can still be placed on it, which is not its size; and GPU is
worth nothing to pods for which too little CPU is left beside it, which differs between pods.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from podium.model.records import GPU_MILLI
from podium.search.generators.genetic.choice import chance, pick
from podium.search.generators.genetic.mutation import Mutation
from podium.search.generators.genetic.positions import (
    Draft,
    Site,
    available,
    put,
    result_sites,
    sites,
)
from podium.search.generators.genetic.sampling import FRACTIONS_MILLI, small_weight
from podium.search.program.expression import (
    COMPARISONS,
    JUNCTIONS,
    Expression,
    Path,
    apply,
    call,
    field,
    mapped,
    name,
    number,
    part_at,
    reduction,
)
from podium.search.program.ingredients import INGREDIENTS, STARVED, WORTH
from podium.search.program.program import (
    Function,
    Program,
    Statement,
    Term,
    fresh,
    names_given,
    roots,
    terms,
    with_roots,
)
from podium.search.program.units import GPU, unit_of, unit_of_name, units_of

MOST_STEPS = 5
CPUS_PER_GPU = (3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0)
"""Levels of CPU for each GPU to begin with; OpenB's pods take 4 to 16, most of them 8 to 12."""

SMALL = "SMALL_GPU_MILLI"
ROUGHLY, NEARLY = (0.5, 1.1), (0.85, 1.05)
"""What parts are worth to begin with, beside a size: drawn anew, and in place of a limit."""

_MILLI = "gpu_milli"
Pair = tuple[Expression, Expression]
"""A quantity before the pod is placed, and after."""


def insert_worth(rng: np.random.Generator, program: Program) -> Program | None:
    """Counts what the pod takes from the worth of free GPUs, beyond what it uses."""
    if not _known(program, "gpu_milli_wanted"):
        return None
    draft = _draft(program)
    program, worth = _with_worth(rng, program, draft)
    taken = next(t for t in terms(program.block) if t.expression == _taken(worth, program))
    loss = apply("-", name(taken.name), name("gpu_milli_wanted"))
    return _added(rng, program, draft, loss)


def insert_level(rng: np.random.Generator, program: Program) -> Program | None:
    """Counts the GPU that the pod starves of CPU, at a level of CPU for each GPU of its own."""
    if not _known(program, "gpu_milli_after", "cpu_milli_after"):
        return None
    draft = _draft(program)
    if chance(rng, 0.4):
        program, _ = _with_worth(rng, program, draft)
    program, starved = _with_function(program, draft, STARVED)
    before, after = pick(rng, gpu_pairs(program))
    level = draft.constant("CPUS_PER_GPU", pick(rng, CPUS_PER_GPU), 1.0, 60.0)
    more = apply(
        "-",
        call(starved, after, name("cpu_milli_after"), level),
        call(starved, before, field("node.cpu_milli_left"), level),
    )
    return _added(rng, program, draft, more)


def insert_square(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds how much the pod changes the square of a ratio: full and empty nodes are preferred."""
    pairs = ratio_pairs(program)
    if not pairs:
        return None
    draft = _draft(program)
    before, after = pick(rng, pairs)
    change = apply("-", apply("power", after, number(2)), apply("power", before, number(2)))
    weight = draft.constant("WEIGHT", small_weight(rng), 0.001, 10.0)
    result = program.block.result
    if result.head == "hold":
        return None
    head = "+" if chance(rng, 0.5) else "-"
    block = replace(program.block, result=apply(head, result, apply("*", weight, change)))
    return draft.taken_up(replace(program, block=block))


def refine_worth(rng: np.random.Generator, program: Program) -> Program | None:
    """Counts parts of GPUs by a worth in steps wherever those too small counted for nothing."""
    used = {t for t in _COARSE if any(t in root.names for root in _own_roots(program))}
    if not used or not _known(program, *_COARSE):
        return None
    draft = _draft(program)
    small = next((each.value for each in program.constants if each.name == SMALL), 100.0)
    new = draw_worth_above(rng, draft, small)
    program, worth = _with_measures(*_with_function(program, draft, new), draft)
    program, starved = _with_function(program, draft, STARVED)
    finer = _finer(program, worth, starved)

    def change(part: Expression) -> Expression:
        return finer.get(part.value, part) if part.head == "name" else part

    own = {id(root) for root in _own_roots(program)}
    changed = [mapped(root, change) if id(root) in own else root for root in roots(program.block)]
    return draft.taken_up(replace(program, block=with_roots(program.block, iter(changed))))


_COARSE = (
    "lost_gpu_milli", "usable_gpu_milli_before", "usable_gpu_milli_after",
    "starved_gpu_milli_before", "starved_gpu_milli_after", "starved_gpu_milli_more",
)  # fmt: skip


def _finer(program: Program, worth: str, starved: str) -> dict[str, Expression]:
    """Expresses what ingredients say of parts that are too small by a worth in steps."""
    given = {term.expression: name(term.name) for term in terms(program.block)}
    before, taken = given[_before(worth)], given[_taken(worth, program)]
    after = given[apply("-", before, taken)]
    usual = name("CPUS_PER_GPU")
    lacking = call(starved, before, field("node.cpu_milli_left"), usual)
    left = call(starved, after, name("cpu_milli_after"), usual)
    return dict(zip(_COARSE, (
        apply("-", taken, name("gpu_milli_wanted")), before, after, lacking, left,
        apply("-", left, lacking),
    ), strict=True))  # fmt: skip


def change_steps(rng: np.random.Generator, program: Program) -> Program | None:
    """Adds a step to the worth of a free part, or takes one away."""
    found = [each for each in program.functions if _is_worth(each)]
    if not found:
        return None
    function = pick(rng, found)
    draft = _draft(program)
    steps, last = _steps(function.expression)
    if steps and (len(steps) >= MOST_STEPS or chance(rng, 0.4)):
        del steps[int(rng.random() * len(steps))]
    else:
        limit = float(pick(rng, FRACTIONS_MILLI[:-1]))
        values = {each.name: each.value for each in program.constants}
        place = sum(_limit_of(condition, values) < limit for condition, _ in steps)
        steps.insert(place, _step(rng, draft, function, limit))
    new = replace(function, expression=_chain(steps, last))
    functions = tuple(new if each is function else each for each in program.functions)
    return draft.taken_up(replace(program, functions=functions))


def draw_worth(rng: np.random.Generator, draft: Draft) -> Function:
    """Draws a worth of a free part: a few steps, and above them its size."""
    limits = sorted({pick(rng, FRACTIONS_MILLI[:-1]) for _ in range(pick(rng, (1, 2, 3, 4)))})
    return _worth(rng, draft, limits, [0, *limits[:-1]])


def draw_worth_above(rng: np.random.Generator, draft: Draft, small: float) -> Function:
    """Draws a worth that differs little from that of a program to which small parts are useless.

    They stay so; parts a little larger are worth the same, whatever their size.
    """
    larger = [float(each) for each in FRACTIONS_MILLI if each > small + 20][:3]
    limits = [small, pick(rng, larger)] if larger else [small]
    return _worth(rng, draft, limits, [0.0, float(np.mean(limits))][: len(limits)], NEARLY)


def _worth(
    rng: np.random.Generator,
    draft: Draft,
    limits: Sequence[float],
    levels: Sequence[float],
    around: tuple[float, float] = ROUGHLY,
) -> Function:
    """Makes a worth of parts below each limit about as large as a level; the others' is theirs."""
    title = fresh("worth", draft.taken)
    draft.taken.add(title)
    steps = []
    for limit, level in zip(limits, levels, strict=True):
        part = draft.constant("STEP_GPU_MILLI", float(f"{limit:.4g}"), 0.0, float(GPU_MILLI))
        value = _level(rng, draft, level, around) if level else number(0)
        steps.append((apply("<", name(_MILLI), part), value))
    return Function(title, (_MILLI,), _chain(steps, name(_MILLI)), WORTH)


def _level(
    rng: np.random.Generator, draft: Draft, milli: float, around: tuple[float, float] = ROUGHLY
) -> Expression:
    value = float(f"{milli * rng.uniform(*around):.3g}")
    return draft.constant("WORTH_GPU_MILLI", value, 0.0, float(GPU_MILLI))


def _limit_of(condition: Expression, values: Mapping[str, float]) -> float:
    last = condition.arguments[-1] if condition.arguments else condition
    return values.get(str(last.value), 0.0)


def _step(
    rng: np.random.Generator, draft: Draft, function: Function, limit: float
) -> tuple[Expression, Expression]:
    constant = draft.constant("STEP_GPU_MILLI", limit, 0.0, float(GPU_MILLI))
    condition = apply("<", name(function.parameters[0]), constant)
    return condition, _level(rng, draft, limit / 2)


def _steps(expression: Expression) -> tuple[list[tuple[Expression, Expression]], Expression]:
    found = []
    while expression.head == "if":
        condition, then, expression = expression.arguments
        found.append((condition, then))
    return found, expression


def _chain(steps: list[tuple[Expression, Expression]], last: Expression) -> Expression:
    for condition, then in reversed(steps):
        last = apply("if", condition, then, last)
    return last


def _is_worth(function: Function) -> bool:
    return len(function.parameters) == 1 and unit_of_name(function.parameters[0]) == GPU


def _draft(program: Program) -> Draft:
    return Draft.at(program, set(), units_of(program))


def _known(program: Program, *titles: str) -> bool:
    return set(titles) <= set(available(program))


def _own_roots(program: Program) -> list[Expression]:
    ingredients = {id(t.expression) for t in terms(program.block) if t.name in INGREDIENTS}
    return [root for root in roots(program.block) if id(root) not in ingredients]


def _before(worth: str) -> Expression:
    return reduction("sum", call(worth, field("left")))


def _taken(worth: str, program: Program) -> Expression:
    """Expresses the worth that the pod takes, from the GPU in question or the tightest one."""
    here, behind = ("tightest_gpu_milli", "gpu_milli_behind")
    if program.takes_gpu:
        here, behind = ("gpu_milli_here", "gpu_milli_behind_here")
    change = apply("-", call(worth, name(here)), call(worth, name(behind)))
    return apply("*", field("pod.gpu_count"), change)


def _with_worth(rng: np.random.Generator, program: Program, draft: Draft) -> tuple[Program, str]:
    """Gives a program the worth of its free GPUs before and after the pod."""
    known = [each.name for each in program.functions if _is_worth(each)]
    if known and chance(rng, 0.7):
        worth = pick(rng, known)
    else:
        program, worth = _with_function(program, draft, draw_worth(rng, draft))
    return _with_measures(program, worth, draft)


def _with_measures(program: Program, worth: str, draft: Draft) -> tuple[Program, str]:
    program, before = _with_term(program, draft, f"{worth}_before", _before(worth))
    program, taken = _with_term(program, draft, f"{worth}_taken", _taken(worth, program))
    after = apply("-", before, taken)
    program, _ = _with_term(program, draft, f"{worth}_after", after)
    return program, worth


def _with_function(program: Program, draft: Draft, function: Function) -> tuple[Program, str]:
    for each in program.functions:
        if replace(each, name=function.name, summary=function.summary) == function:
            return program, each.name
    title = fresh(function.name, names_given(program))
    draft.taken.add(title)
    new = replace(function, name=title)
    return replace(program, functions=(*program.functions, new)), title


def _with_term(
    program: Program, draft: Draft, title: str, expression: Expression
) -> tuple[Program, Expression]:
    for term in terms(program.block):
        if term.expression == expression:
            return program, name(term.name)
    title = fresh(title, draft.taken)
    draft.taken.add(title)
    statements = program.block.statements
    # Made of fields and ingredients, which come first, and of others of its kind.
    place = _first_use(statements)
    new: tuple[Statement, ...] = (*statements[:place], Term(title, expression), *statements[place:])
    block = replace(program.block, statements=new)
    return replace(program, block=block), name(title)


def _first_use(statements: tuple[Statement, ...]) -> int:
    """Finds the place behind ingredients and behind what is known of worth."""
    for index, statement in enumerate(statements):
        is_early = isinstance(statement, Term) and (
            statement.name in INGREDIENTS
            or bool(statement.expression.calls)
            or _is_after(statement)
        )
        if not is_early:
            return index
    return len(statements)


def _is_after(term: Term) -> bool:
    return term.name.endswith(("_after", "_before", "_taken"))


def gpu_pairs(program: Program) -> list[Pair]:
    """Lists free GPU before and after the pod, by every measure of it that a program has."""
    found = [(name("gpu_milli_free"), name("gpu_milli_after"))]
    if _known(program, "usable_gpu_milli_after"):
        found.append((name("usable_gpu_milli_before"), name("usable_gpu_milli_after")))
    for term in terms(program.block):
        parts = term.expression.arguments
        is_pair = term.expression.head == "-" and all(part.head == "name" for part in parts)
        if is_pair and str(parts[1].value).startswith("worth") and "taken" in str(parts[1].value):
            found += [(parts[0], name(term.name))] * 3
    return found


def ratio_pairs(program: Program) -> list[Pair]:
    """Lists shares of a node's resources that are free before and after the pod."""
    found: list[Pair] = []
    if _known(program, "gpu_milli_after"):
        whole = apply("max", number(1), apply("*", number(GPU_MILLI), field("node.gpu_count")))
        found += [(apply("/", a, whole), apply("/", b, whole)) for a, b in gpu_pairs(program)]
        found += [
            (apply("/", a, number(GPU_MILLI)), apply("/", b, number(GPU_MILLI)))
            for a, b in gpu_pairs(program)
        ]
    for resource in ("cpu_milli", "memory_mib"):
        if _known(program, f"{resource}_after"):
            whole = apply("max", number(1), field(f"node.{resource}_total"))
            left = apply("/", field(f"node.{resource}_left"), whole)
            found.append((left, apply("/", name(f"{resource}_after"), whole)))
    return found


def _added(
    rng: np.random.Generator, program: Program, draft: Draft, loss: Expression
) -> Program | None:
    """Adds a loss of GPU to a quantity of GPU in the score, or takes it from the score."""
    weight = draft.constant("WEIGHT", small_weight(rng, 0.7), 0.01, 10.0)
    weighed = apply("*", weight, loss)
    places = _quantities(program)
    if places and chance(rng, 0.7):
        site = pick(rng, places)
        return draft.taken_up(put(program, site, apply("+", site.part, weighed)))
    result = program.block.result
    if result.head == "hold":
        return None
    less = apply("-", result, apply("/", weighed, number(GPU_MILLI)))
    return draft.taken_up(replace(program, block=replace(program.block, result=less)))


def _quantities(program: Program) -> list[Site]:
    """Lists the quantities of GPU that scores are made of, other than in conditions."""
    expressions = list(roots(program.block))
    units = units_of(program)
    results = {each.root for each in result_sites(program)}
    return [
        site
        for site in sites(program)
        if site.root in results
        and unit_of(site.part, units) == GPU
        and not any(
            _is_test(expressions[site.root], site.path[:end]) for end in range(len(site.path))
        )
    ]


def _is_test(root: Expression, path: Path) -> bool:
    return part_at(root, path).head in (*COMPARISONS, *JUNCTIONS, "not", "if")


WORTH_GROWTHS: dict[Mutation, float] = {
    insert_worth: 0.7, insert_level: 3.0, insert_square: 1.0, refine_worth: 2.0, change_steps: 1.5,
}  # fmt: skip
"""Made of ingredients, all of them."""
