"""Draws the figures of the documentation from their committed data, always the same bytes.

    python tools/draw_figures.py [FOLDER]

Reads `docs/figures/*.json` (see `tools/figure_data.py`) and writes the SVG files beside them, or
into another folder.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from terminal_picture import draw_terminal

from podium.reports import plot
from podium.reports.learning_plot import draw_learning

SOURCE = Path(__file__).parent.parent / "docs" / "figures"
STYLES: dict[str, tuple[str, Any, str]] = {
    "mlp": (plot.RED, plot.DOTTED, "*"),
    "usable-gpu": (plot.GREEN, plot.MIXED, "h"),
    "keep-room": (plot.BLUE, plot.DASHED, "X"),
    "kube-packing": (plot.INK, plot.MIXED, "d"),
    "fgd": (plot.BLUE, "-", "o"),
    "first-fit": (plot.GREEN, plot.DASHED, "^"),
    "kube-default": (plot.PINK, "-", "P"),
    "best-fit": (plot.RED, "-", "s"),
    "gpu-packing": (plot.BLUE, plot.MIXED, "D"),
    "gpu-clustering": (plot.GREEN, "-", "v"),
    "dot-product": (plot.PINK, plot.DOTTED, "X"),
    "random": (plot.INK, (0, (5, 1.5)), "d"),
    "worst-fit": (plot.INK, plot.DOTTED, "p"),
}


def main(target: Path) -> None:
    """Draws every figure."""
    for name, draw in FIGURES.items():
        data = json.loads((SOURCE / f"{name}.json").read_text(encoding="utf-8"))
        with plot.in_style():
            plot.save(draw(data), target / f"{name}.svg")
    data = json.loads((SOURCE / "demo.json").read_text(encoding="utf-8"))
    (target / "demo.svg").write_text(draw_terminal(data["command"], data["lines"]), "utf-8")


def draw_packing(data: dict[str, Any]) -> Figure:
    """Draws GPU allocation over arrived load, one line a policy."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    loads = np.array(data["loads"])
    labels = {}
    for policy, by_seed in data["allocation"].items():
        curves = 100 * np.array(list(by_seed.values()))
        color, dashes, _ = STYLES[policy]
        mean = curves.mean(axis=0)
        axes.fill_between(loads, curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.2,
                          linewidth=0)  # fmt: skip
        axes.plot(loads, mean, color=color, linestyle=dashes, linewidth=1.8)
        labels[policy] = float(mean[-1])
    axes.plot([60, 100], [60, 100], color=plot.INK, linewidth=0.8)
    axes.text(89, 89.6, "everything placed", rotation=45, transform_rotates_text=True,
              rotation_mode="anchor", ha="right", va="bottom", fontsize=9)  # fmt: skip
    axes.set(
        xlim=(75, 130), ylim=(75, 100), xlabel="GPU demand of the pods that arrived, % of all GPUs"
    )
    axes.set_ylabel("GPUs allocated, %")
    plot.tidy(axes)
    for policy, height in plot.spread(labels, 1.1).items():
        text = f"{policy}  {labels[policy]:.1f}"
        axes.annotate(text, (130, height), (6, 0), textcoords="offset points", va="center",
                      color=STYLES[policy][0], annotation_clip=False)  # fmt: skip
    return figure


def draw_reproduction(data: dict[str, Any]) -> Figure:
    """Draws our figures as points inside the published ones, drawn as rings."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axes = figure.add_subplot()
    by_policy = allocation_at_130(data)
    traces = sorted(by_policy["fgd"], key=_trace_key)
    order = sorted(by_policy, key=lambda policy: -float(np.mean(list(by_policy[policy].values()))))
    for index, policy in enumerate(order):
        color, _, marker = STYLES[policy]
        ours, published = np.array([by_policy[policy][trace] for trace in traces]).T
        # Side by side, or equal figures of two policies would hide each other.
        places = np.arange(len(traces)) + 0.13 * (index - (len(order) - 1) / 2)
        axes.plot(places, published, marker, markersize=8, markerfacecolor="none",
                  markeredgecolor=color, markeredgewidth=0.9)  # fmt: skip
        axes.plot(places, ours, marker, markersize=3.5, color=color, markeredgewidth=0,
                  label=policy)  # fmt: skip
    for place in range(1, len(traces)):
        axes.axvline(place - 0.5, color=plot.INK, alpha=0.25, linewidth=0.6)
    axes.set_xlim(-0.5, len(traces) - 0.5)
    axes.set_xticks(range(len(traces)), traces, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylabel("GPUs allocated at 130 % load, %")
    plot.tidy(axes)
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", frameon=False, markerscale=2,
                  title="filled: Podium\nring: published")  # fmt: skip
    return figure


def allocation_at_130(data: dict[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Gives ours and published by policy and trace."""
    wanted = [data["columns"].index(f"alloc_130 {side}") for side in ("ours", "published")]
    found: dict[str, dict[str, list[float]]] = {}
    for row in data["rows"]:
        found.setdefault(row[1], {})[row[0]] = [row[index] for index in wanted]
    return found


def _trace_key(trace: str) -> tuple[bool, str, int]:
    family = trace.rstrip("0123456789")
    return trace != "default", family, int(trace[len(family) :] or 0)


FIGURES = {
    "packing": draw_packing,
    "learning": lambda data: draw_learning(data["jobs"], data["course"]),
    "reproduction": draw_reproduction,
}


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: python tools/draw_figures.py [FOLDER]")
    main(Path(sys.argv[1]) if len(sys.argv) == 2 else SOURCE)
