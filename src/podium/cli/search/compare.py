"""Compares ways to search at equal budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.flags import with_blocks
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search import options
from podium.cli.watch import watching
from podium.experiments.runs import open_runs
from podium.experiments.search_plan import means_of
from podium.experiments.strategies import (
    DEFAULT_STRATEGIES,
    StrategiesRequest,
    StrategyComparison,
    ValidationRequest,
    compare_strategies,
    plans_of,
)

if TYPE_CHECKING:
    from podium.search.run.strategies import Row


@with_blocks
def compare(
    ctx: typer.Context,
    *,
    arms: Annotated[
        list[str] | None,
        typer.Argument(metavar="STRATEGY", help="genetic, random, tuned, llm, command."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", help="Runs per strategy.", min=1)] = 5,
    evaluations: Annotated[
        int, typer.Option("--evaluations", help="Evaluations per run.", min=20)
    ] = 500,
    cases: options.CasesOptions,
    start: options.CommonStart = None,
    ingredients: options.Ingredients = "all",
    seed: Annotated[int, typer.Option("--seed", help="Seed of the first run.", min=0)] = 1000,
    model: options.Models = None,
    command: options.Command = None,
    validate_on: Annotated[
        list[str] | None,
        typer.Option(
            "--validate-on",
            metavar="TRACE",
            help="Measure winners on this trace of OpenB at full size; repeatable. "
            "[default: what was held out of the training cases]",
            show_default=False,
        ),
    ] = None,
    validation_seeds: Annotated[
        int, typer.Option("--validation-seeds", help="Seeds of each of them.", min=1, max=20)
    ] = 20,
    judging: options.WorkersOptions,
    place: options.PlaceOptions,
    is_json: Json = False,
) -> None:
    """Compares search strategies at equal budgets, on held-out cases.

    Runs are kept: the same command finds those that are done, and continues one that was stopped.
    """
    flags = {"search.models": ",".join(model) if model else None}
    settings = read_settings(ctx, {**place.settings(), **cases.settings(), **flags})
    screen = Screen(settings.display)
    request = StrategiesRequest(
        tuple(arms or DEFAULT_STRATEGIES), cases.request(), runs, evaluations, start, seed, command,
        {"--model": model}, ingredients,
        ValidationRequest(tuple(validate_on or ()), validation_seeds),
    )  # fmt: skip
    means = means_of(settings, options.means_request(judging))
    with watching(screen) as listener:
        plan = plans_of(settings, request, listener)
    with open_runs(settings, is_made=True) as store, watching(screen) as listener:
        found = compare_strategies(store, settings, plan, means, listener)
    if is_json:
        print_json(found.as_object())
    else:
        _show(screen, found, cases.fitness)


def _show(screen: Screen, found: StrategyComparison, fitness: str) -> None:
    rows = found.rows
    titles = ["strategy", "runs", "held out", "95 % interval", "over fgd", "training",
              "evaluations", "time", "parts", f"lead of {rows[0].arm}", "p"]  # fmt: skip
    screen.table(titles, [_line(row) for row in rows])
    screen.note(
        f"{found.cases} training cases, fitness {fitness}; the winner of each run is measured on "
        f"{found.held_out} held-out cases"
    )


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
