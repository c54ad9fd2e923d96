"""Declares every setting: one frozen dataclass per section and one line each in `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podium.settings.about import about, cache_folder, data_file_url, data_folder


@dataclass(frozen=True, slots=True)
class Traces:
    """Says where traces lie."""

    folder: Path | None = field(
        default=None,
        metadata=about("folder of the OpenB CSV files", short_env="PODIUM_TRACES", flag="--traces"),
    )
    cache: Path = field(
        default_factory=cache_folder("traces"), metadata=about("folder for downloaded traces")
    )


@dataclass(frozen=True, slots=True)
class Simulate:
    """Says what is simulated where a flag does not."""

    policy: str = field(default="fgd", metadata=about("policy by name or file"))
    trace: str = field(default="openb", metadata=about("trace by name or file"))
    cluster: str | None = field(
        default=None, metadata=about("cluster by name or file; unset: the trace's own")
    )
    protocol: str = field(
        default="replay",
        metadata=about("how pods are offered", choices=("replay", "inflation", "rounds")),
    )
    seed: int = field(default=0, metadata=about("seed of everything random", at_least=0))
    load: float = field(
        default=1.0, metadata=about("divides the time between arrivals (replay)", above=0)
    )
    ratio: float = field(
        default=1.3, metadata=about("arrived GPU demand over capacity (inflation)", above=0)
    )
    hold_limit: int = field(
        default=100, metadata=about("decisions until a held pod returns", at_least=1)
    )
    max_holds: int = field(
        default=1000, metadata=about("how often one pod may be held", at_least=0)
    )
    max_rounds: int = field(
        default=10, metadata=about("how often the queue is offered (rounds)", at_least=1)
    )


@dataclass(frozen=True, slots=True)
class Display:
    """Says how results are shown."""

    progress: bool = field(default=True, metadata=about("show progress bars", flag="--no-progress"))
    quiet: bool = field(default=False, metadata=about("print results only, no words around them"))
    color: str = field(
        default="auto", metadata=about("when to use colour", choices=("auto", "always", "never"))
    )


@dataclass(frozen=True, slots=True)
class Compile:
    """Says how policies become machine code."""

    cache: Path = field(
        default_factory=cache_folder("compiled"), metadata=about("folder for compiled policies")
    )
    tier: str = field(
        default="auto",
        metadata=about(
            "execution tier of the simulator", choices=("auto", "python", "cached", "scan")
        ),
    )


@dataclass(frozen=True, slots=True)
class Store:
    """Says where runs are kept."""

    url: str = field(
        default_factory=lambda: data_file_url("podium.db"),
        metadata=about(
            "database of runs: a SQLite file or a PostgreSQL address", flag="--store", is_url=True
        ),
    )


@dataclass(frozen=True, slots=True)
class Search:
    """Says how policies are searched for where a flag does not."""

    folder: Path = field(
        default_factory=data_folder("runs"), metadata=about("folder for the files of runs")
    )
    workers: int = field(
        default=0, metadata=about("processes that judge candidates; 0: one a core", at_least=0)
    )
    models: str = field(
        default="",
        metadata=about("language models, the cheapest first, commas between", flag="--model"),
    )
    base_url: str = field(
        default="", metadata=about("address of an OpenAI-compatible service", flag="--base-url")
    )
    usd: float = field(
        default=0.0, metadata=about("US dollars that a run may spend; 0: no such cap", at_least=0)
    )
    tokens: int = field(
        default=0, metadata=about("tokens that a run may use; 0: no such cap", at_least=0)
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the value of every setting and where it came from."""

    traces: Traces
    simulate: Simulate
    display: Display
    compile: Compile
    store: Store
    search: Search
    origins: Mapping[str, str]  # by path, such as "simulate.seed"
