"""Learns how much longer a job type runs beside another one.

For a run of job type j on GPU type g beside the job types c:

    y = solo[j, g] + Σ slow[j, c] + noise

where solo[j, g] is known from runs without neighbours only, and slow[j, c] is Gaussian around no
slowdown. Slowdowns of several neighbours multiply. A pair is learned in each direction apart, as a
large job may disturb a small one and not the other way round; to avoid a pair, one direction is
enough. Runs on a GPU type where the job type was never seen alone wait, unused, until it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from podium.online.cell import Cell
from podium.online.co_runs import CoRuns
from podium.online.evidence import FADED
from podium.online.observation import MOST_GPU_TYPES, MOST_JOB_TYPES, Observation, too_many

MOST_NEIGHBOURS = 64
"""Job types that one job type is compared with."""


class Interference:
    """What was seen of job types that ran beside others."""

    def __init__(self, spread: float) -> None:
        self._spread = spread
        self._co_runs: dict[str, CoRuns] = {}
        self._slowdowns: dict[str, dict[str, float]] = {}  # log, by job type and neighbour
        self._disturbed: dict[str, set[str]] = {}  # job types seen beside a neighbour

    def check(self, observation: Observation) -> None:
        """Raises what taking a run with neighbours would raise."""
        job_type = observation.job_type
        co_runs = self._co_runs.get(job_type, CoRuns())
        beside = {*co_runs.neighbours, *observation.colocated_job_types}
        gpu_types = {*co_runs.runs, observation.gpu_type}
        if len(self._co_runs) + (job_type not in self._co_runs) > MOST_JOB_TYPES:
            raise too_many(MOST_JOB_TYPES, "job types that ran beside others", "job_type")
        if len(gpu_types) > MOST_GPU_TYPES:
            raise too_many(MOST_GPU_TYPES, f"GPU types of {job_type}", "gpu_type")
        if len(beside) > MOST_NEIGHBOURS:
            raise too_many(MOST_NEIGHBOURS, f"job types beside {job_type}", "colocated_job_types")

    def knows(self, observation: Observation) -> bool:
        """Tests whether a run with neighbours has no name that is new to its job type."""
        co_runs = self._co_runs.get(observation.job_type, CoRuns())
        beside = set(observation.colocated_job_types)
        return observation.gpu_type in co_runs.runs and beside <= set(co_runs.neighbours)

    def observe(self, observation: Observation, forgetting: float) -> None:
        """Adds a run with neighbours."""
        self.check(observation)
        co_runs = self._co_runs.setdefault(observation.job_type, CoRuns())
        co_runs.fade(forgetting)
        co_runs.add(
            observation.gpu_type,
            math.log(observation.runtime_s),
            Counter(observation.colocated_job_types),
        )
        self._note(observation.job_type)

    def merge(self, other: Interference) -> None:
        """Adds all runs with neighbours that another model has seen."""
        for job_type, co_runs in other._co_runs.items():
            self._co_runs.setdefault(job_type, CoRuns()).merge(co_runs)
            self._note(job_type)

    def without(self, job_types: frozenset[str], gpu_types: frozenset[str]) -> Interference:
        """Returns what would be known had some job types and GPU types never been there.

        Slowdowns follow when they are learned again.
        """
        made = Interference(self._spread)
        for name, co_runs in self._co_runs.items():
            if name in job_types:
                continue
            left = co_runs
            for gpu_type in gpu_types.intersection(co_runs.runs):
                left = left.without_gpu_type(gpu_type)
            for job_type in job_types.intersection(co_runs.neighbours):
                left = left.without_neighbour(job_type)
            if left.runs:
                made._co_runs[name] = left
                made._note(name)
        return made

    @property
    def job_types(self) -> set[str]:
        """Lists the job types that were seen beside others, or that others were beside."""
        beside = (name for co_runs in self._co_runs.values() for name in co_runs.neighbours)
        return {*self._co_runs, *beside}

    @property
    def gpu_types(self) -> set[str]:
        """Lists the GPU types where some ran beside others."""
        return {name for co_runs in self._co_runs.values() for name in co_runs.runs}

    @property
    def observations(self) -> int:
        """Counts the runs that weigh something."""
        runs = (each for co_runs in self._co_runs.values() for each in co_runs.runs.values())
        return round(sum(each.weight for each in runs))

    def learn(self, job_type: str, solo: Mapping[str, Cell], noise_variance: float) -> None:
        """Estimates the slowdowns of a job type afresh, against its runs alone."""
        co_runs = self._co_runs.get(job_type)
        if co_runs is None:
            return
        count = len(co_runs.neighbours)
        precision = np.eye(count) * self._spread**-2
        shift = np.zeros(count)
        for gpu_type, cell in solo.items():
            runs = co_runs.runs.get(gpu_type)
            if runs is None or cell.weight <= FADED:
                continue
            # The solo mean is uncertain too; integrating it out ties all runs on this GPU type.
            excess = runs.excess(float(cell.mean[0]))
            tie = 1.0 / (runs.weight + cell.weight)
            precision += (runs.pairs - np.outer(runs.counts, runs.counts) * tie) / noise_variance
            total = runs.total - runs.weight * float(cell.mean[0])
            shift += (excess - runs.counts * (total * tie)) / noise_variance
        found = np.linalg.solve(precision, shift).tolist() if count else []
        self._slowdowns[job_type] = dict(zip(co_runs.neighbours, found, strict=True))

    def slowdown(self, job_type: str, colocated: tuple[str, ...]) -> float:
        """Returns the expected slowdown beside these job types; 0.5: half as long again."""
        known = self._slowdowns.get(job_type)
        if not known or not colocated:
            return 0.0
        return max(math.expm1(sum(known.get(name, 0.0) for name in colocated)), 0.0)

    def avoided(self, job_type: str, threshold: float) -> list[str]:
        """Lists job types that slow this one down by more than the threshold, or that it slows."""
        least = math.log1p(threshold)
        own = self._slowdowns.get(job_type, {})
        found = {name for name, value in own.items() if value > least}
        for name in self._disturbed.get(job_type, ()):
            if self._slowdowns.get(name, {}).get(job_type, 0.0) > least:
                found.add(name)
        return sorted(found)

    def as_object(self) -> dict[str, Any]:
        """Returns the state as JSON types."""
        return {name: co_runs.as_object() for name, co_runs in self._co_runs.items()}

    @classmethod
    def from_object(cls, spread: float, data: Mapping[str, Any]) -> Interference:
        """Reads a state back; slowdowns follow when they are learned again."""
        made = cls(spread)
        for job_type, co_runs in data.items():
            made._co_runs[job_type] = CoRuns.from_object(co_runs)
            made._note(job_type)
        return made

    def _note(self, job_type: str) -> None:
        for name in self._co_runs[job_type].neighbours:
            self._disturbed.setdefault(name, set()).add(job_type)
