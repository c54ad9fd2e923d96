"""Policy gradient on the stepped simulator: runs of one plan, compared with each other.

All environments of a group meet the same pods on the same cluster and differ by what the net drew.
What did better than the mean of its group becomes more likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case
from podium.policies import load
from podium.policies.networks.mlp import NUM_FEATURES, table_of
from podium.rl.mlp.candidates import Places
from podium.rl.mlp.parameters import Array, Arrays
from podium.rl.mlp.trials import allocations
from podium.sim import Setup
from podium.sim.stepping import ANY_SLOT, VectorEnvironment, stepped_plan

MOST_PLACES = 64
"""Places for a pod among which the net draws; small clusters have no more."""


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Decisions that were drawn, and how much better their runs did than others of their group."""

    seen: npt.NDArray[np.float32]  # (decisions, MOST_PLACES, features)
    mask: npt.NDArray[np.bool_]  # (decisions, MOST_PLACES)
    taken: npt.NDArray[np.int64]  # (decisions,)
    advantage: npt.NDArray[np.float32]  # (decisions,)
    allocation: float  # mean percent of the GPUs in use at the end

    def __len__(self) -> int:
        return len(self.taken)


def draw(
    arrays: Arrays, cases: Sequence[Case], environments: int, rng: np.random.Generator
) -> Drawn:
    """Runs a group of environments on each case, with decisions drawn by the net."""
    groups = [_group(arrays, case, environments, rng) for case in cases]
    return Drawn(
        np.concatenate([each.seen for each in groups]),
        np.concatenate([each.mask for each in groups]),
        np.concatenate([each.taken for each in groups]),
        np.concatenate([each.advantage for each in groups]),
        float(np.mean([each.allocation for each in groups])),
    )


def _group(arrays: Arrays, case: Case, environments: int, rng: np.random.Generator) -> Drawn:
    source = case.plan(load("first-fit"))
    plan = stepped_plan(source.cluster, source.trace, source.protocol, Setup(case.seed))
    places = Places(table_of(arrays, plan.trace.shapes()), MOST_PLACES)
    world = VectorEnvironment([plan] * environments)
    is_shared = plan.trace.gpu_shares is not None
    seen, taken, owner = [], [], []
    actions, slots = np.zeros(environments, np.int64), np.zeros(environments, np.int64)
    shown = world.observation
    while not shown.is_done.all():
        for i in np.flatnonzero(~shown.is_done):
            rows = places.listed(shown.pods[i : i + 1], shown.nodes[i], shown.feasible[i])
            if not len(rows):  # only shared GPUs are left, of which a record says nothing
                actions[i], slots[i] = np.argmax(shown.feasible[i]), ANY_SLOT
                continue
            choice = _draw(_scores(arrays, rows), rng)
            actions[i], slots[i] = places.where[choice]
            slots[i] = ANY_SLOT if is_shared else slots[i]
            if len(rows) > 1:
                seen.append(rows.copy())
                taken.append(choice)
                owner.append(i)
        world.step(actions, slots)
    ends = np.array([allocations(world.result(i))[-1] for i in range(environments)])
    advantage = (ends - ends.mean()) / (ends.std() + 1e-6)
    padded, mask = _padded(seen)
    return Drawn(
        padded,
        mask,
        np.array(taken, np.int64),
        advantage[owner].astype(np.float32),
        float(ends.mean()),
    )


def _scores(arrays: Arrays, seen: npt.NDArray[np.float32]) -> Array:
    units = seen @ arrays["hidden"] + arrays["bias"]
    found: Array = seen @ arrays["linear"] + (units / (1 + np.abs(units))) @ arrays["out"]
    return found


def _draw(scores: Array, rng: np.random.Generator) -> int:
    """Draws in proportion to the exponentials of scores (the Gumbel trick)."""
    return int(np.argmax(scores + rng.gumbel(size=len(scores))))


def _padded(
    rows: Sequence[npt.NDArray[np.float32]],
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    seen = np.zeros((len(rows), MOST_PLACES, NUM_FEATURES), np.float32)
    mask = np.zeros((len(rows), MOST_PLACES), np.bool_)
    for i, each in enumerate(rows):
        seen[i, : len(each)] = each
        mask[i, : len(each)] = True
    return seen, mask
