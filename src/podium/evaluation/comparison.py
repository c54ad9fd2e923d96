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


_OF_ITS_OWN = ("seed", "wall_s", "digest")
"""What summaries differ in if a seed changes nothing, or only which of two equal nodes it is."""

Summaries = Mapping[str, Sequence[dict[str, Any]]]
"""One summary per seed of every policy, in one order of seeds."""


@dataclass(frozen=True, slots=True)
class RankedPolicy:
    """One policy's standing on one metric; where seeds change nothing, there is no interval."""

    rank: int
    policy: str
    mean: float
    low: float | None  # 95 % confidence interval of the mean
    high: float | None
    difference: float  # mean of paired differences to the yardstick
    difference_low: float | None
    difference_high: float | None
    p_value: float | None  # paired sign-flip test, two-sided; None for the yardstick itself
    may_hold: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """The ranking of policies on one metric."""

    metric: str
    seeds: tuple[int, ...]
    yardstick: str  # the best baseline that takes part
    rows: tuple[RankedPolicy, ...]
    repeated: str = ""  # why some have no interval and no p-value


@dataclass(frozen=True, slots=True)
class Gap:
    """A mean over seeds and its confidence interval, where those seeds are more than one run."""

    mean: float
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: npt.NDArray[np.float64], *, is_repeated: bool) -> Gap:
        """Summarises values of several seeds; if they are one run, that says nothing of chance."""
        if is_repeated:
            return cls(float(values.mean()), None, None)
        found = Difference.of(values, np.random.default_rng(_SEED))
        return cls(found.mean, found.low, found.high)


def _p_value(differences: npt.NDArray[np.float64]) -> float:
    return sign_flip_p(differences, np.random.default_rng(_SEED))


def compare(summaries: Summaries, metric: str, holding: frozenset[str]) -> Comparison:
    """Ranks policies by the mean of a metric; each brings one summary per seed, in one order.

    The yardstick is the best baseline that takes part, or the best policy where none does.
    """
    values = {name: _values(found, metric) for name, found in summaries.items()}
    sign = METRICS[metric]
    ranked = sorted(values, key=lambda name: (-sign * float(values[name].mean()), name))
    yardstick = next((name for name in ranked if name in BASELINES), ranked[0])
    seeds = tuple(int(found["seed"]) for found in next(iter(summaries.values())))
    means = [float(values[name].mean()) for name in ranked]
    same = repeated(summaries)
    rows = []
    for mean, name in zip(means, ranked, strict=True):
        differences, is_one_run = values[name] - values[yardstick], {name, yardstick} <= same
        own = Gap.of(values[name], is_repeated=name in same)
        lead = Gap.of(differences, is_repeated=is_one_run)
        p_value = None if name == yardstick or is_one_run else _p_value(differences)
        rows.append(
            RankedPolicy(
                1 + means.index(mean),  # equal means share the better rank
                name, mean, own.low, own.high, lead.mean, lead.low, lead.high, p_value,
                name in holding,
            )
        )  # fmt: skip
    return Comparison(
        metric, seeds, yardstick, tuple(rows), _repeated_note(len(seeds), ranked, same)
    )


def repeated(summaries: Summaries) -> frozenset[str]:
    """Names the policies whose runs on several seeds all come to one and the same figures."""
    return frozenset(name for name, found in summaries.items() if len(found) > 1 and _is_one(found))


def _is_one(summaries: Sequence[dict[str, Any]]) -> bool:
    first, *others = ({k: v for k, v in each.items() if k not in _OF_ITS_OWN} for each in summaries)
    return all(each == first for each in others)


def _repeated_note(seeds: int, policies: Sequence[str], same: frozenset[str]) -> str:
    if not same:
        return ""
    told = f"all {seeds} seeds come to one and the same run"
    if len(same) == len(policies):
        return f"{told}: nothing is left to chance, so there is no interval and no p"
    listed = ", ".join(name for name in policies if name in same)
    return f"{told} of {listed}: so these have no interval, and no p against each other"


def _values(summaries: Sequence[dict[str, Any]], metric: str) -> npt.NDArray[np.float64]:
    return np.array([found[metric] for found in summaries], np.float64)


@dataclass(frozen=True, slots=True)
class Lead:
    """How one policy does against another on the same seeds."""

    other: str
    mean: float  # of the other
    difference: Gap  # of the policy to the other, paired
    p_value: float | None  # paired sign-flip test, two-sided
    is_better: bool  # the whole interval is on the better side


def leads_of(policy: str, summaries: Summaries, metric: str) -> tuple[Lead, ...]:
    """Sets a policy against every other one, seed by seed, in the order they were given."""
    own, same, found = _values(summaries[policy], metric), repeated(summaries), []
    for other, theirs in summaries.items():
        if other == policy:
            continue
        values = _values(theirs, metric)
        is_one_run = {policy, other} <= same
        gap = Gap.of(own - values, is_repeated=is_one_run)
        p_value = None if is_one_run else _p_value(own - values)
        is_better = _is_better(gap, METRICS[metric])
        found.append(Lead(other, float(values.mean()), gap, p_value, is_better))
    return tuple(found)


def _is_better(gap: Gap, sign: int) -> bool:
    ends = (gap.low, gap.high)
    return all(end is not None and sign * end > 0 for end in ends)
