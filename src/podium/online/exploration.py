"""Keeps exploration below its cap, over every window of decisions."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Any

EXPLORATION, EXPLOITATION, FORCED = "exploration", "exploitation", "forced"

_ROUNDING = 1e-9
"""0.29 * 100 is a little below 29."""


class ExplorationCap:
    """Counts decisions, and decides whether the next one may explore.

    The window is the last decisions that had a choice, fewer at the start: even the first decisions
    keep to the cap. Inside the window exploration is spread evenly: with a cap of a quarter, three
    decisions lie between one that explores and the next. Forced decisions are counted apart and do
    not fill the window, so the share is below the cap whether they are counted or not.
    """

    def __init__(self, cap: float, window: int) -> None:
        self._cap = cap
        self._window = window
        self._pause = 1.0 / cap if cap > 0.0 else math.inf  # decisions from one to the next
        self._wait = self._pause  # decisions until one may explore, itself included
        self._recent: deque[bool] = deque(maxlen=window)
        self._explored = 0  # in the window
        self._totals = {EXPLORATION: 0, EXPLOITATION: 0, FORCED: 0}

    @property
    def totals(self) -> Mapping[str, int]:
        """Counts all decisions by their type."""
        return dict(self._totals)

    @property
    def ratio(self) -> float:
        """Returns the share of exploratory decisions in the window."""
        return self._explored / len(self._recent) if self._recent else 0.0

    @property
    def _is_due(self) -> bool:
        return self._wait <= 1.0 + _ROUNDING

    def allows(self) -> bool:
        """Tests whether one more exploratory decision keeps to the cap."""
        if not self._is_due:
            return False
        is_full = len(self._recent) == self._window
        leaving = is_full and self._recent[0]
        size = min(len(self._recent) + 1, self._window)
        return self._explored - leaving + 1 <= math.floor(self._cap * size + _ROUNDING)

    def count(self, decision_type: str) -> None:
        """Counts a decision."""
        self._totals[decision_type] += 1
        if decision_type == FORCED:
            return
        if len(self._recent) == self._window:
            self._explored -= self._recent[0]
        self._recent.append(decision_type == EXPLORATION)
        self._explored += self._recent[-1]
        if decision_type == EXPLORATION:
            self._wait += self._pause - 1.0
        elif not self._is_due:
            self._wait -= 1.0

    def as_object(self) -> dict[str, Any]:
        """Returns the counters as JSON types."""
        return {
            "recent": [int(each) for each in self._recent],
            "wait": self._wait if math.isfinite(self._wait) else None,
            "totals": dict(self._totals),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Restores counters; of a longer window, only the last decisions."""
        self._recent = deque((bool(each) for each in data["recent"]), maxlen=self._window)
        self._explored = sum(self._recent)
        wait = data["wait"]
        self._wait = self._pause if wait is None else min(float(wait), self._pause)
        self._totals = {name: int(data["totals"][name]) for name in self._totals}
