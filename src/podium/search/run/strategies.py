"""Names the strategies of a comparison: ways to spend the same number of evaluations.

Without them nobody knows what a search adds: drawing programs at random, or tuning formulas that
are known, may do as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from podium.errors import UnknownName
from podium.evaluation.paired import Difference, exchange_p, lead_of
from podium.search.run.plan import RANDOM, RunPlan, Tuning

STRATEGIES = {
    "random": "programs drawn independently of each other, the best kept",
    "tuned": "formulas that people wrote, every number and weight in them tuned by CMA-ES",
    "genetic": "breeding, with constants tuned on the way",
    "llm": "language models, with constants tuned on the way",
    "command": "a program of yours, with constants tuned on the way",
}


def check_strategies(names: Sequence[str]) -> None:
    """Refuses names that no strategy has."""
    for name in names:
        if name not in STRATEGIES:
            raise UnknownName.among("strategy", name, STRATEGIES)


def plan_of(arm: str, base: RunPlan) -> RunPlan:
    """Derives the plan of a strategy that writes candidates from the plan that all share."""
    check_strategies([arm])
    if arm == "random":
        return replace(
            base, generators=(("random", 1.0),), start=RANDOM, starters=(), tuning=Tuning(0)
        )
    return replace(base, generators=((arm, 1.0),))


@dataclass(frozen=True, slots=True)
class StrategyRun:
    """What one run of a strategy came to."""

    arm: str
    seed: int
    run_id: str  # of two, where a strategy has two rounds
    evaluations: int
    seconds: float
    fitness: float  # of the best, on the training set
    validation: float  # of the same candidate, on held-out seeds
    baseline: float  # of fgd there
    complexity: int
    missing_walls: tuple[str, ...] = ()  # of the sandbox
    figures: Mapping[str, float] = field(default_factory=dict)  # means on held-out seeds
    source: str = ""  # the formula that was tuned, or the candidate


@dataclass(frozen=True, slots=True)
class Row:
    """Sums a strategy up over its seeds."""

    arm: str
    runs: int
    fitness: float
    validation: float
    low: float  # 95 % interval of the mean on held-out seeds
    high: float
    gain: float  # over fgd
    evaluations: float
    seconds: float
    complexity: float
    lead: float | None = None  # of the first strategy over this one
    lead_low: float | None = None
    lead_high: float | None = None
    p_value: float | None = None


def summarise_strategies(runs: Sequence[StrategyRun], seed: int = 0) -> list[Row]:
    """Compares strategies over seeds; leads are those of the one that was given first."""
    names = list(dict.fromkeys(trial.arm for trial in runs))
    groups = {name: [each for each in runs if each.arm == name] for name in names}
    return [_row(groups[name], groups[names[0]], np.random.default_rng(seed)) for name in names]


def _row(own: Sequence[StrategyRun], first: Sequence[StrategyRun], rng: np.random.Generator) -> Row:
    values = np.array([each.validation for each in own])
    own_mean = Difference.of(values, rng)
    row = Row(
        own[0].arm, len(own), _mean(own, "fitness"), own_mean.mean, own_mean.low, own_mean.high,
        own_mean.mean - _mean(own, "baseline"), _mean(own, "evaluations"),
        _mean(own, "seconds"), _mean(own, "complexity"),
    )  # fmt: skip
    if own is first:
        return row
    others = np.array([each.validation for each in first])
    lead = lead_of(others, values, rng)
    return replace(
        row, lead=lead.mean, lead_low=lead.low, lead_high=lead.high,
        p_value=exchange_p(others, values, rng),
    )  # fmt: skip


def _mean(runs: Sequence[StrategyRun], key: str) -> float:
    return float(np.mean([getattr(each, key) for each in runs]))
