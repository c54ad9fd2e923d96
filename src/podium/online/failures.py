"""Learns how often runs fail, and how much time that costs.

The chance of failure of a pair is beta-binomial: before its own runs it is what its job type shows
on other GPU types and its GPU type with other job types. Where nothing ever failed it is zero.

What broke may be mended: once a pair that failed more often than not succeeds so often in a row
that luck can hardly explain it, its failures are forgiven.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from podium.online.observation import (
    MOST_GPU_TYPES,
    MOST_JOB_TYPES,
    Observation,
    too_many,
)

_OF_ALL, _OF_GPU, _OF_JOB, _OF_PAIR = 20.0, 20.0, 10.0, 2.0
"""Runs that are worth what is expected beforehand: of all, of a GPU type, a job type, a pair."""

_MOST = 0.95
FEWEST = 3
"""Failures from which a pair may be one that fails."""

MENDED = 0.01
"""Probability of luck below which successes in a row show that a pair is mended."""


@dataclass(slots=True)
class Outcomes:
    """Runs of a pair, how many of them failed, and the time that those took."""

    runs: int = 0  # without those that were forgiven
    failures: int = 0
    lost_s: float = 0.0
    # Successes since the last failure and since the first. Those beside other job types are left
    # out, for these may be forgotten one day.
    streak: int = 0
    worked: int = 0
    forgiven: int = 0

    @property
    def is_mended(self) -> bool:
        """Tests whether luck can hardly explain that a pair which mostly failed succeeds."""
        before = self.failures + self.worked - self.streak
        if self.failures < FEWEST or 2 * self.failures <= before:
            return False
        return (1.0 - self.failures / (before + 1.0)) ** self.streak < MENDED

    def add(self, other: Outcomes) -> None:
        """Adds other outcomes."""
        self.runs += other.runs
        self.failures += other.failures
        self.lost_s += other.lost_s
        self.worked += other.worked
        self.forgiven += other.forgiven
        self.streak = other.streak if other.failures else self.streak


@dataclass(frozen=True, slots=True)
class Risk:
    """What may go wrong with a pair."""

    failures: int = 0
    chance: float = 0.0  # of failure
    lost_s: float | None = None  # by a failure, where there was one
    has_recovered: bool = False  # the last run succeeded

    @property
    def is_failing(self) -> bool:
        """Returns whether a run fails more often than not, as far as is known."""
        return self.failures >= FEWEST and self.chance > 0.5 and not self.has_recovered

    def expected_s(self, runtime_s: float) -> float:
        """Returns the time that failures are expected to cost until a run succeeds."""
        lost_s = runtime_s if self.lost_s is None else self.lost_s
        return lost_s * self.chance / (1.0 - self.chance)


NO_RISK = Risk()


class Failures:
    """Counts runs that succeeded and runs that failed."""

    def __init__(self) -> None:
        self._pairs: dict[str, dict[str, Outcomes]] = {}
        self._jobs: dict[str, Outcomes] = {}
        self._gpus: dict[str, Outcomes] = {}
        self._all = Outcomes()

    @property
    def total(self) -> int:
        """Counts the runs that failed, forgiven or not."""
        return self._all.failures + self._all.forgiven

    @property
    def job_types(self) -> list[str]:
        """Lists the job types that were seen, whether they failed or not."""
        return list(self._jobs)

    @property
    def gpu_types(self) -> list[str]:
        """Lists the GPU types that were seen."""
        return list(self._gpus)

    def check(self, observation: Observation) -> None:
        """Raises what counting a run would raise."""
        if len(self._jobs) >= MOST_JOB_TYPES and observation.job_type not in self._jobs:
            raise too_many(MOST_JOB_TYPES, "job types", "job_type")
        if len(self._gpus) >= MOST_GPU_TYPES and observation.gpu_type not in self._gpus:
            raise too_many(MOST_GPU_TYPES, "GPU types", "gpu_type")

    def knows(self, observation: Observation) -> bool:
        """Tests whether a run has no name that is new here."""
        return observation.job_type in self._jobs and observation.gpu_type in self._gpus

    def observe(self, observation: Observation) -> None:
        """Counts a run."""
        is_failure = not observation.success
        lost_s = observation.runtime_s if is_failure else 0.0
        made = Outcomes(1, int(is_failure), lost_s)
        self._add(observation.job_type, observation.gpu_type, made)
        pair = self._pairs[observation.job_type][observation.gpu_type]
        if pair.failures and not is_failure and not observation.colocated_job_types:
            pair.streak += 1
            pair.worked += 1
            if pair.is_mended:
                count = pair.failures
                forgiven = Outcomes(-count, -count, -pair.lost_s, 0, -pair.worked, count)
                self._add(observation.job_type, observation.gpu_type, forgiven)

    def put(self, job_type: str, gpu_type: str, runs: int) -> None:
        """Counts runs that succeeded."""
        self._add(job_type, gpu_type, Outcomes(runs))

    def risk(self, job_type: str, gpu_type: str) -> Risk:
        """Tells what may go wrong."""
        if not self._all.failures:
            return NO_RISK
        none = Outcomes()
        pair = self._pairs.get(job_type, {}).get(gpu_type, none)
        of_all = self._all.failures / (self._all.runs + _OF_ALL)
        of_job = _rate(self._jobs.get(job_type, none), pair, of_all, _OF_JOB)
        of_gpu = _rate(self._gpus.get(gpu_type, none), pair, of_all, _OF_GPU)
        expected = min(of_job * of_gpu / of_all, _MOST)
        chance = (_OF_PAIR * expected + pair.failures) / (_OF_PAIR + pair.runs)
        lost_s = pair.lost_s / pair.failures if pair.failures else None
        return Risk(pair.failures, min(chance, _MOST), lost_s, pair.streak > 0)

    def merge(self, other: Failures) -> None:
        """Adds what another has counted."""
        for job_type, row in other._pairs.items():
            for gpu_type, outcomes in row.items():
                self._add(job_type, gpu_type, outcomes)

    def without(self, job_types: Collection[str], gpu_types: Collection[str]) -> Failures:
        """Returns the failures without some job types and GPU types; what succeeded is put anew."""
        made = Failures()
        for job_type, row in self._pairs.items():
            for gpu_type, each in row.items():
                is_kept = job_type not in job_types and gpu_type not in gpu_types
                if is_kept and each.failures + each.forgiven:
                    made._add(job_type, gpu_type, replace(each, runs=each.failures))
        return made

    def as_object(self) -> dict[str, Any]:
        """Returns the counts as JSON types."""
        return {
            job_type: {
                gpu_type: [
                    each.runs,
                    each.failures,
                    each.lost_s,
                    each.streak,
                    each.worked,
                    each.forgiven,
                ]
                for gpu_type, each in row.items()
            }
            for job_type, row in self._pairs.items()
        }

    @classmethod
    def from_object(cls, data: Mapping[str, Any]) -> Failures:
        """Reads counts back."""
        made = cls()
        for job_type, row in data.items():
            for gpu_type, (runs, failures, lost_s, *others) in row.items():
                streak, worked, forgiven = map(int, others)
                ended = int(runs), int(failures), float(lost_s)
                made._add(job_type, gpu_type, Outcomes(*ended, streak, worked, forgiven))
        return made

    def _add(self, job_type: str, gpu_type: str, made: Outcomes) -> None:
        row = self._pairs.setdefault(job_type, {})
        if gpu_type not in row:
            row[gpu_type] = Outcomes()
            self._jobs.setdefault(job_type, Outcomes())
            self._gpus.setdefault(gpu_type, Outcomes())
        for each in (row[gpu_type], self._jobs[job_type], self._gpus[gpu_type], self._all):
            each.add(made)


def _rate(whole: Outcomes, own: Outcomes, expected: float, weight: float) -> float:
    """Returns the rate of failure outside a pair."""
    runs, failures = whole.runs - own.runs, whole.failures - own.failures
    return (weight * expected + failures) / (weight + runs)
