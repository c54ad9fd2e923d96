"""Draws the figures of the documentation from their committed data, always the same bytes.

    python tools/draw_figures.py [FOLDER]

Reads `docs/figures/*.json` (see `tools/figure_data.py`) and writes the SVG files beside them, or
into another folder. Lines and words are of a middle brightness on a clear ground, so that the
pictures can be read on white and on dark pages alike.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

SOURCE = Path(__file__).parent.parent / "docs" / "figures"
INK = "#767676"

# Of the palette of Okabe and Ito, made for colour-blind readers, the colours that stand out from
# white and from black; a line's dashes and its label tell the same.
BLUE, GREEN, RED, PINK = "#0072B2", "#009E73", "#D55E00", "#CC79A7"
STYLES: dict[str, tuple[str, Any, str]] = {
    "fgd": (BLUE, "-", "o"),
    "first-fit": (GREEN, (0, (7, 1.5)), "^"),
    "kube-default": (PINK, "-", "P"),
    "best-fit": (RED, "-", "s"),
    "gpu-packing": (BLUE, (0, (4, 1.5, 1, 1.5)), "D"),
    "gpu-clustering": (GREEN, "-", "v"),
    "dot-product": (PINK, (0, (1, 1)), "X"),
    "random": (INK, (0, (5, 1.5)), "d"),
    "worst-fit": (INK, (0, (1, 1)), "p"),
    "online": (BLUE, "-", "o"),
    "epsilon": (GREEN, (0, (7, 1.5)), "^"),
    "capped-oracle": (PINK, (0, (4, 1.5, 1, 1.5)), "D"),
    "never-explore": (RED, (0, (1, 1)), "s"),
}


def main(target: Path) -> None:
    """Draws every figure."""
    mpl.use("svg")
    mpl.rcParams.update(
        {
            "svg.hashsalt": "podium",
            "font.size": 10,
            "axes.edgecolor": INK,
            "axes.labelcolor": INK,
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
        }
    )
    for name, draw in FIGURES.items():
        data = json.loads((SOURCE / f"{name}.json").read_text(encoding="utf-8"))
        figure = draw(data)
        metadata = {"Date": None, "Creator": None}
        figure.savefig(target / f"{name}.svg", transparent=True, metadata=metadata)


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
    axes.plot([60, 100], [60, 100], color=INK, linewidth=0.8)
    axes.text(89, 89.6, "everything placed", rotation=45, transform_rotates_text=True,
              rotation_mode="anchor", ha="right", va="bottom", fontsize=9)  # fmt: skip
    axes.set(
        xlim=(75, 130), ylim=(75, 100), xlabel="GPU demand of the pods that arrived, % of all GPUs"
    )
    axes.set_ylabel("GPUs allocated, %")
    _tidy(axes)
    for policy, height in spread(labels, 1.1).items():
        text = f"{policy}  {labels[policy]:.1f}"
        axes.annotate(text, (130, height), (6, 0), textcoords="offset points", va="center",
                      color=STYLES[policy][0], annotation_clip=False)  # fmt: skip
    return figure


def draw_learning(data: dict[str, Any]) -> Figure:
    """Draws regret per decision over time, one line a way, with the middle half of the worlds."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    labels = {}
    for way, by_seed in data["course"].items():
        curves = smooth(100 * np.array(list(by_seed.values())))
        places = data["jobs"] / curves.shape[1] * np.arange(1, curves.shape[1] + 1)
        color, dashes, _ = STYLES[way]
        low, high = np.quantile(curves, [0.25, 0.75], axis=0)
        axes.fill_between(places, low, high, color=color, alpha=0.12, linewidth=0)
        axes.plot(places, curves.mean(axis=0), color=color, linestyle=dashes, linewidth=1.8)
        labels[way] = float(curves.mean(axis=0)[-1])
    axes.axhline(5, color=INK, linewidth=0.8)
    axes.annotate("5 %", (0, 5), (4, 2), textcoords="offset points", fontsize=9)
    axes.set(xlim=(0, data["jobs"]), ylim=(0, 200), xlabel="decisions")
    axes.set_ylabel("longer than where the oracle sends a job, %")
    _tidy(axes)
    # Labels stand above the axis, even those of ways that regret nothing.
    for way, height in spread({way: max(labels[way], 10.0) for way in labels}, 11).items():
        axes.annotate(f"{way}  {labels[way]:.1f}", (data["jobs"], height), (6, 0),
                      textcoords="offset points", va="center", color=STYLES[way][0],
                      annotation_clip=False)  # fmt: skip
    return figure


def smooth(curves: Any) -> Any:
    """Takes means over the last five points, fewer at the start."""
    sums = np.cumsum(curves, axis=1)
    sums[:, 5:] -= sums[:, :-5].copy()
    return sums / np.minimum(np.arange(1, curves.shape[1] + 1), 5)


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
        axes.axvline(place - 0.5, color=INK, alpha=0.25, linewidth=0.6)
    axes.set_xlim(-0.5, len(traces) - 0.5)
    axes.set_xticks(range(len(traces)), traces, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_ylabel("GPUs allocated at 130 % load, %")
    _tidy(axes)
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


def spread(heights: dict[str, float], gap: float) -> dict[str, float]:
    """Moves labels apart that would overlap, each group about its middle."""
    groups: list[list[str]] = []
    for name in sorted(heights, key=lambda name: heights[name]):
        groups.append([name])
        while len(groups) > 1 and _bottom(groups[-1], heights, gap) < gap + _top(
            groups[-2], heights, gap
        ):
            last = groups.pop()
            groups[-1] += last
    return {
        name: _bottom(group, heights, gap) + gap * index
        for group in groups
        for index, name in enumerate(group)
    }


def _bottom(group: list[str], heights: dict[str, float], gap: float) -> float:
    middle = sum(heights[name] for name in group) / len(group)
    return middle - gap * (len(group) - 1) / 2


def _top(group: list[str], heights: dict[str, float], gap: float) -> float:
    return _bottom(group, heights, gap) + gap * (len(group) - 1)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=INK, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


FIGURES = {
    "packing": draw_packing,
    "learning": draw_learning,
    "reproduction": draw_reproduction,
}


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: python tools/draw_figures.py [FOLDER]")
    main(Path(sys.argv[1]) if len(sys.argv) == 2 else SOURCE)
