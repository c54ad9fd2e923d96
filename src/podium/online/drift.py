"""Notices that a pair of job type and GPU type runs longer or shorter than it used to.

Each run is compared with what those before it lead to expect, in standard deviations (`residual`).
Deviations in one direction add up (Page's cumulative sums); noise does not get far, as each run
also takes a little away. When the sum is large, the runs since it left zero are what the pair is
like now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Run = tuple[float, tuple[float | None, ...], tuple[str, ...]]
"""Log run time, features and neighbours."""

SLACK = 0.75
LIMIT = 10.0
"""Standard deviations that each run takes away, and at which a change is noticed.

A shift of 3.5 of them, as a factor of two at 20 % noise, is noticed after four runs; without a
change it would take millions."""

SHARE, SUSPECT, JOB_TYPES = 5.0, 2.5, 3
"""What a job type counts for at most where a GPU type is suspected, and how many must agree."""

FARTHEST = 4.0
_MOST = 32


@dataclass(slots=True)
class Watch:
    """Adds up how far the runs of a pair are from what was expected."""

    longer: float = 0.0
    shorter: float = 0.0
    since_longer: list[Run] = field(default_factory=list)  # runs since the sum left zero
    since_shorter: list[Run] = field(default_factory=list)

    @property
    def change(self) -> str:
        """Returns how the pair has changed; empty if it has not."""
        if max(self.longer, self.shorter) <= LIMIT:
            return ""
        return "longer" if self.longer > LIMIT else "shorter"

    @property
    def is_suspect(self) -> bool:
        """Returns whether the pair may have changed."""
        return max(self.longer, self.shorter) >= SUSPECT

    def see(self, run: Run, score: float) -> None:
        """Adds a run; one that is far off counts as FARTHEST, so that mistakes go by."""
        score = min(max(score, -FARTHEST), FARTHEST)
        self.longer = max(self.longer + score - SLACK, 0.0)
        self.shorter = max(self.shorter - score - SLACK, 0.0)
        self.since_longer = [*self.since_longer, run][-_MOST:] if self.longer else []
        self.since_shorter = [*self.since_shorter, run][-_MOST:] if self.shorter else []

    def since(self, *, is_longer: bool) -> list[Run]:
        """Returns the runs since a change in one direction, if one is suspected."""
        if (self.longer if is_longer else self.shorter) < SUSPECT:
            return []
        return self.since_longer if is_longer else self.since_shorter

    def as_object(self) -> list[Any]:
        """Returns the watch as JSON types."""
        since = [_listed(self.since_longer), _listed(self.since_shorter)]
        return [self.longer, self.shorter, *since]

    @classmethod
    def from_object(cls, data: Sequence[Any]) -> Watch:
        """Reads a watch back."""
        longer, shorter, since_longer, since_shorter = data
        return cls(float(longer), float(shorter), _read(since_longer), _read(since_shorter))


def changed(watches: Sequence[Watch]) -> str:
    """Tells how a GPU type has changed: the pairs of several job types agree on it."""
    for name in ("longer", "shorter"):
        sums = [getattr(each, name) for each in watches]
        suspected = [min(each, SHARE) for each in sums if each >= SUSPECT]
        if len(suspected) >= JOB_TYPES and sum(suspected) >= JOB_TYPES * SHARE:
            return name
    return ""


def _listed(runs: Sequence[Run]) -> list[Any]:
    return [[log_s, list(given), list(beside)] for log_s, given, beside in runs]


def _read(rows: Sequence[Any]) -> list[Run]:
    return [(float(log_s), tuple(given), tuple(beside)) for log_s, given, beside in rows]
