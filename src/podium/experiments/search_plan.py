"""Builds the plan of a search from a request: cases, generators, starters, budget, means."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import UnknownName, UsageError
from podium.experiments.listener import SILENT, Listener
from podium.experiments.places import blaming, place_of
from podium.experiments.training import DEFAULT_FITNESS, CasesRequest, fitness_of, training_set
from podium.files.text_file import read_text
from podium.policies.loaders import MOST_BYTES

if TYPE_CHECKING:
    from podium.search.run.plan import Budget, RunPlan, Tuning
    from podium.search.run.setup import Means
    from podium.settings import Settings

DEFAULT_EVALUATIONS = 2000
MOST_STARTERS = 24
"""How many candidates that decide differently are taken from an earlier run."""

DEEPER = 3
"""The best so far is tuned with so many times the evaluations that others get."""

FIRST = 120
"""Evaluations for the numbers of one of the best seeds, before much is bred from it."""

BRED_FIRST = 6
"""Batches of a search without ingredients before anything is tuned.

Its seeds are far from what can be reached: what is bred from them is better as it is, and what is
tuned first leads for long.
"""

MOST_WORKERS = 8
"""Most processes per core: each takes its memory, and more do not judge faster."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class GeneratorRequest:
    """The generators that write candidates, and their options."""

    generators: tuple[tuple[str, float], ...] = (("genetic", 1.0),)  # by name, with weights
    prices: tuple[str, ...] = ()  # of models: MODEL=IN,OUT
    replay: Path | None = None  # recorded traffic with models
    command: str | None = None
    command_env: tuple[str, ...] = ()
    unused: Mapping[str, Any] | None = None  # flags that only language models heed, with values

    @property
    def names(self) -> list[str]:
        """Lists the generators."""
        return [name for name, _ in self.generators]


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """Describes a search to begin; language models and the store come with the settings."""

    cases: CasesRequest = field(default_factory=CasesRequest)
    writers: GeneratorRequest = GeneratorRequest()
    seed: int = 1000
    start: str | None = None  # None: seeds, unless ingredients are none
    policies: tuple[Path, ...] = ()  # files to begin with too
    origin: str | None = None  # an earlier run to begin with the best of
    may_hold: bool = False
    islands: int = 4
    batch: int = 24
    largest: int = 160  # nodes of a program's syntax tree
    tune_every: int = 1
    tune_evaluations: int = 60
    ingredients: str = "all"
    ahead: int = 8  # batches


@dataclass(frozen=True, slots=True)
class MeansRequest:
    """The resources that a search works with; none of them changes what it finds."""

    workers: int | None = None  # None: as the settings say
    executor: str = "local"
    ray_address: str = ""
    time_limit_s: float = 10.0  # for one candidate
    memory_mib: int = 512
    command: str = ""
    usd: float | None = None  # more to spend than the run began with
    tokens: int | None = None
    answering: Mapping[str, Any] = field(default_factory=dict)  # of models, otherwise than it began


def plan_of(settings: Settings, request: SearchRequest, listener: Listener = SILENT) -> RunPlan:
    """Builds the plan; reports what is wrong with the request before anything is stored."""
    from podium.search.judging.fitness import fitness_named
    from podium.search.population.archive import IslandSettings
    from podium.search.run.plan import Pipeline, RunPlan

    writers, fitness = request.writers, request.cases.fitness
    check_names(writers.names)
    refuse_unused(writers)
    return RunPlan(
        training_set(settings, request.cases, listener),
        fitness, request.seed, writers.generators,
        start_of(request.start, request.ingredients),
        find_starters(settings, request.policies, request.origin), request.batch,
        IslandSettings(islands=request.islands),
        tuning_of(request),
        request.may_hold or fitness_named(fitness).may_hold, request.largest,
        generator_options(settings, writers), request.ingredients,
        Pipeline(ahead=request.ahead),
    )  # fmt: skip


def tuning_of(request: SearchRequest) -> Tuning:
    """Returns how constants are tuned: without ingredients, many shapes a little."""
    from podium.search.run.plan import NONE, Tuning

    every, usual = request.tune_every, request.tune_evaluations
    if request.ingredients == NONE:
        return Tuning(every, usual, deep=usual, first=usual, after=BRED_FIRST)
    return Tuning(every, usual, deep=DEEPER * usual, first=min(FIRST, DEEPER * usual))


def start_of(start: str | None, ingredients: str) -> str:
    """Returns what a search begins with: from nothing means without the formulas of people too."""
    from podium.search.run.plan import NONE, RANDOM, SEEDS

    return start or (RANDOM if ingredients == NONE else SEEDS)


