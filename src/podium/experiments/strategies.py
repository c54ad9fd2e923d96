"""Compares ways to search at equal budgets, on held-out cases."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from podium.errors import UsageError
from podium.experiments.arms import Contest, best_of_arm, judged_seeds, text_digest
from podium.experiments.listener import SILENT, Listener, announce_compilation
from podium.experiments.places import blaming
from podium.experiments.search import warn_of_walls
from podium.experiments.search_plan import GeneratorRequest, SearchRequest, plan_of
from podium.experiments.training import CasesRequest, folder_of

if TYPE_CHECKING:
    from podium.evaluation.cases import Case
    from podium.search.promotion.control import Control
    from podium.search.run.plan import RunPlan
    from podium.search.run.setup import Means
    from podium.search.run.strategies import Row, StrategyRun
    from podium.settings import Settings
    from podium.store import Store

DEFAULT_STRATEGIES = ("genetic", "random", "tuned")


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """Describes what winners are measured on, besides what was held out of the training cases."""

    traces: tuple[str, ...] = ()  # of OpenB, whole; none: what was held out of the training cases
    seeds: int = 20  # of each


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
    validation: ValidationRequest = ValidationRequest()


@dataclass(frozen=True, slots=True)
class StrategiesPlan:
    """What strategies are compared on: one plan for each seed, which all of them share."""

    names: tuple[str, ...]
    plans: tuple[RunPlan, ...]
    evaluations: int
    held_out: tuple[Case, ...] = ()  # none: what was held out of the training cases

    def contests(self, store: Store, settings: Settings, means: Means) -> list[Contest]:
        """Returns what the runs of each seed share."""
        return [
            Contest(
                store, settings, f"compare {plan.seed}", _digest(plan), plan, means,
                self.evaluations, formulas=_formulas(plan),
            )
            for plan in self.plans
        ]  # fmt: skip


_OF_ARMS = ("generators", "options")
"""What of a plan is not shared by the strategies."""


def _digest(plan: RunPlan) -> str:
    """Names a comparison by what its runs share, so that another one finds them again."""
    shared = {name: each for name, each in plan.as_object().items() if name not in _OF_ARMS}
    return f"comparison {text_digest(json.dumps(shared, sort_keys=True))}"


def _formulas(plan: RunPlan) -> dict[str, str] | None:
    """Lists what is tuned: without ingredients, published formulas and packing terms."""
    from podium.search.generators.genetic.seeds import OWN, seeds
    from podium.search.program.writer import write
    from podium.search.run.plan import NONE

    if plan.ingredients != NONE:
        return None
    return {title: write(each) for title, each in seeds().items() if title not in OWN}


@dataclass(frozen=True, slots=True, eq=False)
class StrategyComparison:
    """A finished comparison of strategies."""

    rows: tuple[Row, ...]
    trials: tuple[StrategyRun, ...]
    cases: int
    held_out: int  # cases

    def as_object(self) -> dict[str, Any]:
        """Describes the comparison as JSON types."""
        return {
            "arms": [asdict(row) for row in self.rows],
            "runs": [asdict(trial) for trial in self.trials],
        }


def plans_of(
    settings: Settings, request: StrategiesRequest, listener: Listener = SILENT
) -> StrategiesPlan:
    """Plans the runs of every seed as `podium search run` would; refuses what is wrong first."""
    from podium.search.run.strategies import check_strategies

    check_strategies(request.names)
    held_out = _held_out(settings, request)
    asked = SearchRequest(
        request.cases, _writers(request), request.seed, request.start,
        ingredients=request.ingredients,
    )  # fmt: skip
    base = plan_of(settings, asked, listener)
    formulas = _formulas(base)
    if formulas is not None and request.start is None:  # all arms begin with the same
        base = replace(base, starters=tuple(formulas.items()))
    plans = tuple(replace(base, seed=request.seed + i) for i in range(request.runs))
    return StrategiesPlan(request.names, plans, request.evaluations, held_out)


def _writers(request: StrategiesRequest) -> GeneratorRequest:
    weights = tuple((name, 1.0) for name in request.names if name != "tuned")
    return GeneratorRequest(
        weights or (("genetic", 1.0),), command=request.command, unused=request.unused
    )


def _held_out(settings: Settings, request: StrategiesRequest) -> tuple[Case, ...]:
    from podium.evaluation.validation import HeldOut
    from podium.search.judging.objective import PREFIX

    wanted = request.validation
    if not wanted.traces:
        return ()
    if request.cases.fitness.startswith(PREFIX):
        raise UsageError(
            "an objective is measured on what was held out of its training cases",
            where="flag --validate-on", hint="leave --validate-on out",
        )  # fmt: skip
    with blaming("flag --validate-on"):
        cases = HeldOut(wanted.seeds, folder_of(settings), wanted.traces).cases()
    return tuple(each for each in cases if not each.is_perturbed)


def compare_strategies(
    store: Store, settings: Settings, plan: StrategiesPlan, means: Means,
    listener: Listener = SILENT,
) -> StrategyComparison:  # fmt: skip
    """Runs every strategy for the same number of evaluations and compares what they found.

    Runs that the store has already are not run again, and those that were stopped go on.
    """
    from podium.search.run.strategies import summarise_strategies

    announce_compilation(listener)
    total = len(plan.plans) * len(plan.names)
    found: list[tuple[str, RunPlan, Control]] = []
    for contest in plan.contests(store, settings, means):
        for name in plan.names:
            listener.status(f"run {len(found) + 1} of {total}: {name}, seed {contest.plan.seed}")
            best = best_of_arm(_informed(contest), name, listener)
            found.append((name, contest.plan, best))
    measured = _measured(plan, means, [each.text for _, _, each in found], listener)
    trials = [
        _trial(store, *each, scores) for each, scores in zip(found, measured, strict=True)
    ]  # fmt: skip
    warn_of_walls(listener, sorted({wall for each in trials for wall in each.missing_walls}))
    rows = summarise_strategies(sorted(trials, key=lambda each: plan.names.index(each.arm)))
    training = plan.plans[0].training
    held_out = len(plan.held_out) or len(training.held_out().cases)
    return StrategyComparison(tuple(rows), tuple(trials), len(training.cases), held_out)


def _informed(contest: Contest) -> Contest:
    """Tells which formulas are good as they are, where a run of the same seed has judged them."""
    bred = contest.kept("genetic")
    return contest if bred is None else replace(
        contest, fitness=judged_seeds(contest.store, bred.id)
    )  # fmt: skip


def _trial(
    store: Store, name: str, plan: RunPlan, best: Control, scores: Mapping[str, Any]
) -> StrategyRun:
    """Sums up what one run of a strategy came to."""
    from podium.search.candidate.gates import read_candidate
    from podium.search.candidate.verdict import Verdict
    from podium.search.run.strategies import StrategyRun

    read = read_candidate(best.text)
    parts = 0 if isinstance(read, Verdict) else read.complexity
    summaries = [store.runs.get(each).summary for each in best.runs]
    walls = {wall for each in summaries for wall in each["missing_walls"]}
    told = {name: each for name, each in scores["mean"].items() if not name.startswith("placed")}
    return StrategyRun(
        name, plan.seed, " ".join(best.runs), best.evaluations,
        sum(each["seconds"] for each in summaries), best.fitness, scores["fitness"],
        scores["fgd"]["fitness"], parts, tuple(sorted(walls)), told, best.source,
    )  # fmt: skip


def _measured(
    plan: StrategiesPlan, means: Means, texts: Sequence[str], listener: Listener
) -> list[Mapping[str, Any]]:
    """Measures the winners on seeds that no search saw."""
    if plan.held_out:
        return _on_traces(plan, means, texts, listener)
    from podium.search.run.validator import Validator

    base = plan.plans[0]
    validator = Validator(base.training, base.fitness, means.limits)
    try:
        found: list[Mapping[str, Any]] = []
        for text in texts:
            listener.progress("validate", len(found), len(texts))
            found.append(validator.scores(text))
        return found
    finally:
        validator.close()


def _on_traces(
    plan: StrategiesPlan, means: Means, texts: Sequence[str], listener: Listener
) -> list[Mapping[str, Any]]:
    """Measures the winners on whole traces, all on the same pods and ties."""
    from podium.evaluation.validation import baselines, validate
    from podium.search.candidate.gates import checked_policy
    from podium.search.judging.fitness import Outcome, fitness_named, mean_values

    names = {text: f"winner {i}" for i, text in enumerate(dict.fromkeys(texts))}
    policies = {name: checked_policy(text, name) for text, name in names.items()}
    told = partial(listener.progress, "validate")
    results = validate(policies | baselines(("fgd",)), plan.held_out, told, means.workers)
    fitness = fitness_named(plan.plans[0].fitness)

    def scores(name: str) -> dict[str, Any]:
        rows = zip(plan.held_out, results.values[name], results.values["fgd"], strict=True)
        outcomes = [Outcome(case.protocol, own, fgd, case.family) for case, own, fgd in rows]
        return {"fitness": fitness.score(outcomes), "mean": mean_values(results.values[name])}

    fgd = scores("fgd")
    return [{**scores(names[text]), "fgd": {"fitness": fgd["fitness"]}} for text in texts]
