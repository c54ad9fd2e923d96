"""Holds the options that verbs share, and the way from options to settings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.errors import PodiumError, UnknownName
from podium.settings import Settings, load_settings

Json = Annotated[bool, typer.Option("--json", help="Print data as JSON.")]
TracesFolder = Annotated[
    Path | None, typer.Option("--traces", help="Folder of the OpenB CSV files.", show_default=False)
]


def read_settings(ctx: typer.Context, flags: Mapping[str, Any] | None = None) -> Settings:
    """Loads the settings under a verb's flags, given by path; None means not given."""
    settings = load_settings({**(ctx.obj or {}), **(flags or {})})
    if settings.origins["compile.cache"] != "default":
        # Compilation happens in worker processes too, which have folders of their own.
        os.environ["PODIUM_COMPILE_CACHE"] = str(settings.compile.cache.absolute())
    return settings


def traces_folder(settings: Settings) -> Path | None:
    """Names the folder of original traces: the one that is set, or what was fetched."""
    has_fetched = any(settings.traces.cache.glob("openb_*.csv"))
    return settings.traces.folder or (settings.traces.cache if has_fetched else None)


def place_of(settings: Settings, path: str) -> str:
    """Says where a setting was made, for errors about its value; nothing for a default."""
    section, name = path.split(".")
    origin = settings.origins[path]
    return "" if origin == "default" else f"{origin}, [{section}] {name}"


@contextmanager
def blaming(where: str, advice: str = "") -> Iterator[None]:
    """Adds a place and advice to errors that have none, and names the list of all names."""
    try:
        yield
    except PodiumError as error:
        error.where = error.where or where
        error.hint = error.hint or advice
        kind = error.message.split('"')[0] if isinstance(error, UnknownName) else ""
        for noun, verb in _LISTS.items():
            if noun in kind:
                error.hint += f"; {verb} shows all"
        raise


_LISTS = {"policy": "podium policies list", "trace": "podium traces list"}
