"""Finds a policy from nothing in a few seconds, for the demo; nothing of it is kept."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.cli.render import Screen
    from podium.search.run.plan import RunPlan

SEED = 1000
CASES = 8
EVALUATIONS = 600
BESIDE = ("first-fit", "best-fit", "fgd")


@dataclass(frozen=True, slots=True)
class Found:
    """Holds what the search came to, on held-out clusters, beside policies that ship."""

    seed: int
    evaluations: int
    seconds: float
    fitness: float
    others: dict[str, float]
    text: str


def search_from_nothing(screen: Screen) -> Found:
    """Breeds programs from random ones and measures the best on validation seeds."""
    from podium.cli.search.display import follow
    from podium.search.run.plan import Budget
    from podium.search.run.setup import KIND, Means, create_run, open_search
    from podium.store import RunRecord, open_store

    budget, plan = Budget(EVALUATIONS), _plan()
    with tempfile.TemporaryDirectory(prefix="podium-demo-") as name:
        root = Path(name)
        record = RunRecord("demo", KIND, "demo", 0.0, plan.as_object(), folder=str(root / "demo"))
        with open_store(f"sqlite:///{root / 'demo.db'}") as store:
            create_run(store, plan, record)
            means = Means(os.cpu_count() or 1, is_validating=False)
            with (
                follow(screen, budget) as watch,
                open_search(store, record, means, watch) as search,
            ):
                search.go(budget)
                best, summary = search.archive.best, search.progress().summary()
    assert best is not None  # a run that begins with nothing of use stops with an error
    scores = _measured(plan, {"found": best.text, **_texts()})
    return Found(
        SEED, summary["evaluations"], summary["seconds"], scores.pop("found"), scores, best.text
    )


def _plan() -> RunPlan:
    from podium.evaluation.cases import TrainingSet, demo_cases
    from podium.search.run.plan import RANDOM, RunPlan

    return RunPlan(TrainingSet(demo_cases(["inflation"], CASES)), seed=SEED, start=RANDOM)


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