def means_of(settings: Settings, request: MeansRequest) -> Means:
    """Chooses workers, limits and where candidates are judged."""
    from podium.search.run.setup import Means
    from podium.search.sandbox.limits import Limits

    workers = _workers(settings, request)
    limits = Limits(
        request.time_limit_s,
        memory_mib=request.memory_mib,
        allows_unconfined=settings.search.allow_unconfined,
    )
    with blaming("flag --executor"):
        means = Means(workers, request.executor, request.ray_address, limits)
    return replace(
        means, usd=request.usd, tokens=request.tokens, base_url=settings.search.base_url,
        command=request.command, root=settings.search.folder, answering=request.answering,
        parameters=settings.search.model_parameters,
    )  # fmt: skip


def _workers(settings: Settings, request: MeansRequest) -> int:
    cores = os.cpu_count() or 1
    wanted = settings.search.workers if request.workers is None else request.workers
    is_here = request.executor == "local" or not request.ray_address
    if is_here and wanted > MOST_WORKERS * cores:
        is_flag = request.workers is not None
        raise UsageError(
            f"{wanted:,} workers are too many for {cores:,} core{'' if cores == 1 else 's'}",
            where="flag --workers" if is_flag else place_of(settings, "search.workers"),
            hint=f"0 means one per core; at most {MOST_WORKERS * cores} can be started here",
        )
    return wanted or cores


def budget_of(evaluations: int | None, time_span: str | None, target: float | None) -> Budget:
    """Returns the requested budget; without a number or a time, the default number."""
    from podium.search.run.plan import Budget

    span = read_time(time_span)
    if evaluations is None and span is None:
        evaluations = DEFAULT_EVALUATIONS
    return Budget(evaluations, span, target)


def renewed_budget(
    saved: Mapping[str, Any], evaluations: int | None, time_span: str | None, target: float | None
) -> Budget:
    """Returns the budget of a session: what is asked for now, else what the run began with."""
    from podium.search.run.plan import Budget

    if target is None:
        target = saved.get("target")
    if evaluations is not None or time_span is not None:
        return budget_of(evaluations, time_span, target)
    return Budget(saved.get("evaluations"), saved.get("seconds"), target)


def read_time(text: str | None) -> float | None:
    """Reads a time span.

    >>> read_time("10m")
    600.0
    """
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if found is None or found[2] not in _UNITS or float(found[1]) <= 0:
        raise UsageError(
            f'"{text}" is not a time span', where="flag --time", hint="write 90s, 10m or 2h"
        )
    return float(found[1]) * _UNITS[found[2]]


