"""Runs searches, new ones and ones that were cut off."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import podium
from podium.cli.options import Json, TracesFolder, blaming, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.runs import RunId, StoreUrl, opened
from podium.cli.search import options as given
from podium.cli.search.display import follow, show_end
from podium.errors import PodiumError, UsageError

if TYPE_CHECKING:
    from podium.search.run.opening import Means
    from podium.search.run.plan import Budget, RunPlan
    from podium.settings import Settings
    from podium.store import RunRecord, Store

DEFAULT_EVALUATIONS = 2000
MOST_STARTERS = 24
"""So many candidates that decide differently are taken from an earlier run."""


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
    start: Annotated[
        str, typer.Option("--start", help="seeds: published formulas; random: nothing.")
    ] = "seeds",
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
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="Language model; repeatable.", show_default=False),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", help="OpenAI-compatible service.", show_default=False),
    ] = None,
    usd: given.Usd = None,
    tokens: given.Tokens = None,
    price: Annotated[
        list[str] | None,
        typer.Option("--price", help="MODEL=IN,OUT in USD per million.", show_default=False),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option("--replay", help="Play recorded traffic back.", show_default=False),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option("--command", help="Program: prompt in, policy out.", show_default=False),
    ] = None,
    name: Annotated[str, typer.Option("--name", help="A name for the run.")] = "",
    workers: given.Workers = None,
    executor: given.ExecutorName = "local",
    ray_address: given.RayAddress = "",
    time_limit: given.TimeLimit = 10.0,
    memory_limit: given.MemoryLimit = 512,
    store: StoreUrl = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Searches for a policy; ctrl-C stops it, resume continues."""
    flags = {"store.url": store, "traces.folder": traces, "search.base_url": base_url,
             "search.usd": usd, "search.tokens": tokens,
             "search.models": ",".join(model) if model else None}  # fmt: skip
    settings = read_settings(ctx, flags)

    from podium.search.fitness import fitness_named
    from podium.search.limits import Limits
    from podium.search.population.archive import Customs
    from podium.search.run.plan import RunPlan, Tuning
    from podium.store.records import FAILED

    generators = given.read_weights(generator or ["genetic"])
    plan = RunPlan(
        given.training_set(settings, fitness, trace, seeds, nodes),
        fitness, seed, generators, start,
        _starters(settings, policy, origin), batch,
        Customs(islands=islands), Tuning(tune_every, tune_evaluations),
        may_hold or fitness_named(fitness).may_hold, largest,
        _options(settings, [each for each, _ in generators], price, replay, command),
    )  # fmt: skip
    limits = Limits(time_s=time_limit, memory_mib=memory_limit)
    means = given.means(settings, workers, executor, ray_address, limits)
    budget = _budget(evaluations, time_span, target)
    with opened(settings) as kept:
        record = create(kept, settings, plan, budget, name or fitness)
        try:
            _work(Screen(settings.display), kept, record, (means, budget), is_json)
        except PodiumError:
            kept.runs.update(record.id, status=FAILED)
            raise


