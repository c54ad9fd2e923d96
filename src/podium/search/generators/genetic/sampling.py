"""Draws expressions of a unit: quantities, ratios of like quantities, conditions, loops."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from podium.model.records import ANY_MODEL, GPU_MILLI
from podium.search.generators.genetic.choice import chance, pick, weighted
from podium.search.generators.genetic.positions import Draft
from podium.search.program.expression import (
    ALWAYS,
    Expression,
    apply,
    field,
    name,
    number,
    reduction,
)
from podium.search.program.units import BOOLEAN, CPU, GPU, MEMORY, Unit, divided, is_number

CPU_PER_GPU = divided(CPU, GPU)
DIMENSIONS = {
    CPU: 3.0, MEMORY: 1.0, GPU: 4.0, CPU_PER_GPU: 2.5, divided(MEMORY, GPU): 0.4,
}  # fmt: skip
NUMBERS = (0, 0.1, 0.25, 0.5, 1, 2, 3, 4, 10)
FRACTIONS_MILLI = (100, 200, 250, 320, 470, 500, 650, 810, 1000)
LEVELS = (1, 2, 3, 4, 8, 10, 16, 20, 50, 100)
DRAWN_COMPARISONS = ("<", "<=", ">", ">=", "==")

_Maker = Callable[[np.random.Generator, Draft, int], Expression]


LEAST_WEIGHT = 0.01
"""Of a new term: small enough to decide between nodes of about the same score alone."""


def small_weight(rng: np.random.Generator, most: float = 0.5) -> float:
    """Draws the weight of a new term, of any magnitude: large ones mostly spoil what is tuned."""
    return float(f"{np.exp(rng.uniform(np.log(LEAST_WEIGHT), np.log(most))):.2g}")


def draw(rng: np.random.Generator, draft: Draft, unit: Unit, depth: int) -> Expression:
    """Draws an expression of a unit, at most so deep."""
    if unit == BOOLEAN:
        return draw_condition(rng, draft, depth)
    if is_number(unit):
        return draw_ratio(rng, draft, depth)
    return draw_quantity(rng, draft, unit, depth)


def draw_quantity(rng: np.random.Generator, draft: Draft, unit: Unit, depth: int) -> Expression:
    """Draws a quantity of a dimension: mostly a field or an ingredient."""
    leaves = draft.leaves.get(unit[:3], [])
    if leaves and (depth <= 0 or chance(rng, 0.7)):
        return pick(rng, leaves)
    if not leaves and unit.gpu < 0:  # for each GPU
        top = draw_quantity(rng, draft, Unit(unit.cpu, unit.memory), depth - 1)
        return apply("/", top, draw_quantity(rng, draft, GPU, depth - 1))
    if not leaves or chance(rng, 0.2):
        scaled = draw_ratio(rng, draft, depth - 2)
        return apply("*", scaled, pick(rng, leaves)) if leaves else scaled
    head = weighted(rng, {"-": 3.0, "+": 1.0, "min": 1.0, "max": 1.0, "abs": 0.7})
    left = draw_quantity(rng, draft, unit, depth - 1)
    right = draw_quantity(rng, draft, unit, depth - 1)
    return apply("abs", apply("-", left, right)) if head == "abs" else apply(head, left, right)


def draw_ratio(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    """Draws a number without dimension."""
    if depth <= 0:
        leaves = draft.leaves[(0, 0, 0)]
        return pick(rng, leaves) if chance(rng, 0.5) else number(pick(rng, NUMBERS))
    return weighted(rng, _RATIOS)(rng, draft, depth)


def draw_like(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    """Draws a ratio of like quantities."""
    unit = weighted(rng, DIMENSIONS)
    top = draw_quantity(rng, draft, unit, depth - 1)
    bottom = draw_quantity(rng, draft, unit, min(0, depth - 2))
    if unit == GPU and chance(rng, 0.4):
        bottom = number(GPU_MILLI)
    if unit == CPU_PER_GPU and chance(rng, 0.5) and draft.is_usual_known:
        bottom = name("CPUS_PER_GPU")
    return apply("/", top, bottom)


def _combined(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    head = weighted(rng, {"+": 3.0, "-": 3.0, "*": 2.0, "min": 1.0, "max": 1.0})
    left = draw_ratio(rng, draft, depth - 1)
    return apply(head, left, draw_ratio(rng, draft, depth - 1))


def _convex(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    part = draw_ratio(rng, draft, depth - 1)
    head = weighted(rng, {"power": 3.0, "abs": 2.0, "sqrt": 1.0})
    if head == "power":
        return apply("power", part, number(2))
    return apply(head, part if head == "sqrt" else apply("-", part, number(pick(rng, NUMBERS))))


def draw_steps(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    """Draws a quantised ratio."""
    return quantised(rng, draw_ratio(rng, draft, depth - 1))


def quantised(rng: np.random.Generator, part: Expression) -> Expression:
    """Cuts a ratio into whole steps; around zero, `int` makes one step of two."""
    head = pick(rng, ("int", "floor"))
    return apply(head, apply("*", number(pick(rng, LEVELS)), part))


def _chosen(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    condition = draw_condition(rng, draft, depth - 1)
    then = draw_ratio(rng, draft, depth - 1)
    return apply("if", condition, then, draw_ratio(rng, draft, depth - 2))


def draw_weighted(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    """Draws a ratio times a tunable weight."""
    weight = draft.constant("WEIGHT", round(float(rng.normal(0.0, 1.0)), 2), -10.0, 10.0)
    return apply("*", weight, draw_ratio(rng, draft, depth - 1))


_RATIOS: dict[_Maker, float] = {
    draw_like: 8.0, _combined: 4.0, _convex: 3.0, draw_steps: 2.0, _chosen: 1.5,
    draw_weighted: 1.5,
    lambda rng, draft, _depth: draw_ratio(rng, draft, 0): 1.0,
}  # fmt: skip


def draw_condition(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    """Draws a comparison of like quantities, a test of the pod's class, or both."""
    if depth > 1 and chance(rng, 0.15):
        parts = [draw_condition(rng, draft, depth - 1) for _ in range(2)]
        return apply(pick(rng, ("and", "or")), *parts)
    if chance(rng, 0.25):
        return draw_class(rng)
    if chance(rng, 0.15) and AMPLE.names <= draft.names:
        return AMPLE
    unit = weighted(rng, DIMENSIONS)
    left = draw_quantity(rng, draft, unit, depth - 1)
    return apply(pick(rng, DRAWN_COMPARISONS), left, _limit(rng, draft, unit))


