"""Compares ways to search at equal budgets."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.runs import StoreUrl, opened
from podium.cli.search import options as given
from podium.cli.search.display import warn_of_walls
from podium.cli.search.generators import generator_options, refuse_unused
from podium.cli.search.record import entered
from podium.cli.search.sitting import settled

if TYPE_CHECKING:
    from podium.search.run.plan import RunPlan
    from podium.search.run.setup import Means
    from podium.search.run.strategies import Row
    from podium.search.run.strategies import StrategyRun as Trial
    from podium.settings import Settings
    from podium.store import Store


def compare(
    ctx: typer.Context,
    arms: Annotated[
        list[str] | None,
        typer.Argument(metavar="ARM", help="genetic, random, tuned, llm, command."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", help="Runs of each arm.", min=1)] = 5,
    evaluations: Annotated[
        int, typer.Option("--evaluations", help="Evaluations of each run.", min=20)
    ] = 500,
    fitness: given.FitnessName = "inflation",
    trace: given.Traces = None,
    seeds: given.Seeds = 8,
    nodes: given.Nodes = None,
    start: given.Start = "seeds",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first run.", min=0)] = 1000,
    model: given.Models = None,
    command: given.Command = None,
    workers: given.Workers = None,
    executor: given.ExecutorName = "local",
    ray_address: given.RayAddress = "",
    is_unconfined: given.AllowUnconfined = False,
    store: StoreUrl = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Compares arms at equal budgets over several seeds, on held-out cases."""
    flags = {"store.url": store, "traces.folder": traces,
             "search.models": ",".join(model) if model else None,
             "search.allow_unconfined": is_unconfined or None}  # fmt: skip
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)

    from podium.cli.watch import announce_compilation
    from podium.search.run.plan import RunPlan
    from podium.search.run.strategies import plan_of
    from podium.search.run.strategies import summarise_strategies as summarise_arms
    from podium.search.sandbox.limits import Limits

    names = arms or ["genetic", "random", "tuned"]
    refuse_unused(names, {"--model": model}, command)
    training = given.training_set(settings, fitness, trace, seeds, nodes)
    extra = generator_options(settings, names, None, None, (command, None))
    base = RunPlan(training, fitness, seed, start=start, options=extra)
    limits = Limits(allows_unconfined=settings.search.allow_unconfined)
    means = given.means(settings, workers, executor, ray_address, limits)
    plans = [
        (name, replace(plan_of(name, base, evaluations), seed=seed + i))
        for i in range(runs)
        for name in names
    ]
    announce_compilation(screen)
    with opened(settings, is_made=True) as kept, screen.progress("runs", len(plans)) as advance:
        trials = []
        for name, plan in plans:
            trials.append(_trial(kept, settings, means, (name, plan), evaluations))
            advance()
    warn_of_walls(screen, sorted({wall for each in trials for wall in each.missing_walls}))
    rows = summarise_arms(sorted(trials, key=lambda each: names.index(each.arm)))
    if is_json:
        print_json({"arms": [asdict(row) for row in rows], "runs": [asdict(t) for t in trials]})
    else:
        _show(screen, rows, training_words=f"{len(training.cases)} cases, fitness {fitness}")


def _trial(
    kept: Store, settings: Settings, means: Means, arm: tuple[str, RunPlan], evaluations: int
) -> Trial:
    screen = Screen(settings.display)

    from podium.search.run.plan import Budget
    from podium.search.run.setup import open_search
    from podium.search.run.strategies import StrategyRun as Trial
    from podium.search.run.validator import Validator

    name, plan = arm
    budget = Budget(evaluations)
    title = f"compare {name} {plan.seed}"
    with (
        entered(kept, settings, plan, budget, title) as record,
        open_search(
            kept, record, replace(means, is_validating=False, given=plan.options)
        ) as search,
        settled(screen, kept, record),
    ):
        search.go(budget)
        summary, best = search.progress().summary(), search.archive.best
    assert best is not None  # a run whose beginning is of no use stops at once
    validator = Validator(plan.training, plan.fitness, means.limits)
    try:
        scores = validator.scores(best.text)
    finally:
        validator.close()
    return Trial(
        name, plan.seed, record.id, summary["evaluations"], summary["seconds"], best.fitness,
        scores["fitness"], scores["fgd"]["fitness"], best.complexity,
        tuple(summary["missing_walls"]),
    )  # fmt: skip


def _show(screen: Screen, rows: list[Row], training_words: str) -> None:
    titles = ["arm", "runs", "held out", "95 % interval", "over fgd", "training", "evaluations",
              "time", "parts", f"lead of {rows[0].arm}", "p"]  # fmt: skip
    screen.table(titles, [_line(row) for row in rows])
    screen.note(f"{training_words}; the best by training is what is measured on held-out seeds")


def _line(row: Row) -> tuple[object, ...]:
    lead = figures.MISSING
    if row.lead is not None:
        lead = f"{row.lead:+.2f} [{row.lead_low:+.2f}, {row.lead_high:+.2f}]"
    return (
        row.arm, row.runs, figures.decimal(row.validation, 2), f"[{row.low:.2f}, {row.high:.2f}]",
        figures.Figure(f"{row.gain:+.2f}"), figures.decimal(row.fitness, 2),
        figures.count(round(row.evaluations)), figures.duration(row.seconds),
        figures.count(round(row.complexity)), lead, figures.decimal(row.p_value, 4),
    )  # fmt: skip
