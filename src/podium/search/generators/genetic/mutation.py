"""Changes one thing about a program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from podium.search.generators.genetic.choice import chance, pick
from podium.search.generators.genetic.positions import (
    available,
    draft_at,
    function_sites,
    put,
    sites,
)
from podium.search.generators.genetic.sampling import draw, quantised
from podium.search.program.expression import Expression, apply, name, number, walk
from podium.search.program.ingredients import INGREDIENTS
from podium.search.program.program import (
    Constant,
    Guard,
    Program,
    roots,
    terms,
    with_roots,
)
from podium.search.program.units import BOOLEAN, is_number, unit_of, units_of

DEPTH = 3

_RELATIVES = (
    ("stranded_gpu_milli_before", "starved_gpu_milli_before"),
    ("stranded_gpu_milli_after", "starved_gpu_milli_after"),
    ("stranded_gpu_milli_more", "starved_gpu_milli_more"),
    ("gpu_milli_wanted", "gpu_milli_spent"),
    ("gpu_milli_behind", "lost_gpu_milli"),
)
"""Quantities that mean the same, with and without parts of GPUs that are too small."""

_BOTH_WAYS = _RELATIVES + tuple((other, one) for one, other in _RELATIVES)

Mutation = Callable[[np.random.Generator, Program], Program | None]
"""Returns another program, or None where there is nothing of its kind to change."""


def replace_part(rng: np.random.Generator, program: Program) -> Program | None:
    """Draws a part of the same unit anew."""
    found = sites(program)
    if not found:
        return None
    site = pick(rng, found)
    draft, units = draft_at(program, site)
    depth = 1 + int(rng.random() * DEPTH)
    part = draw(rng, draft, unit_of(site.part, units), depth)
    return draft.taken_up(put(program, site, part))


def change_point(rng: np.random.Generator, program: Program) -> Program | None:
    """Changes one operator, field or name into another that fits its arguments."""
    found = [site for site in sites(program) if site.part.head in _ALIKE or site.part.is_leaf]
    found = [site for site in found if site.part.head != "number"]
    if not found:
        return None
    site = pick(rng, found)
    part = site.part
    if part.head in _ALIKE:
        head = pick(rng, [other for other in _ALIKE[part.head] if other != part.head])
        return put(program, site, apply(head, *part.arguments))
    draft, units = draft_at(program, site)
    dims = unit_of(part, units)[:3]
    others = [leaf for leaf in draft.leaves.get(dims, []) if leaf != part]
    return put(program, site, pick(rng, others)) if others else None


_ALIKE: dict[str, tuple[str, ...]] = {}
for _group in (("+", "-"), ("min", "max"), ("and", "or")):
    _ALIKE.update(dict.fromkeys(_group, _group))


def jitter_number(rng: np.random.Generator, program: Program) -> Program | None:
    """Moves one literal number a little."""
    places = (*sites(program), *function_sites(program))
    found = [site for site in places if site.part.head == "number"]
    if not found:
        return None
    site = pick(rng, found)
    return put(program, site, number(jittered(rng, site.part.value)))


def jittered(rng: np.random.Generator, value: float) -> float:
    """Moves a number; a whole one stays whole, others keep three digits."""
    width = _width(rng)
    if isinstance(value, int):
        step = max(1, round(abs(value) * abs(float(rng.normal(0.0, width)))))
        return value + (step if chance(rng, 0.5) else -step)
    if value == 0:
        return float(f"{rng.normal(0.0, 0.3):.2g}")
    return float(f"{value * np.exp(rng.normal(0.0, width)):.3g}")


def _width(rng: np.random.Generator) -> float:
    """Draws how far a number moves, of any magnitude: what is tuned already bears little."""
    return float(np.exp(rng.uniform(np.log(0.03), np.log(0.5))))


def jitter_constant(rng: np.random.Generator, program: Program) -> Program | None:
    """Moves one tunable constant within its bounds."""
    tunable = [index for index, each in enumerate(program.constants) if each.bounds]
    if not tunable:
        return None
    index = pick(rng, tunable)
    constants = list(program.constants)
    constants[index] = _moved(rng, constants[index])
    return replace(program, constants=tuple(constants))


def _moved(rng: np.random.Generator, constant: Constant) -> Constant:
    low, high = constant.bounds or (constant.value, constant.value)
    width = 0.1 * (high - low) if chance(rng, 0.15) else _width(rng) * abs(constant.value) + 1e-3
    moved = float(np.clip(constant.value + rng.normal(0.0, width), low, high))
    value = round(moved) if isinstance(constant.value, int) else float(f"{moved:.3g}")
    return replace(constant, value=min(max(value, low), high))


def delete_term(rng: np.random.Generator, program: Program) -> Program | None:
    """Keeps only one side of a sum, a product or a choice, or drops a guard."""
    heads = ("+", "-", "*", "min", "max", "if", "and", "or")
    places = (*sites(program), *function_sites(program))
    found = [site for site in places if site.part.head in heads]
    if not found or chance(rng, 0.3):
        return _unguarded(rng, program)
    site = pick(rng, found)
    parts = site.part.arguments[1:] if site.part.head == "if" else site.part.arguments
    return put(program, site, pick(rng, parts))


def hoist(rng: np.random.Generator, program: Program) -> Program | None:
    """Replaces a part by one of its own parts of the same unit."""
    units = units_of(program)
    found = [site for site in sites(program) if site.part.arguments]
    if not found:
        return None
    site = pick(rng, found)
    wanted = unit_of(site.part, units)[:3], unit_of(site.part, units) == BOOLEAN
    inner = [
        part
        for path, part in walk(site.part)
        if path and (unit_of(part, units)[:3], unit_of(part, units) == BOOLEAN) == wanted
    ]
    return put(program, site, pick(rng, inner)) if inner else None


def quantise(rng: np.random.Generator, program: Program) -> Program | None:
    """Cuts a ratio into whole steps, or takes such a cut away."""
    units = units_of(program)
    cut = [site for site in sites(program) if site.part.head in ("int", "floor")]
    if cut and chance(rng, 0.3):
        site = pick(rng, cut)
        return put(program, site, site.part.arguments[0])
    found = [
        site for site in sites(program)
        if site.part.arguments and not site.in_loop and is_number(unit_of(site.part, units))
    ]  # fmt: skip
    if not found:
        return None
    site = pick(rng, found if chance(rng, 0.5) else found[-3:])
    return put(program, site, quantised(rng, site.part))


def exchange_relative(rng: np.random.Generator, program: Program) -> Program | None:
    """Replaces a quantity everywhere by its finer or coarser variant."""
    used = set().union(*(root.names for root, is_own in _marked(program) if is_own))
    free = set(available(program))
    pairs = [(one, other) for one, other in _BOTH_WAYS if one in used and {one, other} <= free]
    if not pairs:
        return None
    one, other = pick(rng, pairs)
    changed = iter(
        [_renamed(root, one, other) if is_own else root for root, is_own in _marked(program)]
    )
    return replace(program, block=with_roots(program.block, changed))


def _marked(program: Program) -> list[tuple[Expression, bool]]:
    """Lists the expressions of a program, and whether each is its own or an ingredient's."""
    ingredients = {id(t.expression) for t in terms(program.block) if t.name in INGREDIENTS}
    return [(root, id(root) not in ingredients) for root in roots(program.block)]


def _renamed(part: Expression, one: str, other: str) -> Expression:
    if one not in part.names:
        return part
    if part.head == "name":
        return name(other)
    arguments = tuple(_renamed(each, one, other) for each in part.arguments)
    return Expression(part.head, arguments, part.value)


def _unguarded(rng: np.random.Generator, program: Program) -> Program | None:
    statements = program.block.statements
    places = [index for index, each in enumerate(statements) if isinstance(each, Guard)]
    if not places:
        return None
    place = pick(rng, places)
    kept = (*statements[:place], *statements[place + 1 :])
    return replace(program, block=replace(program.block, statements=kept))


MUTATIONS: dict[Mutation, float] = {
    replace_part: 4.0, change_point: 3.0, jitter_number: 2.0, jitter_constant: 3.0,
    delete_term: 2.0, hoist: 1.0, quantise: 2.0, exchange_relative: 1.5,
}  # fmt: skip