def read_weights(texts: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Reads generators with their weights.

    >>> read_weights(["genetic=3,llm=1"])
    (('genetic', 3.0), ('llm', 1.0))
    """
    found: dict[str, float] = {}
    for part in ",".join(texts).split(","):
        name, _, written = part.strip().partition("=")
        try:
            weight = float(written or 1)
        except ValueError:
            weight = 0.0
        if not name or not 0 < weight < float("inf"):
            raise UsageError(
                f'"{part}" is not a generator with a weight', where="flag --generator",
                hint="write genetic, or genetic=3,llm=1",
            )  # fmt: skip
        found[name] = weight
    return tuple(found.items())


def find_starters(
    settings: Settings, policies: Sequence[Path], origin: str | None
) -> tuple[tuple[str, str], ...]:
    """Returns texts with their names: those of files, and the best of an earlier run."""
    from podium.experiments.runs import find_search, open_runs

    found = [read_starter(path) for path in policies]
    if origin is not None:
        with open_runs(settings) as store:
            with blaming("flag --from"):
                record = find_search(store, origin)
            best = store.candidates.best(record.id, 5 * MOST_STARTERS)
        apart = {each.signature: each for each in reversed(best)}
        chosen = sorted(apart.values(), key=lambda each: -(each.fitness or 0.0))[:MOST_STARTERS]
        found += [(f"{record.id}-{each.number}", each.text) for each in chosen]
    return tuple(found)


def read_starter(path: Path) -> tuple[str, str]:
    """Reads a policy file to start from."""
    with blaming(f"policy {path}", "give a policy file"):
        return path.stem, read_text(path, MOST_BYTES)


def check_names(generators: Sequence[str]) -> None:
    """Refuses unknown generators before a run or a store exists."""
    from podium.search.run.plan import GENERATORS

    for name in generators:
        if name not in GENERATORS:
            raise UnknownName.among("generator", name, GENERATORS, where="flag --generator")


def refuse_unused(request: GeneratorRequest) -> None:
    """Refuses flags that no generator of the search uses."""
    unused = [flag for flag, value in (request.unused or {}).items() if value is not None]
    if unused and "llm" not in request.names:
        raise UsageError(
            f"{' and '.join(unused)} {'are' if len(unused) > 1 else 'is'} for language models, "
            "and none is used",
            where="flag --generator",
            hint="add --generator llm, or genetic=3,llm=1 for a share; or leave the flag out",
        )
    if request.command is not None and "command" not in request.names:
        raise UsageError(
            "--command only applies to the generator command, which is not used",
            where="flag --generator",
            hint="add --generator command, or leave --command out",
        )


def generator_options(settings: Settings, request: GeneratorRequest) -> dict[str, dict[str, Any]]:
    """Returns the options of each generator that has any, and refuses unusable ones."""
    from podium.search.generators.command import CommandSettings, open_command

    found: dict[str, dict[str, Any]] = {}
    if "llm" in request.names:
        found["llm"] = _llm_options(settings, request)
    if "command" in request.names:
        if not request.command:
            raise UsageError("the generator command needs a command", hint="add --command PROGRAM")
        with blaming("flag --command"):
            open_command(CommandSettings(request.command, keep=request.command_env), os.environ)
        found["command"] = _command_options(settings, request)
    return found


def repeated_options(
    settings: Settings, request: GeneratorRequest, objective: Path | None = None
) -> dict[str, dict[str, Any]]:
    """Returns what is given again to resume a run: options of generators, an objective."""
    found: dict[str, dict[str, Any]] = {}
    if objective is not None:
        found["objective"] = {"fitness": fitness_of(DEFAULT_FITNESS, objective)}
    if settings.search.models.strip(", "):
        found["llm"] = _described(settings, request)
    if request.command:
        found["command"] = _command_options(settings, request)
    return found


def _command_options(settings: Settings, request: GeneratorRequest) -> dict[str, Any]:
    """Chooses the command to run; its folder is stored, as ./writer.sh differs elsewhere."""
    keep = list(request.command_env)
    return {
        "command": request.command, "keep": keep, "folder": str(Path.cwd()),
        **prompt_options(settings),
    }  # fmt: skip


def _llm_options(settings: Settings, request: GeneratorRequest) -> dict[str, Any]:
    """Chooses which language models a plan asks, where, and with what budget."""
    if not settings.search.models.strip(", "):
        raise UsageError("no language model is named", hint="add --model NAME")
    _check_llm(settings, request.replay)
    return _described(settings, request)


def _described(settings: Settings, request: GeneratorRequest) -> dict[str, Any]:
    from podium.search.generators.llm.budget import read_prices

    search, replay = settings.search, request.replay
    models = [each.strip() for each in search.models.split(",") if each.strip()]
    prices = read_prices(list(request.prices))
    return {
        "models": models, "base_url": search.base_url, "usd": search.usd or None,
        "tokens": search.tokens or None, "mode": "replay" if replay else "record",
        "cassette": str(replay.absolute()) if replay else "",
        "prices": {each: [p.usd_in, p.usd_out, p.usd_request] for each, p in prices.items()},
        **answering(settings), **prompt_options(settings),
    }  # fmt: skip


def answering(settings: Settings) -> dict[str, Any]:
    """Describes how models answer, where that is not usual."""
    from podium.search.generators.llm.options import unusual

    return unusual(_answering(settings))


def _answering(settings: Settings) -> dict[str, Any]:
    from podium.search.generators.llm.options import read_parameters, read_temperatures

    search = settings.search
    with blaming(place_of(settings, "search.temperature")):
        temperatures = read_temperatures(search.temperature)
    with blaming(place_of(settings, "search.model_parameters")):
        parameters = read_parameters(search.model_parameters)
    return {
        "temperature": temperatures, "max_tokens": search.max_tokens,
        "reasoning_effort": search.reasoning_effort, "timeout_s": search.model_timeout_s,
        "concurrency": search.model_calls, "parameters": parameters,
    }  # fmt: skip


def changed_answering(settings: Settings) -> dict[str, Any]:
    """Describes how models answer from now on, where flags say so: those of a resumed run win."""
    described = _answering(settings)
    paths = {
        "temperature": "temperature", "max_tokens": "max_tokens", "timeout_s": "model_timeout_s",
        "reasoning_effort": "reasoning_effort", "concurrency": "model_calls",
        "parameters": "model_parameters",
    }  # fmt: skip
    return {
        name: described[name]
        for name, key in paths.items()
        if settings.origins[f"search.{key}"].startswith("flag")
    }


def prompt_options(settings: Settings) -> dict[str, Any]:
    """Names the folder of prompt templates, and digests them, where they are not Podium's own."""
    from podium.search.generators.llm.templates import Templates

    if settings.search.prompts is None:
        return {}
    folder = settings.search.prompts.absolute()
    with blaming(place_of(settings, "search.prompts")):
        return {"prompts": str(folder), "prompts_digest": Templates.read(folder).digest}


def _check_llm(settings: Settings, replay: Path | None) -> None:
    """Refuses unusable options of language models before a run exists."""
    from podium.search.generators.llm.cassette import read_cassette
    from podium.search.generators.llm.endpoint import find_endpoint

    search = settings.search
    if replay is not None:
        read_cassette(replay)
        return
    with blaming("flag --base-url" if search.base_url else "environment"):
        find_endpoint(os.environ, search.base_url)
    if not search.usd and not search.tokens:
        raise UsageError(
            "no budget is set for language models", where="flags --usd and --tokens",
            hint="add --usd 2, or --tokens 1000000, or both",
        )  # fmt: skip
