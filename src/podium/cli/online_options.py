"""Holds the options that say in what worlds the online agent learns."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Seeds = Annotated[
    str | None,
    typer.Option("--seeds", help="Worlds: 1000-1019 or 1,5,9 (online).", show_default=False),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Jobs that arrive (online).", show_default=False)
]
JobTypes = Annotated[
    int | None, typer.Option("--job-types", help="Types of jobs (online).", show_default=False)
]
GpuTypes = Annotated[
    int | None, typer.Option("--gpu-types", help="Types of GPUs (online).", show_default=False)
]
Noise = Annotated[
    float | None,
    typer.Option("--noise", help="Spread of run times; 0.2: 20 % (online).", show_default=False),
]
PairSpread = Annotated[
    float | None,
    typer.Option(
        "--pair-spread",
        help="How far jobs differ in which GPUs suit them, in ln(run time) (online).",
        show_default=False,
    ),
]
Neighbours = Annotated[
    float | None,
    typer.Option(
        "--neighbours", help="Share of jobs beside another one (online).", show_default=False
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        help="Draw what was lost while learning (.svg or .png) (online).",
        show_default=False,
    ),
]
