"""What a person can read out of a net: what counts, what parts are worth, and a formula like it.

All of it is measured on runs with training seeds. A net is more than the sum of its parts; what is
said here of one feature is meant with all others as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case
from podium.model.workload import Shapes
from podium.policies.networks.demand import PARTS
from podium.policies.networks.mlp import (
    FEATURES,
    LEVELS,
    MODEL,
    WORTH_1,
    WORTH_2,
    mlp_policy,
    table_of,
)
from podium.rl.mlp.imitation import Decisions, record
from podium.rl.mlp.parameters import Array, Arrays, flat
from podium.rl.mlp.trials import AT_130, Trials

_STEPS, _BATCH, _RATE = 2000, 64, 0.01


@dataclass(frozen=True, slots=True)
class Reading:
    """What one feature does."""

    feature: str
    lost: float  # points of GPU allocation at 130 % that a net loses which does not see it
    slope: float  # of the score, in spreads of the score among the places for a pod
    is_steady: bool  # the slope has one sign on nine tenths of all places


def without(arrays: Arrays, feature: str) -> dict[str, Array]:
    """Makes the net that does not see a feature."""
    at = FEATURES.index(feature)
    blind = {name: each.copy() for name, each in arrays.items()}
    blind["linear"][at] = 0.0
    blind["hidden"][at] = 0.0
    return blind


def read_net(
    arrays: Arrays, trials: Trials, cases: Sequence[Case], decisions: Decisions
) -> list[Reading]:
    """Reads what each feature does, those first that a net can least do without."""
    nets = [flat(arrays), *(flat(without(arrays, name)) for name in FEATURES)]
    found = trials.run(nets, cases)[:, :, AT_130].mean(axis=1)
    slopes, steady = _slopes(arrays, decisions)
    readings = [
        Reading(name, float(found[0] - found[1 + i]), float(slopes[i]), bool(steady[i]))
        for i, name in enumerate(FEATURES)
    ]
    return sorted(readings, key=lambda each: -each.lost)


def _slopes(arrays: Arrays, decisions: Decisions) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Measures how the score follows each feature, weighed by how it differs among places."""
    seen = decisions.seen[decisions.mask].astype(np.float64)
    units = seen @ arrays["hidden"] + arrays["bias"]
    local = arrays["linear"] + (arrays["out"] / np.square(1 + np.abs(units))) @ arrays["hidden"].T
    scores = _scores(arrays, seen)
    place = np.nonzero(decisions.mask)[0]
    spread = _spread(seen, place) / max(1e-9, float(_spread(scores[:, None], place)[0]))
    steady = np.maximum((local > 0).mean(axis=0), (local < 0).mean(axis=0)) >= 0.9
    return local.mean(axis=0) * spread, steady


def _spread(values: Array, place: npt.NDArray[np.int64]) -> Array:
    """Returns the standard deviation of each column among the places for one pod."""
    counts = np.bincount(place)
    means = np.stack([np.bincount(place, column) for column in values.T], axis=1)
    inner = values - (means / np.maximum(1, counts)[:, None])[place]
    spread: Array = np.sqrt(np.square(inner).mean(axis=0))
    return spread


@dataclass(frozen=True, slots=True, eq=False)
class Worths:
    """What a net holds free parts, CPU and GPU models of a cluster to be worth, by its demand."""

    by_size: Array  # (PARTS,) in GPUs, of a free part of so many milli
    by_demand: Array  # (PARTS,) the second worth, which follows the demand
    cpus_per_gpu: Array  # (levels,) cores without which a GPU counts as starved
    models: Array  # (models,) how much each GPU model is kept for those who name it


def worths_of(arrays: Arrays, shapes: Shapes) -> Worths:
    """Reads what a net makes of a demand."""
    table = table_of(arrays, shapes)
    return Worths(
        table[WORTH_1 : WORTH_1 + PARTS],
        table[WORTH_2 : WORTH_2 + PARTS],
        1 / table[LEVELS:MODEL],
        table[MODEL : MODEL + 64],
    )


def distilled(
    arrays: Arrays, names: Sequence[str], decisions: Decisions, rng: np.random.Generator
) -> dict[str, Array]:
    """Fits the sum of a few features to what a net takes: a net of the direct path alone."""
    from podium.rl.mlp.descent import descent, ranking_loss

    adam = descent(_RATE)
    # Where hidden units add nothing, no gradient reaches them: only the direct path is learned.
    plain = {name: np.zeros_like(each) for name, each in arrays.items()}
    plain |= {name: arrays[name] for name in ("worth", "whole", "levels", "memory", "steps")}
    plain["models"] = arrays["models"]
    is_kept = np.isin(FEATURES, names).astype(np.float32)
    rows = rng.integers(0, len(decisions.seen), (_STEPS, _BATCH))
    seen = decisions.seen[rows] * is_kept
    moved, _, _ = adam.step(ranking_loss, plain, adam.begun(plain), seen, decisions.mask[rows])
    return plain | moved | {"linear": moved["linear"] * is_kept}


def agreement(arrays: Arrays, decisions: Decisions) -> float:
    """Returns the share of decisions, from 0 to 1, in which a net takes what was taken.

    Of places with the same score one is taken at random.
    """
    scores = np.where(decisions.mask, _scores(arrays, decisions.seen), -np.inf)
    is_best = scores == scores.max(axis=1, keepdims=True)
    return float((is_best[:, 0] / is_best.sum(axis=1)).mean())


@dataclass(frozen=True, slots=True)
class Tendency:
    """How often a net takes places with a feature in a range, where it could."""

    low: float
    high: float
    offered: int  # decisions in which there was such a place, and another
    taken: float  # share of these in which one was taken
    chance: float  # share in which one would be taken at random


def tendencies(decisions: Decisions, feature: str, edges: Sequence[float]) -> list[Tendency]:
    """Reads which values of a feature a net goes for; the last range includes its end."""
    values = decisions.seen[:, :, FEATURES.index(feature)]
    found = []
    for low, high in pairwise(edges):
        is_last = high == edges[-1]
        inside = (values >= low) & ((values <= high) if is_last else (values < high))
        part = (inside & decisions.mask).sum(axis=1) / decisions.mask.sum(axis=1)
        is_choice = (part > 0) & (part < 1)
        if is_choice.any():
            taken, chance = inside[is_choice, 0].mean(), part[is_choice].mean()
            found.append(Tendency(low, high, int(is_choice.sum()), float(taken), float(chance)))
    return found


def _scores(arrays: Arrays, seen: npt.NDArray[Any]) -> Array:
    units = seen @ arrays["hidden"] + arrays["bias"]
    found: Array = seen @ arrays["linear"] + units / (1 + np.abs(units)) @ arrays["out"]
    return found


def decisions_of(
    arrays: Arrays, cases: Sequence[Case], every: int, rng: np.random.Generator
) -> Decisions:
    """Records what a net decides."""
    return record(mlp_policy("mlp", arrays), cases, arrays, every, rng)
