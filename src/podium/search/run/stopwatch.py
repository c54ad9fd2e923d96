"""Measures a run at work: for how long, earlier sittings included, and how fast lately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

SPAN_S = 20
"""So far back does "lately" reach."""

MOST_MARKS = 500


@dataclass(slots=True)
class Stopwatch:
    """Runs from the moment it is made."""

    clock: Callable[[], float]
    before_s: float = 0.0  # of earlier sittings
    _began: float = field(init=False)
    _marks: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def seconds(self) -> float:
        """Counts the time at work, earlier sittings included."""
        return self.before_s + self.clock() - self._began

    def rate(self, evaluations: int) -> float:
        """Takes down how many evaluations there are by now; gives those of a second, lately."""
        now = self.clock()
        self._marks = [each for each in self._marks if now - each[0] < SPAN_S][-MOST_MARKS:]
        self._marks.append((now, evaluations))
        first = self._marks[0]
        return (evaluations - first[1]) / max(1e-6, now - first[0])
