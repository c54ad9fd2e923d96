"""Runs searches, new ones and ones that were cut off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.options import Json, TracesFolder, blaming, read_settings
from podium.cli.render import Screen
from podium.cli.runs import RunId, StoreUrl, opened
from podium.cli.search import options as given
from podium.cli.search.budget import budget_of, renewed_budget
from podium.cli.search.generators import (
    check_names,
    generator_options,
    refuse_unused,
    repeated_options,
)
from podium.cli.search.record import entered
from podium.cli.search.sitting import work
from podium.cli.search.starters import find_starters


def run(
    ctx: typer.Context,
    fitness: given.FitnessName = "inflation",
    trace: given.Traces = None,
    seeds: given.Seeds = 8,
    nodes: given.Nodes = None,
    generator: Annotated[
        list[str] | None,
        typer.Option("--generator", help="genetic, llm, command, random; NAME=WEIGHT for shares."),
    ] = None,
    start: given.Start = "seeds",
    policy: Annotated[
        list[Path] | None,
        typer.Option("--policy", help="File to begin with too; repeatable.", show_default=False),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="RUN", help="Begin with the best of a run.", show_default=False
        ),
    ] = None,
    may_hold: Annotated[
        bool,
        typer.Option("--hold", help="Candidates may hold pods back; holding:FLOOR says so too."),
    ] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything random.", min=0)] = 1000,
    evaluations: given.Evaluations = None,
    time_span: given.Time = None,
    target: given.Target = None,
    islands: Annotated[int, typer.Option("--islands", help="Populations apart.", min=1)] = 4,
    batch: Annotated[int, typer.Option("--batch", help="Candidates at a time.", min=1)] = 24,
    largest: Annotated[
        int, typer.Option("--largest", help="Parts of a bred program.", min=10, max=400)
    ] = 120,
    tune_every: Annotated[
        int, typer.Option("--tune-every", help="Tune constants every so many batches.", min=0)
    ] = 3,
    tune_evaluations: Annotated[
        int, typer.Option("--tune-evaluations", help="Evaluations to tune one.", min=10)
    ] = 60,
    model: given.Models = None,
    base_url: given.BaseUrl = None,
    usd: given.Usd = None,
    tokens: given.Tokens = None,
    price: given.Prices = None,
    replay: given.Replay = None,
    command: given.Command = None,
    command_env: given.CommandEnv = None,
    name: Annotated[str, typer.Option("--name", help="A name for the run.")] = "",
    workers: given.Workers = None,
    executor: given.ExecutorName = "local",
    ray_address: given.RayAddress = "",
    time_limit: given.TimeLimit = 10.0,
    memory_limit: given.MemoryLimit = 512,
    is_unconfined: given.AllowUnconfined = False,
    store: StoreUrl = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Searches for a policy; ctrl-C stops it, resume continues."""
    flags = {"store.url": store, "traces.folder": traces, "search.base_url": base_url,
             "search.usd": usd, "search.tokens": tokens,
             "search.allow_unconfined": is_unconfined or None,
             "search.models": ",".join(model) if model else None}  # fmt: skip
    settings = read_settings(ctx, flags)
    generators = given.read_weights(generator or ["genetic"])
    names = [each for each, _ in generators]
    check_names(names)
    refuse_unused(
        names,
        {"--model": model, "--base-url": base_url, "--usd": usd, "--tokens": tokens,
         "--price": price, "--replay": replay},
        command,
    )  # fmt: skip

    from podium.search.judging.fitness import fitness_named
    from podium.search.population.archive import IslandSettings as Customs
    from podium.search.run.plan import RunPlan, Tuning
    from podium.search.sandbox.limits import Limits

    plan = RunPlan(
        given.training_set(settings, fitness, trace, seeds, nodes),
        fitness, seed, generators, start,
        find_starters(settings, policy, origin), batch,
        Customs(islands=islands), Tuning(tune_every, tune_evaluations),
        may_hold or fitness_named(fitness).may_hold, largest,
        generator_options(settings, names, price, replay, (command, command_env)),
    )  # fmt: skip
    limits = Limits(
        time_limit, memory_mib=memory_limit, allows_unconfined=settings.search.allow_unconfined
    )
    means = given.means(settings, workers, executor, ray_address, limits)
    means = replace(
        means, base_url=settings.search.base_url, command=command or "", given=plan.options
    )
    budget = budget_of(evaluations, time_span, target)
    with (
        opened(settings, is_made=True) as kept,
        entered(kept, settings, plan, budget, name or fitness) as record,
    ):
        work(Screen(settings.display), kept, record, (means, budget), is_json)


def resume(
    ctx: typer.Context,
    run: RunId,
    evaluations: given.EvaluationsInAll = None,
    time_span: given.Time = None,
    target: given.Target = None,
    usd: given.Usd = None,
    tokens: given.Tokens = None,
    model: given.Models = None,
    base_url: given.BaseUrl = None,
    price: given.Prices = None,
    replay: given.Replay = None,
    command: given.Command = None,
    command_env: given.CommandEnv = None,
    workers: given.Workers = None,
    executor: given.ExecutorName = "local",
    ray_address: given.RayAddress = "",
    time_limit: given.TimeLimit = 10.0,
    memory_limit: given.MemoryLimit = 512,
    is_unconfined: given.AllowUnconfined = False,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Continues a run where it stopped; nothing that was judged is judged again."""
    flags = {"store.url": store, "search.base_url": base_url,
             "search.usd": usd, "search.tokens": tokens,
             "search.allow_unconfined": is_unconfined or None,
             "search.models": ",".join(model) if model else None}  # fmt: skip
    settings = read_settings(ctx, flags)

    from podium.search.sandbox.limits import Limits

    limits = Limits(
        time_limit, memory_mib=memory_limit, allows_unconfined=settings.search.allow_unconfined
    )
    means = given.means(settings, workers, executor, ray_address, limits)
    means = replace(
        means, usd=usd, tokens=tokens, base_url=settings.search.base_url, command=command or "",
        given=repeated_options(settings, price, replay, (command, command_env)),
    )  # fmt: skip
    with opened(settings) as kept:
        with blaming("argument RUN"):
            record = kept.runs.get(run)
        budget = renewed_budget(record.settings.get("budget", {}), evaluations, time_span, target)
        work(Screen(settings.display), kept, record, (means, budget), is_json)