def resume(
    ctx: typer.Context,
    run: RunId,
    evaluations: given.Evaluations = None,
    time_span: given.Time = None,
    target: given.Target = None,
    usd: given.Usd = None,
    tokens: given.Tokens = None,
    workers: given.Workers = None,
    executor: given.ExecutorName = "local",
    ray_address: given.RayAddress = "",
    time_limit: given.TimeLimit = 10.0,
    memory_limit: given.MemoryLimit = 512,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Continues a run where it stopped; nothing that was judged is judged again."""
    settings = read_settings(ctx, {"store.url": store})

    from podium.search.limits import Limits

    limits = Limits(time_s=time_limit, memory_mib=memory_limit)
    means = given.means(settings, workers, executor, ray_address, limits)
    means = replace(means, usd=usd, tokens=tokens)
    with opened(settings) as kept:
        with blaming("argument RUN"):
            record = kept.runs.get(run)
        budget = _renewed(record.settings.get("budget", {}), evaluations, time_span, target)
        _work(Screen(settings.display), kept, record, (means, budget), is_json)


def _starters(
    settings: Settings, policy: list[Path] | None, origin: str | None
) -> tuple[tuple[str, str], ...]:
    """Gives the texts that a run begins with beside the seeds: files, and the best of a run."""
    found = [given.read_starter(path) for path in policy or []]
    if origin is not None:
        with opened(settings) as kept:
            with blaming("flag --from"):
                record = kept.runs.get(origin)
            best = kept.candidates.best(record.id, 5 * MOST_STARTERS)
        apart = {each.signature: each for each in reversed(best)}
        chosen = sorted(apart.values(), key=lambda each: -(each.fitness or 0.0))[:MOST_STARTERS]
        found += [(f"{record.id}-{each.number}", each.text) for each in chosen]
    return tuple(found)


def _budget(
    evaluations: int | None, time_span: str | None, target: float | None
) -> Budget:  # fmt: skip
    from podium.search.run.plan import Budget

    span = given.read_time(time_span)
    if evaluations is None and span is None:
        evaluations = DEFAULT_EVALUATIONS
    return Budget(evaluations, span, target)


def _renewed(
    saved: dict[str, Any], evaluations: int | None, time_span: str | None, target: float | None
) -> Budget:
    """Gives the budget of a sitting: what is asked for now, else what the run began with."""
    from podium.search.run.plan import Budget

    if target is None:
        target = saved.get("target")
    if evaluations is not None or time_span is not None:
        return _budget(evaluations, time_span, target)
    return Budget(saved.get("evaluations"), saved.get("seconds"), target)


def _options(
    settings: Settings, generators: list[str], price: list[str] | None, replay: Path | None,
    command: str | None,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    from podium.search.command import CommandSettings, open_command

    found: dict[str, dict[str, Any]] = {}
    if "llm" in generators:
        found["llm"] = llm_options(settings, price, replay)
    if "command" in generators:
        if not command:
            raise UsageError("the generator command has no command", hint="add --command PROGRAM")
        with blaming("flag --command"):
            open_command(CommandSettings(command), os.environ)
        found["command"] = {"command": command}
    return found


def llm_options(settings: Settings, price: list[str] | None, replay: Path | None) -> dict[str, Any]:
    """Says which language models a plan asks, where, and for how much."""
    from podium.search.llm.prices import read_prices

    search = settings.search
    models = [each.strip() for each in search.models.split(",") if each.strip()]
    if not models:
        raise UsageError("no language model is named", hint="add --model NAME")
    _check_llm(settings, replay)
    prices = read_prices(price or [])
    return {
        "models": models, "base_url": search.base_url, "usd": search.usd or None,
        "tokens": search.tokens or None, "mode": "replay" if replay else "record",
        "cassette": str(replay.absolute()) if replay else "",
        "prices": {each: [p.usd_in, p.usd_out, p.usd_request] for each, p in prices.items()},
    }  # fmt: skip


def _check_llm(settings: Settings, replay: Path | None) -> None:
    """Refuses what language models cannot be asked with, before there is a run."""
    from podium.search.llm.cassette import read_cassette
    from podium.search.llm.endpoint import find_endpoint

    search = settings.search
    if replay is not None:
        read_cassette(replay)
        return
    with blaming("flag --base-url" if search.base_url else "environment"):
        find_endpoint(os.environ, search.base_url)
    if not search.usd and not search.tokens:
        raise UsageError(
            "there is no budget for language models", where="flags --usd and --tokens",
            hint="add --usd 2, or --tokens 1000000, or both",
        )  # fmt: skip


def create(kept: Store, settings: Settings, plan: RunPlan, budget: Budget, name: str) -> RunRecord:
    """Enters a new run with what was asked for, so that it can be resumed and explained."""
    from podium.search.run.opening import KIND, create_run
    from podium.store import RunRecord

    run_id = secrets.token_hex(4)
    folder = str((settings.search.folder / run_id).absolute())
    asked = {
        **plan.as_object(), "budget": asdict(budget),
        "command": shlex.join(["podium", *sys.argv[1:]]), "version": podium.__version__,
    }  # fmt: skip
    record = RunRecord(run_id, KIND, name, time.time(), asked, folder=folder)
    create_run(kept, plan, record)
    return record


def _work(
    screen: Screen, kept: Store, record: RunRecord, how: tuple[Means, Budget], is_json: bool
) -> None:
    from podium.cli.watch import announce_compilation
    from podium.search.run.opening import open_search

    means, budget = how
    announce_compilation(screen)
    screen.note(f"run {record.id} in {record.folder}")
    with (
        follow(screen, budget) as watch,
        open_search(kept, record, means, watch) as search,
        _settled(screen, kept, record),
    ):
        search.go(budget)
        summary = search.progress().summary()
    if is_json:
        print_json({"run": record.id, "ending": search.ending, "folder": record.folder, **summary})
    else:
        show_end(screen, record.id, search)


@contextmanager
def _settled(screen: Screen, kept: Store, record: RunRecord) -> Iterator[None]:
    """Writes down how a sitting ended."""
    from podium.store.records import FAILED, FINISHED, INTERRUPTED, RUNNING

    kept.runs.update(record.id, status=RUNNING)
    try:
        yield
    except KeyboardInterrupt:
        kept.runs.update(record.id, status=INTERRUPTED)
        screen.note(f"stopped; podium search resume {record.id} continues")
        raise
    except BaseException:
        kept.runs.update(record.id, status=FAILED)
        raise
    kept.runs.update(record.id, status=FINISHED)
