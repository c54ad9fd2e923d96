"""Remembers decisions whose runs are not over, so that not all jobs try one pair at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

MOST = 100_000
"""Jobs in flight; beyond, the oldest are forgotten."""

_NONE: Mapping[str, int] = {}


class InFlight:
    """Jobs that were decided and not observed yet, by job type and GPU type."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._jobs: dict[str, tuple[float, str, str]] = {}  # in the order of decisions
        self._counts: dict[str, Counter[str]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def begin(self, job_id: str, job_type: str, gpu_type: str, now_s: float) -> None:
        """Notes a decision; a later one on the same job replaces it."""
        self.end(job_id)
        self._jobs[job_id] = now_s, job_type, gpu_type
        self._counts.setdefault(job_type, Counter())[gpu_type] += 1
        if len(self._jobs) > MOST:
            self.end(next(iter(self._jobs)))

    def end(self, job_id: str) -> None:
        """Forgets a job that is over, or that was never known."""
        found = self._jobs.pop(job_id, None)
        if found is None:
            return
        _, job_type, gpu_type = found
        counts = self._counts[job_type]
        counts[gpu_type] -= 1
        if not counts[gpu_type]:
            del counts[gpu_type]
        if not counts:
            del self._counts[job_type]

    def expire(self, now_s: float) -> None:
        """Forgets jobs of which nothing was heard for too long."""
        while self._jobs:
            job_id, (begun_s, _, _) = next(iter(self._jobs.items()))
            if now_s - begun_s <= self._limit_s:
                return
            self.end(job_id)

    def of(self, job_type: str) -> Mapping[str, int]:
        """Counts the jobs of a type by GPU type."""
        return self._counts.get(job_type, _NONE)
