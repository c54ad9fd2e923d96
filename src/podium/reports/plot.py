"""Draws in one style: text of medium brightness, colours that everybody can tell apart.

Pictures have a clear ground, so that they can be read on white and on dark pages alike, and the
same data gives the same bytes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.errors import MissingExtra
from podium.files.draft import drafted
from podium.reports.tables import checked_target

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".svg", ".png")
INK = "#767676"

# Of the palette of Okabe and Ito, made for colour-blind readers, the colours that stand out from
# white and from black; a line's dashes and its label tell the same.
BLUE, GREEN, RED, PINK = "#0072B2", "#009E73", "#D55E00", "#CC79A7"
DASHED, DOTTED, MIXED = (0, (7, 1.5)), (0, (1, 1)), (0, (4, 1.5, 1, 1.5))


def check_plot(path: Path) -> None:
    """Refuses what could not be drawn, before anything is run for it."""
    checked_target(path, SUFFIXES)
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra.named("plots", "drawing")


@contextmanager
def in_style() -> Iterator[None]:
    """Sets matplotlib up for as long as the block lasts."""
    import matplotlib as mpl

    inks = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
    style: dict[str, Any] = {"svg.hashsalt": "podium", "font.size": 10, **dict.fromkeys(inks, INK)}
    with mpl.rc_context(style):
        yield


def save(figure: Figure, path: Path) -> None:
    """Writes a picture; nothing in it says when or by which version it was drawn."""
    suffix = path.suffix.lower()
    unsaid = dict.fromkeys({".svg": ("Date", "Creator"), ".png": ("Software",)}[suffix])
    with drafted(path) as draft:
        figure.savefig(draft, format=suffix[1:], transparent=True, dpi=150, metadata=unsaid)


def tidy(axes: Axes) -> None:
    """Removes whatever does not help to read values."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=INK, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)


def spread(heights: Mapping[str, float], gap: float) -> dict[str, float]:
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


def _bottom(group: list[str], heights: Mapping[str, float], gap: float) -> float:
    middle = sum(heights[name] for name in group) / len(group)
    return middle - gap * (len(group) - 1) / 2


def _top(group: list[str], heights: Mapping[str, float], gap: float) -> float:
    return _bottom(group, heights, gap) + gap * (len(group) - 1)
