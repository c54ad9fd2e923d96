"""Compares ways to search at equal budgets, on held-out cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from podium.experiments.listener import SILENT, Listener, announce_compilation
from podium.experiments.search import Entry, entered, settled, warn_of_walls
from podium.experiments.search_plan import (
    GeneratorRequest,
    generator_options,
    refuse_unused,
    start_of,
)
from podium.experiments.training import CasesRequest, training_set

if TYPE_CHECKING:
    from podium.search.run.plan import RunPlan
    from podium.search.run.setup import Means
    from podium.search.run.strategies import Row, StrategyRun
    from podium.settings import Settings
    from podium.store import Store

DEFAULT_STRATEGIES = ("genetic", "random", "tuned")


@dataclass(frozen=True, slots=True)
class StrategiesRequest:
    """Describes which strategies are compared, how often, and for how long."""

    names: tuple[str, ...] = DEFAULT_STRATEGIES
    cases: CasesRequest = field(default_factory=CasesRequest)
    runs: int = 5  # of each strategy
    evaluations: int = 500  # of each run
    start: str | None = None  # None: seeds, unless ingredients are none
    seed: int = 1000  # of the first run
    command: str | None = None
    unused: dict[str, Any] | None = None  # flags that only language models heed, with values
    ingredients: str = "all"


@dataclass(frozen=True, slots=True, eq=False)
class StrategyComparison:
    """A finished comparison of strategies."""

    rows: tuple[Row, ...]
    trials: tuple[StrategyRun, ...]
    cases: int

    def as_object(self) -> dict[str, Any]:
        """Describes the comparison as JSON types."""
        return {
            "arms": [asdict(row) for row in self.rows],
            "runs": [asdict(trial) for trial in self.trials],
        }


def plans_of(
    settings: Settings, request: StrategiesRequest, listener: Listener = SILENT
) -> list[tuple[str, RunPlan]]:
    """Builds the plan of every run, seed by seed."""
    from podium.search.run.plan import RunPlan
    from podium.search.run.strategies import plan_of

    weights = tuple((name, 1.0) for name in request.names)
    writers = GeneratorRequest(weights, command=request.command, unused=request.unused)
    refuse_unused(writers)
    training = training_set(settings, request.cases, listener)
    base = RunPlan(
        training, request.cases.fitness, request.seed,
        start=start_of(request.start, request.ingredients),
        options=generator_options(settings, writers), ingredients=request.ingredients,
    )  # fmt: skip
    return [
        (name, replace(plan_of(name, base, request.evaluations), seed=request.seed + i))
        for i in range(request.runs)
        for name in request.names
    ]


def compare_strategies(
    store: Store, entry: Entry, plans: Sequence[tuple[str, RunPlan]], means: Means,
    evaluations: int, listener: Listener = SILENT,
) -> StrategyComparison:  # fmt: skip
    """Runs every plan for the same number of evaluations and compares what they found."""
    from podium.search.run.strategies import summarise_strategies

    announce_compilation(listener)
    trials: list[StrategyRun] = []
    for name, plan in plans:
        listener.progress("runs", len(trials), len(plans))
        trials.append(_trial(store, entry, (name, plan), means, evaluations, listener))
    listener.progress("runs", len(trials), len(plans))
    warn_of_walls(listener, sorted({wall for each in trials for wall in each.missing_walls}))
    names = list(dict.fromkeys(name for name, _ in plans))
    rows = summarise_strategies(sorted(trials, key=lambda each: names.index(each.arm)))
    return StrategyComparison(tuple(rows), tuple(trials), len(plans[0][1].training.cases))


def _trial(
    store: Store, entry: Entry, arm: tuple[str, RunPlan], means: Means, evaluations: int,
    listener: Listener,
) -> StrategyRun:  # fmt: skip
    from podium.search.run.plan import Budget
    from podium.search.run.setup import open_search
    from podium.search.run.strategies import StrategyRun

    name, plan = arm
    budget = Budget(evaluations)
    titled = replace(entry, name=f"compare {name} {plan.seed}")
    with (
        entered(store, titled, plan, budget) as record,
        open_search(
            store, record, replace(means, is_validating=False, given=plan.options)
        ) as search,
        settled(store, record, listener),
    ):
        search.go(budget)
        summary, best = search.progress().summary(), search.best
    assert best is not None  # a run whose beginning is of no use stops at once
    scores = held_out_scores(plan, means, best.text)
    return StrategyRun(
        name, plan.seed, record.id, summary["evaluations"], summary["seconds"], best.fitness,
        scores["fitness"], scores["fgd"]["fitness"], best.complexity,
        tuple(summary["missing_walls"]),
    )  # fmt: skip


def held_out_scores(plan: RunPlan, means: Means, text: str) -> dict[str, Any]:
    """Measures a candidate on seeds that its search never saw."""
    from podium.search.run.validator import Validator

    validator = Validator(plan.training, plan.fitness, means.limits)
    try:
        return validator.scores(text)
    finally:
        validator.close()
