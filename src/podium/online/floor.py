"""Lets what was never tried be tried some day, for a small share of the time of all jobs.

A job type that goes against the trend, or a group of them, never tries where it would run fastest,
because everything known about others speaks against it. So a candidate that was never tried is
tried once the time that this is expected to cost is little beside that of all jobs so far. Short
jobs come first: what they show says something about the others.

Of long jobs, a try costs more than all others leave to spend. A job type that came when the trend
was known is judged by others alone: where it ran tells little about where it did not, if it does
not follow them, and each of its runs may take many times too long. So a newcomer pays for tries
itself, as long as all of them together cost little beside its own time.

The same counts tell how often a job type comes, and so how many runs will profit from what one of
them teaches.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

FEWEST = 8
"""Decisions after which a job type is taken to come again."""

MOST_TIMES = 10.0
"""Run times, as known elsewhere, that one try may be expected to take."""

OWN_TIMES = 40.0
"""How much larger a share of its own time a newcomer may pay for all of its tries."""

PART = 0.5
"""Part of what there is to spend that one try may cost."""

AGAIN = 64
"""Decisions of a job type after which a candidate that fails is tried again, at the earliest."""


class Floor:
    """What all jobs took, as far as is known, and what was paid for trying."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._expected_s = 0.0
        self._paid_s = 0.0
        self._decisions: dict[str, int] = {}  # by job type
        self._own_paid_s: dict[str, float] = {}  # by newcomers, for tries of their own
        self._since: dict[str, int] = {}  # decisions before the first one of a job type
        self._all = 0
        self._again: dict[str, int] = {}  # decisions of a job type when it last tried what fails

    def affords(self, job_type: str, expected_s: float, known_s: float) -> bool:
        """Tests whether all jobs may pay a try, given how long it takes where that is known."""
        left_s = self._share * self._expected_s - self._paid_s
        is_cheap = expected_s - known_s <= PART * left_s
        return is_cheap and self._may_try(job_type, expected_s, known_s)

    def pays_itself(self, job_type: str, expected_s: float, known_s: float) -> bool:
        """Tests whether a newcomer may pay one more try itself."""
        # Fewer runs will profit from it where the job type comes seldom.
        own_s = self._decisions.get(job_type, 0) * known_s * self.frequency(job_type)
        paid_s = self._own_paid_s.get(job_type, 0.0) + expected_s - known_s
        is_cheap = paid_s <= OWN_TIMES * self._share * own_s
        is_open = is_cheap and self._is_newcomer(job_type)
        return is_open and self._may_try(job_type, expected_s, known_s)

    def count_own(self, job_type: str, price_s: float) -> None:
        """Notes that a newcomer pays a try itself now."""
        self._own_paid_s[job_type] = self._own_paid_s.get(job_type, 0.0) + price_s

    def _is_newcomer(self, job_type: str) -> bool:
        # The others had come often enough to be known, without it.
        return self._since.get(job_type, 0) >= FEWEST * len(self._decisions)

    def _may_try(self, job_type: str, expected_s: float, known_s: float) -> bool:
        is_usual = self._decisions.get(job_type, 0) >= FEWEST
        return is_usual and expected_s <= MOST_TIMES * known_s

    def frequency(self, job_type: str) -> float:
        """Returns how often a job type comes since it first did, beside a usual one.

        It is 1 at most, or a half, a quarter and so on: it is not known any better, and what was
        weighed holds for a while.
        """
        own, types = self._decisions.get(job_type), len(self._decisions)
        if own is None:
            return 1.0
        found = (own + 1) * types / (self._all - self._since[job_type] + types)
        return 2.0 ** min(round(math.log2(found)), 0)

    def is_again(self, job_type: str, lost_s: float, known_s: float) -> bool:
        """Tests whether this is one of the rare decisions that try again what fails.

        They are the rarer the more time a failure costs beside a run elsewhere.
        """
        own = self._decisions.get(job_type, 0)
        since = own - self._again.setdefault(job_type, own)
        return since >= AGAIN * max(lost_s / known_s, 1.0)

    def count_again(self, job_type: str) -> None:
        """Notes that what fails is tried again now."""
        self._again[job_type] = self._decisions.get(job_type, 0)

    def count(self, job_type: str, expected_s: float, price_s: float = 0.0) -> None:
        """Counts a decision."""
        self._decisions[job_type] = self._decisions.get(job_type, 0) + 1
        self._since.setdefault(job_type, self._all)
        self._all += 1
        self._expected_s += expected_s
        self._paid_s += price_s

    def forget(self, job_types: frozenset[str]) -> None:
        """Forgets how often job types came."""
        for name in job_types.intersection(self._decisions):
            del self._decisions[name], self._since[name]
            self._again.pop(name, None)
            self._own_paid_s.pop(name, None)

    def as_object(self) -> dict[str, Any]:
        """Returns the counts as JSON types."""
        return {
            "expected_s": self._expected_s,
            "paid_s": self._paid_s,
            "own_paid_s": dict(self._own_paid_s),
            "decisions": dict(self._decisions),
            "since": dict(self._since),
            "all": self._all,
            "again": dict(self._again),
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Reads counts back."""
        self._expected_s = float(data["expected_s"])
        self._paid_s = float(data["paid_s"])
        self._own_paid_s = {name: float(paid_s) for name, paid_s in data["own_paid_s"].items()}
        self._decisions = {name: int(count) for name, count in data["decisions"].items()}
        self._since = {name: int(count) for name, count in data["since"].items()}
        self._again = {name: int(count) for name, count in data["again"].items()}
        self._all = int(data["all"])
