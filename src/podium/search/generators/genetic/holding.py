"""Guards that refuse a node, so that programs can hold pods, and operators that change them."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, replace

import numpy as np

from podium.model.records import GPU_MILLI
from podium.search.generators.genetic.choice import chance, pick, weighted
from podium.search.generators.genetic.mutation import Mutation
from podium.search.generators.genetic.positions import Draft, available
from podium.search.program.expression import HOLD, Expression, apply, field, name, number
from podium.search.program.program import Block, Constant, Guard, Program, Statement, guards
from podium.search.program.units import units_of

STEP = 0.3
"""How far the limit of a refusal moves, as the spread of its logarithm."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Describes the constants that a quantity is compared with."""

    base: str  # of its name, with the unit
    values: tuple[float, ...]
    high: float


_CPU = Limit("CPU_MILLI_LIMIT", (2000, 4000, 8000, 16000, 32000, 48000), 128_000)
_CPU_PER_GPU = Limit("CPU_MILLI_LIMIT_PER_GPU", (2, 4, 6, 8, 10, 12, 16), 64)
_GPU = Limit("GPU_MILLI_LIMIT", (100, 300, 500, 1000, 2000, 4000), 8000)
_MEMORY = Limit("MEMORY_MIB_LIMIT", (8192, 16384, 65536, 131072), 1_048_576)
_SHARE = Limit("SHARE_GPU_MILLI", (100, 200, 300, 400, 500, 600, 700, 800, 900), 1000)

PLACES: dict[tuple[Expression, Limit], float] = {
    (name("cpu_per_gpu_after"), _CPU_PER_GPU): 4.0,
    (name("cpu_per_gpu_before"), _CPU_PER_GPU): 3.0,
    (name("gpu_milli_behind"), _SHARE): 3.0,
    (name("gpu_milli_after"), _GPU): 2.0,
    (name("gpu_milli_free"), _GPU): 1.0,
    (name("shared_gpu_milli"), _GPU): 1.0,
    (name("cpu_milli_after"), _CPU): 2.0,
    (field("node.cpu_milli_left"), _CPU): 3.0,
    (field("node.memory_mib_left"), _MEMORY): 0.5,
}
"""What a refusal looks at on the node, and how often."""

PODS: dict[str, float] = {
    "any": 2.5, "large share": 2.5, "small share": 1.0, "share": 1.0, "cpu-only": 1.0, "whole": 0.7,
    "cpu-hungry": 1.0,
}  # fmt: skip
"""Which pods a refusal is about, and how often."""

_POD_GPU = field("pod.gpu_milli")
_SPARES = apply("<", number(0), name("gpu_milli_after"))


def holds(program: Program) -> bool:
    """Returns whether a program may hold pods."""
    return program.block.result == HOLD or any(map(_refuses, guards(program.block)))


def draw_refusal(rng: np.random.Generator, draft: Draft, given: Set[str]) -> Expression:
    """Draws when to refuse a node: for some pods, where they would leave too much or too little."""
    parts = _pods(rng, draft, given)
    if not parts or chance(rng, 0.7):
        if _SPARES.names <= given and chance(rng, 0.3):
            parts.append(_SPARES)
        known = {key: often for key, often in PLACES.items() if key[0].names <= given}
        quantity, limit = weighted(rng, known)
        parts.append(
            apply("<" if chance(rng, 0.5) else ">", quantity, _drawn_limit(rng, draft, limit))
        )
    return joined(parts)


def _pods(rng: np.random.Generator, draft: Draft, given: Set[str]) -> list[Expression]:
    kind = weighted(rng, PODS)
    above, below = apply("<", number(0), _POD_GPU), apply("<", _POD_GPU, number(GPU_MILLI))
    if kind == "large share":
        return [apply("<", _drawn_limit(rng, draft, _SHARE), _POD_GPU), below]
    if kind == "small share":
        return [above, apply("<", _POD_GPU, _drawn_limit(rng, draft, _SHARE))]
    if kind == "share":
        return [above, below]
    if kind == "cpu-only":
        return [apply("==", field("pod.gpu_count"), number(0))]
    if kind == "whole":
        return [apply("==", _POD_GPU, number(GPU_MILLI))]
    if kind == "cpu-hungry" and "cpu_per_gpu_wanted" in given:
        wanted = name("cpu_per_gpu_wanted")
        return [apply(">", wanted, _drawn_limit(rng, draft, _CPU_PER_GPU))]
    return []


