"""Breeds a policy from random programs in a few seconds, for the demo; nothing of it stays."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.cli.render import Screen
    from podium.search.run.plan import RunPlan
    from podium.settings import Settings

SEED = 1000
CASES = 8
EVALUATIONS = 600
BESIDE = ("first-fit", "best-fit", "fgd")


@dataclass(frozen=True, slots=True)
class Found:
    """What the search found, measured on held-out clusters beside policies that ship."""

    seed: int
    evaluations: int
    seconds: float
    fitness: float
    others: dict[str, float]
    text: str


def search_at_random(screen: Screen, settings: Settings) -> Found:
    """Breeds programs from random ones and measures the best on validation seeds."""
    from podium.cli.search.display import following
    from podium.experiments.search import begin_in_passing
    from podium.search.run.plan import Budget
    from podium.search.run.setup import Means

    budget, plan = Budget(EVALUATIONS), _plan()
    means = Means(os.cpu_count() or 1, is_validating=False)
    with following(screen, budget) as listener:
        outcome = begin_in_passing(settings, plan, means, budget, listener)
    assert outcome.text is not None  # a run that begins with nothing of use stops with an error
    scores = _measured(plan, {"found": outcome.text, **_texts()})
    summary = outcome.summary
    return Found(
        SEED, summary["evaluations"], summary["seconds"], scores.pop("found"), scores, outcome.text
    )


def _plan() -> RunPlan:
    from podium.evaluation.cases import TrainingSet, demo_cases
    from podium.search.run.plan import RANDOM, RunPlan

    training = TrainingSet(demo_cases(["inflation"], CASES))
    return RunPlan(training, seed=SEED, start=RANDOM, finalists=0)


def _texts() -> dict[str, str]:
    from podium.policies import load

    sources = {name: load(name).source for name in BESIDE if name != "fgd"}
    return {name: source.text for name, source in sources.items() if source is not None}


def _measured(plan: RunPlan, texts: dict[str, str]) -> dict[str, float]:
    from podium.search.run.validator import Validator
    from podium.search.sandbox.limits import Limits

    validator = Validator(plan.training, plan.fitness, Limits())
    try:
        scores: dict[str, Any] = {name: validator.scores(text) for name, text in texts.items()}
    finally:
        validator.close()
    found = {name: each["fitness"] for name, each in scores.items()}
    return {**found, "fgd": scores["found"]["fgd"]["fitness"]}
