"""Compares policies over seeds: means, confidence intervals, and a paired test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.paired import Difference, sign_flip_p

BASELINES = (
    "first-fit", "best-fit", "fgd", "worst-fit", "kube-packing", "kube-default", "random",
)  # fmt: skip
"""What a policy is measured against; the best of those that take part is the yardstick."""

_SEED = 20230710  # of the resampling only; results of runs do not depend on it

METRICS = {
    "gpu_allocation": +1,
    "fragmentation": -1,
    "wait_mean_s": -1,
    "wait_p95_s": -1,
    "placed": +1,
    "makespan_s": -1,
}
"""Which way is better."""


@dataclass(frozen=True, slots=True)
class RankedPolicy:
    """One policy's standing on one metric."""

    rank: int
    policy: str
    mean: float
    low: float  # 95 % confidence interval of the mean
    high: float
    difference: float  # mean of paired differences to the yardstick
    difference_low: float
    difference_high: float
    p_value: float | None  # paired sign-flip test, two-sided; None for the yardstick itself
    may_hold: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The ranking of policies on one metric."""

    metric: str
    seeds: tuple[int, ...]
    yardstick: str  # the best baseline that takes part
    rows: tuple[RankedPolicy, ...]


def compare(
    summaries: Mapping[str, Sequence[dict[str, Any]]], metric: str, holding: frozenset[str]
) -> Comparison:
    """Ranks policies by the mean of a metric; each brings one summary per seed, in one order.

    The yardstick is the best baseline that takes part, or the best policy where none does.
    """
    values = {name: _values(found, metric) for name, found in summaries.items()}
    sign = METRICS[metric]
    ranked = sorted(values, key=lambda name: (-sign * float(values[name].mean()), name))
    yardstick = next((name for name in ranked if name in BASELINES), ranked[0])
    seeds = tuple(int(found["seed"]) for found in next(iter(summaries.values())))
    means = [float(values[name].mean()) for name in ranked]
    rows = tuple(
        # Equal means share the better rank.
        _row(1 + means.index(mean), name, values[name], values[yardstick], name == yardstick,
             name in holding)
        for mean, name in zip(means, ranked, strict=True)
    )  # fmt: skip
    return Comparison(metric, seeds, yardstick, rows)


def _values(summaries: Sequence[dict[str, Any]], metric: str) -> npt.NDArray[np.float64]:
    return np.array([found[metric] for found in summaries], np.float64)


def _row(
    rank: int, policy: str, values: npt.NDArray[np.float64], others: npt.NDArray[np.float64],
    is_yardstick: bool, may_hold: bool,
) -> RankedPolicy:  # fmt: skip
    own = Difference.of(values, np.random.default_rng(_SEED))
    differences = values - others
    lead = Difference.of(differences, np.random.default_rng(_SEED))
    p_value = None if is_yardstick else sign_flip_p(differences, np.random.default_rng(_SEED))
    return RankedPolicy(
        rank, policy, own.mean, own.low, own.high, lead.mean, lead.low, lead.high, p_value, may_hold
    )


@dataclass(frozen=True, slots=True)
class Lead:
    """How one policy does against another on the same seeds."""

    other: str
    mean: float  # of the other
    difference: Difference  # of the policy to the other, paired
    p_value: float  # paired sign-flip test, two-sided
    is_better: bool  # the whole interval is on the better side


def leads_of(
    policy: str, summaries: Mapping[str, Sequence[dict[str, Any]]], metric: str
) -> tuple[Lead, ...]:
    """Sets a policy against every other one, seed by seed, in the order they were given."""
    own, found = _values(summaries[policy], metric), []
    for other, theirs in summaries.items():
        if other == policy:
            continue
        values = _values(theirs, metric)
        gap = Difference.of(own - values, np.random.default_rng(_SEED))
        p_value = sign_flip_p(own - values, np.random.default_rng(_SEED))
        is_better = min(METRICS[metric] * gap.low, METRICS[metric] * gap.high) > 0
        found.append(Lead(other, float(values.mean()), gap, p_value, is_better))
    return tuple(found)
