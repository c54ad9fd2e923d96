"""Plots how the online agent learns: what its decisions lose against an oracle, over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from podium.reports import plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Courses = Mapping[str, Mapping[str, Sequence[float]]]
"""Regret over time, by strategy and seed."""

GOAL = 5.0
"""Percent that an agent should stay below once it has learned."""

_STYLES: dict[str, tuple[str, Any]] = {
    "online": (plot.BLUE, "-"),
    "epsilon": (plot.GREEN, plot.DASHED),
    "capped-oracle": (plot.PINK, plot.MIXED),
    "never-explore": (plot.RED, plot.DOTTED),
}
_LAST = 5  # points that are drawn as their mean
_TOP = 200.0


def courses_of(found: Mapping[str, Any]) -> Courses:
    """Selects the curves to draw from the findings of a trial; the oracle has no regret."""
    courses: dict[str, dict[str, list[float]]] = {}
    for run in found["runs"]:
        if run["way"] in _STYLES:
            courses.setdefault(run["way"], {})[str(run["seed"])] = run["course"]
    return courses


def plot_learning(found: Mapping[str, Any], path: Path) -> None:
    """Draws what a trial found."""
    with plot.in_style():
        plot.save(draw_learning(found["jobs"], courses_of(found)), path)


def draw_learning(jobs: int, courses: Courses) -> Figure:
    """Draws regret over time, a line per strategy with the middle half of the worlds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    ends = {}
    for name, by_seed in courses.items():
        curves = _smooth(100 * np.array(list(by_seed.values())))
        places = jobs / curves.shape[1] * np.arange(1, curves.shape[1] + 1)
        color, dashes = _STYLES[name]
        low, high = np.quantile(curves, [0.25, 0.75], axis=0)
        axes.fill_between(places, low, high, color=color, alpha=0.12, linewidth=0)
        axes.plot(places, curves.mean(axis=0), color=color, linestyle=dashes, linewidth=1.8)
        ends[name] = float(curves.mean(axis=0)[-1])
    axes.axhline(GOAL, color=plot.INK, linewidth=0.8)
    axes.annotate(f"{GOAL:g} %", (0, GOAL), (4, 2), textcoords="offset points", fontsize=9)
    axes.set(xlim=(0, jobs), ylim=(0, _TOP), xlabel="decisions")
    axes.set_ylabel("longer than where the oracle sends a job, %")
    plot.tidy(axes)
    # Labels stand inside, even those of strategies that regret nothing or very much.
    heights = {name: min(max(ends[name], 10.0), _TOP) for name in ends}
    for name, height in plot.spread(heights, 11).items():
        axes.annotate(f"{name}  {ends[name]:.1f}", (jobs, height), (6, 0),
                      textcoords="offset points", va="center", color=_STYLES[name][0],
                      annotation_clip=False)  # fmt: skip
    return figure


def _smooth(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Averages over the last points, fewer at the start."""
    sums = np.cumsum(curves, axis=1)
    sums[:, _LAST:] -= sums[:, :-_LAST].copy()
    return np.asarray(sums / np.minimum(np.arange(1, curves.shape[1] + 1), _LAST))
