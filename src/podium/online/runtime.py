"""Learns how long each job type runs on each GPU type when it runs alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from podium.errors import UsageError
from podium.online.cell import Cell
from podium.online.estimate import Estimate
from podium.online.observation import (
    MOST_GPU_TYPES,
    MOST_JOB_TYPES,
    Observation,
    feature_vector,
    too_many,
)
from podium.online.parameters import Parameters
from podium.online.posterior import Posterior


class RuntimeModel:
    """The posterior of log run time: one Gaussian linear model over all pairs.

    The state is nothing but the sums in its cells, so that neither the order of observations nor
    their split into batches or replicas matters (unless they are forgotten). The posterior follows
    from them in closed form when it is next asked for.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._jobs: dict[str, int] = {}
        self._gpus: dict[str, int] = {}
        self._cells: list[dict[int, Cell]] = []  # by number of job type, then of GPU type
        self._pairs: dict[tuple[str, str], None] = {}  # in the order in which they were first seen
        self._posterior = Posterior(parameters)

    @property
    def job_types(self) -> Sequence[str]:
        """Lists the job types that were observed."""
        return list(self._jobs)

    @property
    def gpu_types(self) -> Sequence[str]:
        """Lists the GPU types that were observed."""
        return list(self._gpus)

    @property
    def observations(self) -> int:
        """Counts the runs that it has seen."""
        return sum(cell.observations for cells in self._cells for cell in cells.values())

    @property
    def pair_spread(self) -> float:
        """Estimates how far job types differ in which GPU types suit them."""
        return self._posterior.pair_spread

    def cells(self, job_type: str) -> dict[str, Cell]:
        """Returns what was seen of a job type, by GPU type."""
        if job_type not in self._jobs:
            return {}
        names = list(self._gpus)
        return {names[gpu]: cell for gpu, cell in self._cells[self._jobs[job_type]].items()}

    def noise_variance(self, job_type: str) -> float:
        """Estimates the variance of a job type's log run time on one GPU type."""
        return self._posterior.noise_variance(self._jobs.get(job_type))

    def check(self, observation: Observation) -> None:
        """Raises what learning from a run would raise, and learns nothing."""
        feature_vector(self._parameters.features, observation.features)
        self._check_names(observation.job_type, observation.gpu_type)

    def knows(self, observation: Observation) -> bool:
        """Tests whether a run has no name that is new here."""
        return observation.job_type in self._jobs and observation.gpu_type in self._gpus

    def observe(self, observation: Observation) -> None:
        """Learns from a run without neighbours."""
        row = feature_vector(self._parameters.features, observation.features)
        cell = self._cell(observation.job_type, observation.gpu_type)
        if self._parameters.forgetting < 1.0:
            for each in self._cells[self._jobs[observation.job_type]].values():
                each.fade(self._parameters.forgetting)
        cell.add(math.log(observation.runtime_s), row)
        self._update(observation.job_type)

    def merge(self, other: RuntimeModel) -> None:
        """Adds everything that another model has seen."""
        if self._parameters.forgetting < 1.0:
            raise UsageError(
                "models with forgetting cannot be merged",
                where="online.forgetting",
                hint="replay the observations of both in chronological order",
            )
        for job_type in other.job_types:
            for gpu_type, cell in other.cells(job_type).items():
                self._cell(job_type, gpu_type).merge(cell)
            self._update(job_type)

    def without(self, job_types: frozenset[str], gpu_types: frozenset[str]) -> RuntimeModel:
        """Returns the model that never saw some job types and GPU types.

        Types are numbered in the order in which they were first seen otherwise, for sums taken in
        another order differ in the last bit. Where runs are forgotten, others have faded through
        those that go, and stay faded.
        """
        made = RuntimeModel(self._parameters)
        for job, gpu in self._pairs:
            if job not in job_types and gpu not in gpu_types:
                made._put(job, gpu, self._cells[self._jobs[job]][self._gpus[gpu]])
        for job in made._jobs:
            made._update(job)
        return made

    def estimates(
        self, job_type: str, gpu_types: Sequence[str], features: Mapping[str, float]
    ) -> list[Estimate]:
        """Estimates the run time of a job on each GPU type."""
        row = feature_vector(self._parameters.features, features)
        job = self._jobs.get(job_type)
        gpus = [self._gpus.get(name) for name in gpu_types]
        cells = {} if job is None else self._cells[job]
        noise = self._posterior.noise_variance(job)
        found = []
        for gpu, (mean, variance) in zip(
            gpus, self._posterior.predict(job, gpus, row), strict=True
        ):
            count = cells[gpu].observations if gpu is not None and gpu in cells else 0
            found.append(Estimate.of(mean, variance, noise, count))
        return found

    def as_object(self) -> dict[str, Any]:
        """Returns the state as JSON types: what was seen, by job type and GPU type.

        The order of pairs is part of it: sums taken in another order differ in the last bit.
        """
        cells = {
            job: {gpu: cell.as_object() for gpu, cell in self.cells(job).items()}
            for job in self._jobs
        }
        order = [(self._jobs[job], self._gpus[gpu]) for job, gpu in self._pairs]
        return {"gpu_types": list(self._gpus), "cells": cells, "order": list(map(list, order))}

    @classmethod
    def from_object(cls, parameters: Parameters, data: Mapping[str, Any]) -> RuntimeModel:
        """Reads a state back."""
        model = cls(parameters)
        model._gpus = {name: number for number, name in enumerate(data["gpu_types"])}
        cells = data["cells"]
        for job_type, gpu_type in _order(data):
            model._put(job_type, gpu_type, Cell.from_object(cells[job_type][gpu_type]))
        for job_type in cells:
            model._update(job_type)
        return model

    def _put(self, job_type: str, gpu_type: str, cell: Cell) -> None:
        features = len(self._parameters.features)
        if cell.given.size != features:
            raise UsageError(
                f"the saved state has {cell.given.size} features, the settings have {features}",
                where=f"{job_type} on {gpu_type}",
                hint="restore online.features, or learn from the observations again",
            )
        self._cell(job_type, gpu_type).merge(cell)

    def _check_names(self, job_type: str, gpu_type: str) -> None:
        if job_type not in self._jobs and len(self._jobs) >= MOST_JOB_TYPES:
            raise too_many(MOST_JOB_TYPES, "job types", "job_type")
        if gpu_type not in self._gpus and len(self._gpus) >= MOST_GPU_TYPES:
            raise too_many(MOST_GPU_TYPES, "GPU types", "gpu_type")

    def _cell(self, job_type: str, gpu_type: str) -> Cell:
        self._check_names(job_type, gpu_type)
        gpu = self._gpus.setdefault(gpu_type, len(self._gpus))
        job = self._jobs.setdefault(job_type, len(self._jobs))
        if job == len(self._cells):
            self._cells.append({})
        cells = self._cells[job]
        if gpu not in cells:
            cells[gpu] = Cell.empty(len(self._parameters.features))
            self._pairs[job_type, gpu_type] = None
        return cells[gpu]

    def _update(self, job_type: str) -> None:
        self._posterior.update(self._cells, self._jobs[job_type], len(self._gpus))


def _order(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Lists the pairs of a state; a state without an order is taken as it stands."""
    cells, gpus = data["cells"], data["gpu_types"]
    if "order" not in data:
        return [(job, gpu) for job, known in cells.items() for gpu in known]
    jobs = list(cells)
    return [(jobs[job], gpus[gpu]) for job, gpu in data["order"]]
