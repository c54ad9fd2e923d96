"""Tells workers that are lost now and then from those that crash again and again."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

MOST_LOST = 12
"""So many losses are too many unless enough was done meanwhile."""

FOR_EACH = 4
"""As many as this of each worker are borne: all of them may go at once, more than once."""

REPLIES = 4
"""So many replies make up for one loss."""


@dataclass(slots=True)
class Losses:
    """Weighs losses against replies; threads may share it.

    Whoever only counts losses in a row never notices a worker that answers once and then dies,
    each time that it is replaced.
    """

    workers: int
    total: int = 0
    _weight: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self) -> bool:
        """Notes a loss; returns whether there are too many."""
        with self._lock:
            self.total += 1
            self._weight += 1.0
            return self._weight >= max(MOST_LOST, FOR_EACH * self.workers)

    def make_up(self) -> None:
        """Notes a reply."""
        with self._lock:
            self._weight = max(0.0, self._weight - 1.0 / REPLIES)
