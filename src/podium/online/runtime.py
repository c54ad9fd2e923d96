"""Learns how long each job type runs on each GPU type, alone and beside others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from podium.errors import UsageError
from podium.online.cell import OTHERS, JobRuns, Kind, Sums, kind_of
from podium.online.drift import Watch, changed
from podium.online.estimate import Estimate
from podium.online.noise import Noise
from podium.online.observation import (
    MOST_GPU_TYPES,
    MOST_JOB_TYPES,
    Observation,
    check_size,
    feature_vector,
    too_many,
)
from podium.online.parameters import Parameters
from podium.online.posterior import Posterior
from podium.online.residual import residual
from podium.online.spread import Spreads


class RuntimeModel:
    """The posterior of log run time: one Gaussian linear model over all runs.

    The state is nothing but sums, so that neither the order of observations nor their split into
    batches or replicas matters (unless they are forgotten). The posterior follows from them in
    closed form when it is next asked for.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._jobs: dict[str, int] = {}
        self._gpus: dict[str, int] = {}
        self._runs: list[JobRuns] = []  # by number of job type
        # Pairs, alone and beside others, in the order in which they were first seen.
        self._parts: dict[tuple[str, str, bool], None] = {}
        self._posterior = Posterior(parameters)
        self.observations = 0  # that count, alone and beside others
        self.changes = 0  # of pairs and GPU types that were noticed

    @property
    def job_types(self) -> Sequence[str]:
        """Lists the job types that were observed."""
        return list(self._jobs)

    @property
    def gpu_types(self) -> Sequence[str]:
        """Lists the GPU types that were observed."""
        return list(self._gpus)

    @property
    def neighbours(self) -> set[str]:
        """Lists the job types that others ran beside."""
        found = {name for runs in self._runs for name in (*runs.neighbours, *runs.others)}
        return found - {OTHERS}

    @property
    def spreads(self) -> Spreads:
        """Returns how far job types, GPU types and pairs differ, as far as it is known."""
        return self._posterior.spreads

    @property
    def usual(self) -> dict[str, float]:
        """Returns from where features are measured, of ln(1 + value)."""
        names = self._parameters.features
        return {names[at]: value for at, value in self._posterior.usual.items()}

    def counts(self) -> Iterator[tuple[str, str, int]]:
        """Counts the runs of each pair."""
        names = list(self._gpus)
        for job_type, job in self._jobs.items():
            for gpu, cell in self._runs[job].cells.items():
                yield job_type, names[gpu], cell.observations

    def ran_on(self, job_type: str) -> list[str]:
        """Lists the GPU types where a job type was seen."""
        names = list(self._gpus)
        return [names[gpu] for gpu in self._known(job_type).cells]

    def noise(self, job_type: str) -> Noise:
        """Estimates how much the log run time of a job type varies on one GPU type."""
        return self._posterior.noise(self._jobs.get(job_type))

    def job_spread(self, job_type: str) -> float:
        """Returns the spread that a job type is taken from, which is wider for an odd one."""
        return self._posterior.job_spread(self._jobs.get(job_type))

    def check(self, observation: Observation) -> None:
        """Raises what learning from a run would raise, and learns nothing."""
        feature_vector(self._parameters.features, observation.features)
        job_type, gpu_type = observation.job_type, observation.gpu_type
        if job_type not in self._jobs and len(self._jobs) >= MOST_JOB_TYPES:
            raise too_many(MOST_JOB_TYPES, "job types", "job_type")
        if gpu_type not in self._gpus and len(self._gpus) >= MOST_GPU_TYPES:
            raise too_many(MOST_GPU_TYPES, "GPU types", "gpu_type")

    def knows(self, observation: Observation) -> bool:
        """Tests whether a run has no name that is new here, of those that are limited."""
        return observation.job_type in self._jobs and observation.gpu_type in self._gpus

    def observe(self, observation: Observation) -> None:
        """Learns from a run that succeeded."""
        self.check(observation)
        row = feature_vector(self._parameters.features, observation.features)
        beside = observation.colocated_job_types
        runs = self._part(observation.job_type, observation.gpu_type, is_beside=bool(beside))
        if self._parameters.forgetting < 1.0:
            runs.fade(self._parameters.forgetting)
        gpu = self._gpus[observation.gpu_type]
        run = math.log(observation.runtime_s), row, beside
        kind = kind_of(run[0], row, is_beside=bool(beside))
        score = residual(runs, gpu, run, kind, self._parameters.prior)
        runs.add(gpu, run, kind)
        self._update(observation.job_type, kind.given)
        self.observations += 1
        if score is not None and runs.watch(gpu, run, score).is_suspect:
            self._look_for_change(observation.job_type, gpu)
        self._posterior.count(self.observations)

    def merge(self, other: RuntimeModel) -> None:
        """Adds everything that another model has seen."""
        if self._parameters.forgetting < 1.0:
            raise UsageError(
                "models with forgetting cannot be merged",
                where="online.forgetting",
                hint="replay the observations of both in chronological order",
            )
        for job, gpu, is_beside in other._parts:
            self._copy(other, job, gpu, is_beside=is_beside)
        self._posterior.learn_common(self.observations)

    def without(self, job_types: frozenset[str], gpu_types: frozenset[str]) -> RuntimeModel:
        """Returns the model that never saw some job types and GPU types.

        Runs of a job type on a GPU type where one of them was beside a job type that goes are gone
        too: sums do not tell which those were. Types are numbered in the order in which they were
        first seen otherwise, for sums taken in another order differ in the last bit. Where runs
        are forgotten, others have faded through those that go, and stay faded.
        """
        made = RuntimeModel(self._parameters)
        for job, gpu, is_beside in self._parts:
            if job in job_types or gpu in gpu_types:
                continue
            runs = self._runs[self._jobs[job]]
            if is_beside and runs.met_any(self._gpus[gpu], job_types):
                continue
            made._copy(self, job, gpu, is_beside=is_beside)
        for runs in made._runs:
            for name in job_types.intersection(runs.others):
                del runs.others[name]
        made._posterior.learn_common(made.observations)
        return made

    def estimates(
        self,
        job_type: str,
        gpu_types: Sequence[str],
        features: Mapping[str, float],
        beside: Sequence[str] = (),
    ) -> list[Estimate]:
        """Estimates the run time of a job on each GPU type."""
        row = feature_vector(self._parameters.features, features)
        job = self._jobs.get(job_type)
        gpus = [self._gpus.get(name) for name in gpu_types]
        cells = {} if job is None else self._runs[job].cells
        known = self._posterior.predict(job, gpus, row, beside)
        found = []
        for gpu, predicted in zip(gpus, known, strict=True):
            cell = None if gpu is None else cells.get(gpu)
            found.append(Estimate.of(predicted, 0 if cell is None else cell.observations))
        return found

    def used(self, features: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
        """Returns those features that some run has given: only they tell anything."""
        found, given = [], self._posterior.given
        for at, name in enumerate(self._parameters.features if features else ()):
            value = features.get(name)
            if value is not None:
                check_size(name, value)
                if given >> at & 1:
                    found.append((name, value))
        return tuple(found)

    def slowdowns(self, job_type: str) -> dict[str, tuple[float, float]]:
        """Predicts mean and variance of what each neighbour adds to the log run time, anywhere."""
        job = self._jobs.get(job_type)
        return {} if job is None else self._posterior.slowdowns(job)

    def slowdown(self, job_type: str, neighbour: str) -> tuple[float, float]:
        """Predicts the same of one neighbour that the job type has met."""
        return self._posterior.slowdown(self._jobs[job_type], neighbour)

    def victims(self, job_type: str) -> list[str]:
        """Lists the job types that ran beside a job type."""
        if not self._posterior.may_disturb(job_type):  # mostly, and there may be many job types
            return []
        return [name for name, job in self._jobs.items() if job_type in self._runs[job].neighbours]

    def as_object(self) -> dict[str, Any]:
        """Returns the state as JSON types: what was seen, by job type and GPU type.

        The order of pairs is part of it: sums taken in another order differ in the last bit.
        """
        runs = {job: self._runs[number].as_object() for job, number in self._jobs.items()}
        order = [
            [self._jobs[job], self._gpus[gpu], int(is_beside)]
            for job, gpu, is_beside in self._parts
        ]
        return {
            "gpu_types": list(self._gpus),
            "runs": runs,
            "order": order,
            "common": self._posterior.as_object(),
            "changes": self.changes,
        }

    @classmethod
    def from_object(cls, parameters: Parameters, data: Mapping[str, Any]) -> RuntimeModel:
        """Reads a state back."""
        model = cls(parameters)
        gpus, jobs = list(data["gpu_types"]), list(data["runs"])
        model._gpus = {name: number for number, name in enumerate(gpus)}
        model._jobs = {name: number for number, name in enumerate(jobs)}
        size = len(parameters.features)
        _check_features(data, size)
        model._runs = [JobRuns.from_object(size, each) for each in data["runs"].values()]
        model._parts = {
            (jobs[job], gpus[gpu], bool(is_beside)): None for job, gpu, is_beside in data["order"]
        }
        for job in jobs:
            model._update(job, model._given(job))
        model.observations = sum(
            cell.observations for runs in model._runs for cell in runs.cells.values()
        )
        model.changes = int(data["changes"])
        if data["common"]:
            model._posterior.restore(data["common"])
        else:
            model._posterior.learn_common(model.observations)
        return model

    def put(
        self, job_type: str, gpu_type: str, kind: Kind, sums: Sums, neighbours: Sequence[str] = ()
    ) -> None:
        """Adds sums of one kind of runs."""
        runs = self._part(job_type, gpu_type, is_beside=kind.is_beside)
        runs.put(self._gpus[gpu_type], kind, sums, neighbours)
        self.observations += sums.observations
        self._update(job_type, kind.given)

    def _look_for_change(self, job_type: str, gpu: int) -> None:
        """Forgets what a GPU type or a pair was like, if it is no longer."""
        suspicions = {job: each.suspicion(gpu) for job, each in enumerate(self._runs)}
        own = self._jobs[job_type]
        watch = suspicions[own]
        jobs = [job for job, runs in enumerate(self._runs) if gpu in runs.cells]
        how = changed([each for each in suspicions.values() if each is not None])
        if not how and watch is not None and watch.change:
            how, jobs = watch.change, [own]
        if not how:
            return
        names = self.job_types
        for job in jobs:
            before = self._runs[job].cells[gpu].observations
            self._runs[job].begin_anew(gpu, is_longer=how == "longer")
            self.observations += self._runs[job].cells[gpu].observations - before
            self._update(names[job], 0)
        self.changes += 1

    def _copy(self, other: RuntimeModel, job: str, gpu: str, *, is_beside: bool) -> None:
        runs = other._runs[other._jobs[job]]
        for kind, sums, met in runs.parts(other._gpus[gpu], is_beside=is_beside):
            self.put(job, gpu, kind, sums, met)
        if is_beside:
            self._runs[self._jobs[job]].know_others(runs.others)
        watch = runs.watches.get((other._gpus[gpu], is_beside))
        if watch is not None:
            own, key = self._runs[self._jobs[job]].watches, (self._gpus[gpu], is_beside)
            # In which order the runs of both came is not known.
            own[key] = Watch() if key in own else deepcopy(watch)

    def _known(self, job_type: str) -> JobRuns:
        job = self._jobs.get(job_type)
        return JobRuns(len(self._parameters.features)) if job is None else self._runs[job]

    def _given(self, job_type: str) -> int:
        given = 0
        for cell in self._known(job_type).cells.values():
            for kind, _ in cell.kinds():
                given |= kind.given
        return given

    def _part(self, job_type: str, gpu_type: str, *, is_beside: bool) -> JobRuns:
        self._gpus.setdefault(gpu_type, len(self._gpus))
        job = self._jobs.setdefault(job_type, len(self._jobs))
        if job == len(self._runs):
            self._runs.append(JobRuns(len(self._parameters.features)))
        self._parts[job_type, gpu_type, is_beside] = None
        return self._runs[job]

    def _update(self, job_type: str, given: int) -> None:
        self._posterior.update(self._runs, self._jobs[job_type], len(self._gpus), given)


def _check_features(data: Mapping[str, Any], features: int) -> None:
    for job_type, runs in data["runs"].items():
        for rows in runs["cells"].values():
            for _, is_beside, _, _, _, mean, _ in rows:
                found = len(mean) - 1 - (len(runs["neighbours"]) if is_beside else 0)
                if found != features:
                    raise UsageError(
                        f"the saved state has {found} features, the settings have {features}",
                        where=job_type,
                        hint="restore online.features, or learn from the observations again",
                    )
