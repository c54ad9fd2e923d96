"""Plots how a training went: reward of each iteration, and the score of every validation."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.reports import plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]


def plot_training(rows: Rows, path: Path) -> None:
    """Draws the learning curve into a file."""
    with plot.in_style():
        plot.save(draw_training(rows), path)


def curve_svg(rows: Rows) -> str:
    """Draws the learning curve as SVG for a notebook; empty where nothing can be drawn."""
    if importlib.util.find_spec("matplotlib") is None or not rows:
        return ""
    stream = io.StringIO()
    with plot.in_style():
        draw_training(rows).savefig(stream, format="svg", transparent=True)
    text = stream.getvalue()
    return text[text.index("<svg") :]


def draw_training(rows: Rows) -> Figure:
    """Draws reward and validation over episodes, one above the other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, kind, name, color in (
        (above, "training", "reward", plot.BLUE),
        (below, "validation", "score", plot.GREEN),
    ):
        found = [row for row in rows if row.get("kind") == kind and name in row]
        places, values = [row["episodes"] for row in found], [row[name] for row in found]
        axes.plot(places, values, color=color, marker="o" if len(found) < 60 else "", markersize=3)
        axes.set_ylabel(name if kind == "training" else "validation score")
        plot.tidy(axes)
    below.set_xlabel("episodes")
    return figure