def _limit(rng: np.random.Generator, draft: Draft, unit: Unit) -> Expression:
    if unit == GPU and chance(rng, 0.3):
        return number(pick(rng, FRACTIONS_MILLI))
    if unit == GPU and chance(rng, 0.3):
        return draft.constant("GPU_MILLI_LIMIT", pick(rng, FRACTIONS_MILLI), 0, 8000)
    if unit == CPU and chance(rng, 0.3):
        return draft.constant("CPU_MILLI_LIMIT", pick(rng, (2000, 4000, 8000, 12000)), 0, 64000)
    if unit == CPU_PER_GPU and chance(rng, 0.4):
        return draft.constant("LIMIT_CPUS_PER_GPU", pick(rng, (6.0, 10.0, 15.0, 20.0)), 1.0, 60.0)
    return draw_quantity(rng, draft, unit, 0)


AMPLE = apply(">=", name("cpu_per_gpu_before"), name("cpu_per_gpu_wanted"))
"""The node has at least the CPU for each free GPU that the pod wants: placing it starves none."""

CLASSES = (
    apply("==", field("pod.gpu_count"), number(0)),
    apply(">", field("pod.gpu_count"), number(0)),
    apply("<", field("pod.gpu_milli"), number(GPU_MILLI)),
    apply("==", field("pod.gpu_milli"), number(GPU_MILLI)),
    apply(">", field("pod.gpu_count"), number(1)),
    apply("!=", field("pod.gpu_models"), number(ANY_MODEL)),
)
"""CPU-only pods, GPU pods; those without whole GPUs, those with; several GPUs; some models only."""


def draw_class(rng: np.random.Generator) -> Expression:
    """Draws a test of the pod's class."""
    return pick(rng, CLASSES)


def draw_reduction(rng: np.random.Generator, draft: Draft) -> Expression:
    """Draws a loop over GPU slots."""
    inner = draft.in_loop()
    limit = _limit(rng, inner, GPU)
    condition = apply(pick(rng, DRAWN_COMPARISONS), field("left"), limit)
    kind = weighted(rng, {"count": 2.0, "sum": 2.0, "square": 1.0, "smallest": 1.0, "largest": 1.0})
    if kind == "count":
        return reduction("sum", number(1), condition)
    if kind == "square":
        ratio = apply("/", field("left"), number(GPU_MILLI))
        return reduction("sum", apply("power", ratio, number(2)), _maybe(rng, condition))
    value = field("left") if chance(rng, 0.7) else draw_quantity(rng, inner, GPU, 2)
    start = GPU_MILLI if kind == "smallest" else 0
    return reduction(kind, value, _maybe(rng, condition), start)


def _maybe(rng: np.random.Generator, condition: Expression) -> Expression:
    return condition if chance(rng, 0.6) else ALWAYS


def draw_term(rng: np.random.Generator, draft: Draft, depth: int) -> Expression:
    """Draws a ratio that is worth adding to a score."""
    maker = weighted(rng, {draw_like: 4.0, draw_steps: 2.0, draw_ratio: 3.0})
    found = maker(rng, draft, depth)
    found = found if found.arguments else draw_like(rng, draft, depth)
    if chance(rng, 0.25):
        return apply("if", draw_class(rng), found, number(0))
    return found
