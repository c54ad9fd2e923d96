"""Declares the options that verbs share, and reads settings with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.completion import runs, words
from podium.settings import Settings, load_settings

if TYPE_CHECKING:
    from podium.store import RunRecord

Json = Annotated[bool, typer.Option("--json", help="Print data as JSON.")]
TracesFolder = Annotated[
    Path | None, typer.Option("--traces", help="Folder of the OpenB CSV files.", show_default=False)
]


RunId = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="Id of a run, a unique prefix of it, or its name.", autocompletion=runs
    ),
]
StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="Database: a file or a URL.", show_default=False),
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save", metavar="NAME", help="Save the run in the store under this name.",
        show_default=False,
    ),
]  # fmt: skip


State = Annotated[
    str | None,
    typer.Option(
        "--state",
        help="How a cluster's dump begins: now (pods stay where they run), empty, or history "
        "(empty; what runs, ran and waits arrives when it was created).",
        show_default=False,
        autocompletion=words("now", "empty", "history"),
    ),
]
Duration = Annotated[
    str | None,
    typer.Option(
        "--duration",
        help="Run time of a dump's pods: 2h, exponential:1h, lognormal:1h:1.5.",
        show_default=False,
    ),
]
Topology = Annotated[
    str | None,
    typer.Option(
        "--topology",
        help="Labels of rack, block and zone: aws, gcp, ..., or up to three keys, with commas.",
        show_default=False,
    ),
]
Waiting = Annotated[
    str | None,
    typer.Option(
        "--waiting", help="Try work that waits for something else, too: gated,suspended.",
        show_default=False,
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """The options of how the dump of a cluster is read."""

    state: State = None
    duration: Duration = None
    topology: Topology = None

    def settings(self) -> dict[str, Any]:
        """Returns the options by the path of their setting."""
        return {
            "simulate.state": self.state,
            "simulate.duration": self.duration,
            "simulate.topology": self.topology,
        }


def read_settings(ctx: typer.Context, flags: Mapping[str, Any] | None = None) -> Settings:
    """Loads the settings under a verb's flags, given by path; None means not given."""
    settings = load_settings({**common_flags(ctx), **(flags or {})})
    if settings.origins["compile.cache"] != "default":
        # Compilation happens in worker processes too, which have folders of their own.
        os.environ["PODIUM_COMPILE_CACHE"] = str(settings.compile.cache.absolute())
    return settings


def common_flags(ctx: typer.Context) -> dict[str, Any]:
    """Returns the flags of `podium` itself, by the path of their setting."""
    return dict(ctx.obj or {})


def typed_command() -> tuple[str, ...]:
    """Returns the command line as it was typed."""
    return ("podium", *sys.argv[1:])


def kept_note(record: RunRecord) -> str:
    """Writes the note that says where an outcome is stored."""
    return f"saved as run {record.id} ({record.name}); podium runs show {record.id} shows it"
