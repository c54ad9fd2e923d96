"""Runs searches, new and interrupted ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.flags import with_blocks
from podium.cli.options import Json, RunId, StoreUrl, read_settings, typed_command
from podium.cli.render import Screen, print_json
from podium.cli.search import options
from podium.cli.search.display import following, show_end
from podium.cli.watch import watching
from podium.errors import UsageError
from podium.experiments import search_plan
from podium.experiments.places import blaming
from podium.experiments.runs import find_search, open_runs
from podium.experiments.search import Entry, SearchOutcome, begin_in_store, work_on

if TYPE_CHECKING:
    from podium.search.run.plan import Budget, RunPlan
    from podium.search.run.setup import Means


@with_blocks
def run(
    ctx: typer.Context,
    *,
    cases: options.CasesOptions,
    generator: Annotated[
        list[str] | None,
        typer.Option("--generator", help="genetic, llm, command, random; NAME=WEIGHT sets shares."),
    ] = None,
    start: options.Start = None,
    ingredients: options.Ingredients = "all",
    policy: Annotated[
        list[Path] | None,
        typer.Option(
            "--policy", help="Additional policy file to start from; repeatable.", show_default=False
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Start from the best candidates of this run.",
            show_default=False,
        ),
    ] = None,
    may_hold: Annotated[
        bool,
        typer.Option(
            "--hold", help="Allow candidates to hold pods back; implied by holding:FLOOR."
        ),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Random seed.", min=0)] = 1000,
    budget: options.BudgetOptions,
    islands: Annotated[int, typer.Option("--islands", help="Number of islands.", min=1)] = 4,
    batch: Annotated[int, typer.Option("--batch", help="Candidates per batch.", min=1)] = 24,
    largest: Annotated[
        int, typer.Option("--largest", help="Largest program, in AST nodes.", min=10, max=400)
    ] = 160,
    tune_every: Annotated[
        int,
        typer.Option("--tune-every", help="Tune constants in every Nth batch; 0: never.", min=0),
    ] = 1,
    tune_evaluations: Annotated[
        int,
        typer.Option(
            "--tune-evaluations", help="Evaluations spent on tuning one candidate.", min=10
        ),
    ] = 60,
    ahead: Annotated[
        int,
        typer.Option(
            "--ahead",
            help="Batches between asking a model and judging its answer.",
            min=0,
            max=1000,
        ),
    ] = 8,
    models: options.ModelOptions,
    price: options.Prices = None,
    replay: options.Replay = None,
    command: options.Command = None,
    command_env: options.CommandEnv = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="Name of the run. [default: the fitness]", show_default=False),
    ] = None,
    judging: options.WorkersOptions,
    limits: options.LimitsOptions,
    place: options.PlaceOptions,
    is_json: Json = False,
) -> None:
    """Searches for a policy; ctrl-C stops it, resume continues."""
    _check_name(name)
    flags = {**place.settings(), **cases.settings(), **models.settings()}
    settings = read_settings(ctx, flags)
    writers = search_plan.GeneratorRequest(
        search_plan.read_weights(generator or ["genetic"]), tuple(price or ()), replay, command,
        tuple(command_env or ()), {**models.flags(), "--price": price, "--replay": replay},
    )  # fmt: skip
    request = search_plan.SearchRequest(
        cases.request(), writers, seed, start, tuple(policy or ()), origin, may_hold, islands,
        batch, largest, tune_every, tune_evaluations, ingredients, ahead,
    )  # fmt: skip
    with watching(Screen(settings.display)) as listener:
        plan = search_plan.plan_of(settings, request, listener)
    means = search_plan.means_of(settings, options.means_request(judging, limits, command))
    spend = search_plan.budget_of(budget.evaluations, budget.time_span, budget.target)
    usual = cases.objective.stem if cases.objective else cases.fitness
    entry = Entry(settings, usual if name is None else name, typed_command())
    _show(Screen(settings.display), _begun(entry, plan, means, spend), is_json=is_json)


def _check_name(name: str | None) -> None:
    """Refuses a name that is none, or looks like a path."""
    if name is None:
        return
    is_path = ".." in name.replace("\\", "/").split("/") or name.startswith(("/", "\\"))
    if is_path or not name.strip() or not name.isprintable():
        raise UsageError(
            f"{name!r} is not a name for a run", where="flag --name",
            hint="use letters, digits, dashes and spaces, or leave --name out",
        )  # fmt: skip


def _begun(entry: Entry, plan: RunPlan, means: Means, budget: Budget) -> SearchOutcome:
    screen = Screen(entry.settings.display)
    with following(screen, budget) as listener:
        return begin_in_store(entry, plan, means, budget, listener)


@with_blocks
def resume(
    ctx: typer.Context,
    run: RunId,
    *,
    evaluations: options.EvaluationsInAll = None,
    time_span: options.Time = None,
    target: options.Target = None,
    objective: options.ObjectiveFile = None,
    models: options.ModelOptions,
    price: options.Prices = None,
    replay: options.Replay = None,
    command: options.Command = None,
    command_env: options.CommandEnv = None,
    judging: options.WorkersOptions,
    limits: options.LimitsOptions,
    is_unconfined: options.AllowUnconfined = False,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Continues a run where it stopped, without repeating evaluations."""
    flags = {"store.url": store, "search.allow_unconfined": is_unconfined or None}
    settings = read_settings(ctx, flags | models.settings())
    screen = Screen(settings.display)
    request = options.means_request(judging, limits, command)
    repeated = search_plan.GeneratorRequest(
        (), tuple(price or ()), replay, command, tuple(command_env or ())
    )
    request = replace(
        request, usd=models.usd, tokens=models.tokens,
        answering=search_plan.changed_answering(settings),
    )  # fmt: skip
    means = replace(
        search_plan.means_of(settings, request),
        given=search_plan.repeated_options(settings, repeated, objective),
    )
    with open_runs(settings) as runs:
        with blaming("argument RUN"):
            record = find_search(runs, run)
        saved = record.settings.get("budget", {})
        budget = search_plan.renewed_budget(saved, evaluations, time_span, target)
        with following(screen, budget) as listener:
            found = work_on(runs, record, means, budget, listener)
    _show(screen, found, is_json=is_json)


def _show(screen: Screen, found: SearchOutcome, *, is_json: bool) -> None:
    if is_json:
        print_json(found.as_object())
    else:
        show_end(screen, found)