def joined(parts: Iterable[Expression]) -> Expression:
    """Joins conditions that must all hold into one, without duplicates."""
    found = list(dict.fromkeys(parts))
    return found[0] if len(found) == 1 else apply("and", *found)


def _drawn_limit(rng: np.random.Generator, draft: Draft, limit: Limit) -> Expression:
    value = float(f"{pick(rng, limit.values) * np.exp(rng.normal(0.0, STEP / 2)):.3g}")
    return draft.constant(limit.base, min(value, limit.high), 0.0, limit.high)


def insert_hold(rng: np.random.Generator, program: Program) -> Program | None:
    """Refuses nodes on which a pod would leave resources that are of no use."""
    draft, given = _drafted(program)
    guard = Guard(draw_refusal(rng, draft, given), Block((), HOLD))
    # First of all: a guard behind a branch would not see the pods of the branch.
    block = replace(program.block, statements=(guard, *program.block.statements))
    return draft.taken_up(replace(program, block=block))


def narrow_hold(rng: np.random.Generator, program: Program) -> Program | None:
    """Refuses only where one more condition holds."""
    found = refusals(program)
    if not found:
        return None
    guard = pick(rng, found)
    draft, given = _drafted(program)
    more = draw_refusal(rng, draft, given)
    return draft.taken_up(_exchanged(program, guard, joined([*parts_of(guard), *_parts(more)])))


def widen_hold(rng: np.random.Generator, program: Program) -> Program | None:
    """Refuses whether or not one of the conditions holds."""
    found = [guard for guard in refusals(program) if len(parts_of(guard)) > 1]
    if not found:
        return None
    guard = pick(rng, found)
    kept = list(parts_of(guard))
    del kept[int(rng.random() * len(kept))]
    return _exchanged(program, guard, joined(kept))


def move_hold(rng: np.random.Generator, program: Program) -> Program | None:
    """Moves one limit of a refusal, within its bounds."""
    names = {title for guard in refusals(program) for title in guard.condition.names}
    found = [each for each in program.constants if each.name in names and each.bounds]
    if not found:
        return None
    chosen = pick(rng, found)
    moved = _moved(rng, chosen)
    constants = tuple(moved if each == chosen else each for each in program.constants)
    return replace(program, constants=constants)


def _moved(rng: np.random.Generator, constant: Constant) -> Constant:
    low, high = constant.bounds or (constant.value, constant.value)
    least = 0.001 * (high - low)  # what is 0 must be able to leave it
    value = max(constant.value, least) * float(np.exp(rng.normal(0.0, STEP)))
    return replace(constant, value=min(max(float(f"{value:.3g}"), low), high))


def drop_hold(rng: np.random.Generator, program: Program) -> Program | None:
    """Removes a refusal."""
    found = refusals(program)
    return _exchanged(program, pick(rng, found), None) if found else None


HOLDINGS: dict[Mutation, float] = {
    insert_hold: 3.0, narrow_hold: 1.0, widen_hold: 1.0, move_hold: 4.0, drop_hold: 0.7,
}  # fmt: skip


def _drafted(program: Program) -> tuple[Draft, set[str]]:
    given = set(available(program))
    return Draft.at(program, set(), units_of(program)), given


def refusals(program: Program) -> list[Guard]:
    """Lists the guards of the outermost block that refuse a node."""
    statements = program.block.statements
    return [each for each in statements if isinstance(each, Guard) and _refuses(each)]


def _refuses(guard: Guard) -> bool:
    return guard.block.result == HOLD


def parts_of(guard: Guard) -> tuple[Expression, ...]:
    """Lists the conditions that must all hold."""
    return _parts(guard.condition)


def _parts(condition: Expression) -> tuple[Expression, ...]:
    return condition.arguments if condition.head == "and" else (condition,)


def _exchanged(program: Program, guard: Guard, condition: Expression | None) -> Program:
    """Replaces the condition of a refusal; without a new one, removes the refusal."""
    statements: list[Statement] = []
    for statement in program.block.statements:
        if statement is not guard:
            statements.append(statement)
        elif condition is not None:
            statements.append(replace(guard, condition=condition))
    return replace(program, block=replace(program.block, statements=tuple(statements)))
