"""Holds the options of searches, and the way from options to a plan."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.options import blaming, place_of, traces_folder
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.evaluation.cases import Case, TrainingSet
    from podium.search.run.setup import Means
    from podium.settings import Settings

FitnessName = Annotated[
    str,
    typer.Option("--fitness", help="inflation, waiting, fragmentation, holding:84, mix:A=1,B=2."),
]
Traces = Annotated[
    list[str] | None,
    typer.Option(
        "--trace", help="Trace to train on, by name or file; repeatable.", show_default=False
    ),
]
Seeds = Annotated[
    int, typer.Option("--seeds", help="Training cases of each trace or kind.", min=1, max=900)
]
Nodes = Annotated[
    int | None,
    typer.Option(
        "--nodes", help="Draw so many nodes of a trace's cluster.", min=1, show_default=False
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="Processes; 0: one a core.", min=0, show_default=False),
]
ExecutorName = Annotated[str, typer.Option("--executor", help="local, or ray for a Ray cluster.")]
RayAddress = Annotated[
    str, typer.Option("--ray-address", help="Ray cluster, HOST:PORT or auto; unset: start one.")
]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", help="Seconds for one candidate.", min=0.1)
]
MemoryLimit = Annotated[
    int, typer.Option("--memory-limit", help="MiB that a candidate may add.", min=16)
]
AllowUnconfined = Annotated[
    bool, typer.Option("--allow-unconfined", help="Judge even where a wall is missing.")
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        "--evaluations",
        help="Most evaluations, tuning included, and most calls to a model. "
        "[default: 2000, or none with --time]",
        min=1,
        show_default=False,
    ),
]
EvaluationsInAll = Annotated[
    int | None,
    typer.Option(
        "--evaluations",
        help="Most evaluations of the whole run, earlier sittings included. "
        "[default: what it began with]",
        min=1,
        show_default=False,
    ),
]
Time = Annotated[
    str | None, typer.Option("--time", help="End after this: 90s, 10m, 2h.", show_default=False)
]
Usd = Annotated[
    float | None,
    typer.Option("--usd", help="Most US dollars to spend.", min=0, show_default=False),
]
Tokens = Annotated[
    int | None, typer.Option("--tokens", help="Most tokens to use.", min=0, show_default=False)
]
Target = Annotated[
    float | None, typer.Option("--target", help="End at this fitness.", show_default=False)
]
Start = Annotated[str, typer.Option("--start", help="seeds: published formulas; random: nothing.")]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="Language model; repeatable.", show_default=False),
]
Command = Annotated[
    str | None,
    typer.Option("--command", help="Program: prompt in, policy out.", show_default=False),
]
CommandEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--command-env", metavar="NAME", help="Variable that the program sees; repeatable.",
        show_default=False,
    ),
]  # fmt: skip
Prices = Annotated[
    list[str] | None,
    typer.Option("--price", help="MODEL=IN,OUT in USD per million.", show_default=False),
]
Replay = Annotated[
    Path | None,
    typer.Option("--replay", help="Play recorded traffic back.", show_default=False),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", help="OpenAI-compatible service.", show_default=False),
]

MOST_WORKERS = 8
"""So many processes for each core at most: each takes its memory, and more do not judge faster."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def read_time(text: str | None) -> float | None:
    """Reads a time span.

    >>> read_time("10m")
    600.0
    """
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text)
    if found is None or found[2] not in _UNITS or float(found[1]) <= 0:
        raise UsageError(f'"{text}" is no time', where="flag --time", hint="write 90s, 10m or 2h")
    return float(found[1]) * _UNITS[found[2]]


def training_set(
    settings: Settings, fitness: str, traces: list[str] | None, seeds: int, nodes: int | None
) -> TrainingSet:
    """Makes the training cases: small ones of the embedded profile, or those of given traces."""
    from podium.evaluation.cases import TrainingSet, demo_cases, trace_cases
    from podium.search.judging.fitness import fitness_named

    with blaming("flag --fitness"):
        kinds = fitness_named(fitness).kinds
    if not traces:
        if nodes is not None:
            raise UsageError("--nodes needs --trace", hint="add --trace openb")
        return TrainingSet(demo_cases(kinds, seeds))
    if "replay" in kinds:
        raise UsageError(
            "waiting is trained on the embedded profile alone", where="flag --trace",
            hint="leave --trace out, or choose another fitness",
        )  # fmt: skip
    folder = traces_folder(settings)
    named = [absolute(each) for each in traces]
    cases = trace_cases(named, seeds, nodes, str(folder.absolute()) if folder else "")
    _check_traces(cases)
    return TrainingSet(cases)


def absolute(reference: str) -> str:
    """Names a trace so that it means the same in the folder of a worker, and in any other."""
    from podium.traces.catalogue import is_name

    path = Path(reference)
    return reference if is_name(reference) or not path.exists() else str(path.absolute())


def _check_traces(cases: Sequence[Case]) -> None:
    """Reads every trace once, so that what is wrong with one is told before there is a run."""
    from podium.policies import load

    with blaming("flag --trace"):
        for case in {case.trace: case for case in cases}.values():
            case.plan(load("first-fit"))


def means(
    settings: Settings, workers: int | None, executor: str, address: str, limits: Any
) -> Means:
    """Says with what a search works."""
    import os

    from podium.search.run.setup import Means

    cores = os.cpu_count() or 1
    wanted = (settings.search.workers if workers is None else workers) or cores
    is_here = executor == "local" or not address
    if is_here and wanted > MOST_WORKERS * cores:
        raise UsageError(
            f"{wanted:,} workers are too many for {figures.counted(cores, 'core')}",
            where="flag --workers" if workers is not None else place_of(settings, "search.workers"),
            hint=f"0 is one a core; at most {MOST_WORKERS * cores} are started here",
        )
    with blaming("flag --executor"):
        return Means(wanted, executor, address, limits, root=settings.search.folder)


def read_weights(texts: list[str]) -> tuple[tuple[str, float], ...]:
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
                f'"{part}" is no generator with a weight', where="flag --generator",
                hint="write genetic, or genetic=3,llm=1",
            )  # fmt: skip
        found[name] = weight
    return tuple(found.items())
