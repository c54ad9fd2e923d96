"""Declares the options that the verbs of `podium search` share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli.case_options import DemandName, TieRule
from podium.cli.options import (
    DumpOptions,
    Duration,
    State,
    StoreUrl,
    Topology,
    TracesFolder,
    Waiting,
)
from podium.experiments.search_plan import MeansRequest
from podium.experiments.training import TRACE_SEEDS, CasesRequest, fitness_of

FitnessName = Annotated[
    str,
    typer.Option(
        "--fitness",
        help="inflation, waiting, fragmentation, holding:84, funsearch:40, mix:A=1,B=2.",
    ),
]
ObjectiveFile = Annotated[
    Path | None,
    typer.Option(
        "--objective",
        metavar="FILE.py",
        help="Python file of your own with objective(run), instead of --fitness.",
        show_default=False,
    ),
]
Traces = Annotated[
    list[str] | None,
    typer.Option(
        "--trace", help="Trace to train on, by name or file; repeatable.", show_default=False
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        help="Training cases per trace. [default: 8; without --trace 2 per workload family]",
        min=1,
        max=890,
        show_default=False,
    ),
]
FewSeeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        help="Cases per trace. [default: 4; without --trace 2 per workload family]",
        min=1,
        max=890,
        show_default=False,
    ),
]
Nodes = Annotated[
    int | None,
    typer.Option(
        "--nodes",
        help="Number of nodes to draw from the cluster of a trace.",
        min=1,
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster", help="Cluster by name or file, for traces without nodes.", show_default=False
    ),
]
Load = Annotated[
    float | None,
    typer.Option(
        "--load", help="Divide the time between arrivals by this (waiting).", show_default=False
    ),
]
HeldOut = Annotated[
    str | None,
    typer.Option(
        "--held-out",
        metavar="SPLIT",
        help="What is never trained on: seed, recorded (the trace itself; versions of it are), or "
        "time:0.3 for the last 30 % of the arrivals. "
        "[default: time:0.3 to learn waiting, else seed]",
        show_default=False,
    ),
]
ValidationSeeds = Annotated[
    int, typer.Option("--seeds", help="Validation seeds per case.", min=1, max=20)
]
ValidationTraces = Annotated[
    list[str] | None,
    typer.Option(
        "--trace",
        help="Validate on this trace only, by name or file; repeatable. [default: what was "
        "held out of your own traces, else those of OpenB]",
        show_default=False,
    ),
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", help="Worker processes; 0: one per core.", min=0, show_default=False),
]
ExecutorName = Annotated[str, typer.Option("--executor", help="local, or ray for a Ray cluster.")]
RayAddress = Annotated[
    str, typer.Option("--ray-address", help="Ray cluster: HOST:PORT or auto; unset: start one.")
]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", help="Time limit of one candidate in seconds.", min=0.1)
]
MemoryLimit = Annotated[
    int, typer.Option("--memory-limit", help="Memory limit of one candidate in MiB.", min=16)
]
AllowUnconfined = Annotated[
    bool,
    typer.Option("--allow-unconfined", help="Evaluate even if a wall of the sandbox is missing."),
]
Evaluations = Annotated[
    int | None,
    typer.Option(
        "--evaluations",
        help="Limit on evaluations, tuning included, and on calls to a model. "
        "[default: 2000, or none with --time]",
        min=1,
        show_default=False,
    ),
]
EvaluationsInAll = Annotated[
    int | None,
    typer.Option(
        "--evaluations",
        help="Limit on evaluations of the whole run, earlier sessions included. "
        "[default: the limit it began with]",
        min=1,
        show_default=False,
    ),
]
Time = Annotated[
    str | None,
    typer.Option("--time", help="Stop after this time: 90s, 10m, 2h.", show_default=False),
]
Usd = Annotated[
    float | None,
    typer.Option("--usd", help="Spending limit in US dollars.", min=0, show_default=False),
]
Tokens = Annotated[
    int | None, typer.Option("--tokens", help="Limit on tokens.", min=0, show_default=False)
]
Target = Annotated[
    float | None, typer.Option("--target", help="Stop at this fitness.", show_default=False)
]
Start = Annotated[
    str | None,
    typer.Option(
        "--start",
        help="Start from seeds (formulas of people) or random (nothing); seeds by default, random "
        "with --ingredients none.",
        show_default=False,
    ),
]
CommonStart = Annotated[
    str | None,
    typer.Option(
        "--start",
        help="Start from seeds (formulas of people) or random (nothing); seeds by default. With "
        "--ingredients none, by default from published formulas and packing terms.",
        show_default=False,
    ),
]
Ingredients = Annotated[
    str,
    typer.Option(
        "--ingredients",
        help="What breeding may draw: all, or none (no quantities and functions of people).",
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="Language model; repeatable.", show_default=False),
]
Command = Annotated[
    str | None,
    typer.Option(
        "--command", help="Program that reads a prompt and prints a policy.", show_default=False
    ),
]
CommandEnv = Annotated[
    list[str] | None,
    typer.Option(
        "--command-env", metavar="NAME", help="Environment variable to pass on to it; repeatable.",
        show_default=False,
    ),
]  # fmt: skip
Prices = Annotated[
    list[str] | None,
    typer.Option("--price", help="MODEL=IN,OUT in USD per million tokens.", show_default=False),
]
Replay = Annotated[
    Path | None,
    typer.Option("--replay", help="Replay recorded traffic from this file.", show_default=False),
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", help="URL of an OpenAI-compatible service.", show_default=False),
]


Temperature = Annotated[
    str | None,
    typer.Option(
        "--temperature",
        metavar="NUMBERS",
        help="Temperature of models, such as 1.0; of several, as in 0.7,1.2, one is drawn for "
        "each call; none: left to the service. [default: 1.0]",
        show_default=False,
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        help="Longest answer of a model, its thinking included. [default: 4096]",
        min=1,
        show_default=False,
    ),
]
ReasoningEffort = Annotated[
    str | None,
    typer.Option(
        "--reasoning-effort", help="How much a model thinks: low, high.", show_default=False
    ),
]
ModelTimeout = Annotated[
    float | None,
    typer.Option(
        "--model-timeout",
        help="Seconds that a model has to answer. [default: 120]",
        min=0.1,
        show_default=False,
    ),
]
ModelCalls = Annotated[
    int | None,
    typer.Option(
        "--model-calls", help="Calls of models at a time. [default: 8]", min=1, show_default=False
    ),
]
ModelParameters = Annotated[
    str | None,
    typer.Option(
        "--model-parameters",
        metavar="TABLE",
        help="Further parameters of models: JSON, TOML, or a file.",
        show_default=False,
    ),
]
Prompts = Annotated[
    Path | None,
    typer.Option(
        "--prompts", help="Folder of prompt templates to use instead.", show_default=False
    ),
]


@dataclass(frozen=True, slots=True)
class CasesOptions:
    """The options of what candidates are trained on."""

    fitness: FitnessName = "inflation"
    objective: ObjectiveFile = None
    trace: Traces = None
    cluster: Cluster = None
    seeds: Seeds = None
    nodes: Nodes = None
    load: Load = None
    held_out: HeldOut = None
    state: State = None
    duration: Duration = None
    topology: Topology = None
    waiting: Waiting = None
    demand: DemandName = None
    ties: TieRule = None

    def settings(self) -> dict[str, Any]:
        """Returns the options that are settings, by path."""
        dump = DumpOptions(self.state, self.duration, self.topology).settings()
        return {**dump, "simulate.demand": self.demand, "simulate.ties": self.ties}

    def request(self) -> CasesRequest:
        """Describes the training cases."""
        from podium.traces.kubernetes.waiting import parse_waiting

        return CasesRequest(
            fitness_of(self.fitness, self.objective), tuple(self.trace or ()), self.seeds,
            self.nodes, self.cluster, self.load, self.held_out,
            parse_waiting(self.waiting),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FewCasesOptions(CasesOptions):
    """The same options for one candidate: half as many cases of a trace."""

    seeds: FewSeeds = None

    def request(self) -> CasesRequest:
        """Describes the cases."""
        asked, is_given = CasesOptions.request(self), bool(self.trace or self.cluster)
        return replace(asked, seeds=TRACE_SEEDS // 2) if is_given and not self.seeds else asked


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """The options of when a new search ends."""

    evaluations: Evaluations = None
    time_span: Time = None
    target: Target = None


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of language models that are settings."""

    model: Models = None
    base_url: BaseUrl = None
    usd: Usd = None
    tokens: Tokens = None
    temperature: Temperature = None
    max_tokens: MaxTokens = None
    reasoning_effort: ReasoningEffort = None
    model_timeout: ModelTimeout = None
    model_calls: ModelCalls = None
    model_parameters: ModelParameters = None
    prompts: Prompts = None

    def settings(self) -> dict[str, Any]:
        """Returns the options by the path of their setting."""
        return {
            "search.models": ",".join(self.model) if self.model else None,
            "search.base_url": self.base_url,
            "search.usd": self.usd,
            "search.tokens": self.tokens,
            **{f"search.{name}": value for name, value in self._answering().items()},
        }

    def flags(self) -> dict[str, Any]:
        """Returns the options by their flag."""
        answering = {
            f"--{name.removesuffix('_s').replace('_', '-')}": value
            for name, value in self._answering().items()
            if name != "prompts"  # which commands are sent as well
        }
        return {"--model": self.model, "--base-url": self.base_url, "--usd": self.usd,
                "--tokens": self.tokens, **answering}  # fmt: skip

    def _answering(self) -> dict[str, Any]:
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "reasoning_effort": self.reasoning_effort,
            "model_timeout_s": self.model_timeout,
            "model_calls": self.model_calls,
            "model_parameters": self.model_parameters,
            "prompts": self.prompts,
        }


@dataclass(frozen=True, slots=True)
class WorkersOptions:
    """The options of where candidates are judged."""

    workers: Workers = None
    executor: ExecutorName = "local"
    ray_address: RayAddress = ""


@dataclass(frozen=True, slots=True)
class LimitsOptions:
    """The options of the limits of one candidate."""

    time_limit: TimeLimit = 10.0
    memory_limit: MemoryLimit = 512


@dataclass(frozen=True, slots=True)
class PlaceOptions:
    """The options of what a search may use, and where it is stored."""

    is_unconfined: AllowUnconfined = False
    store: StoreUrl = None
    traces: TracesFolder = None

    def settings(self) -> dict[str, Any]:
        """Returns the options by the path of their setting."""
        return {
            "store.url": self.store,
            "traces.folder": self.traces,
            "search.allow_unconfined": self.is_unconfined or None,
        }


def means_request(
    workers: WorkersOptions, limits: LimitsOptions | None = None, command: str | None = None
) -> MeansRequest:
    """Describes the resources that a search works with."""
    own = limits or LimitsOptions()
    return MeansRequest(
        workers.workers, workers.executor, workers.ray_address, own.time_limit, own.memory_limit,
        command or "",
    )  # fmt: skip
