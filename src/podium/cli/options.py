"""Holds the options that verbs share, and the way from options to settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from podium.settings import Settings, load_settings

Json = Annotated[bool, typer.Option("--json", help="Print data as JSON.")]
TracesFolder = Annotated[
    Path | None, typer.Option("--traces", help="Folder of the OpenB CSV files.", show_default=False)
]


def read_settings(ctx: typer.Context, flags: Mapping[str, Any] | None = None) -> Settings:
    """Loads the settings under a verb's flags, given by path; None means not given."""
    settings = load_settings({**(ctx.obj or {}), **(flags or {})})
    if settings.origins["compile.cache"] != "default":
        # Compilation happens in worker processes too, and they inherit the environment.
        os.environ["PODIUM_COMPILE_CACHE"] = str(settings.compile.cache)
    return settings


def traces_folder(settings: Settings) -> Path | None:
    """Names the folder of original traces: the one that is set, or what was fetched."""
    has_fetched = any(settings.traces.cache.glob("openb_*.csv"))
    return settings.traces.folder or (settings.traces.cache if has_fetched else None)
