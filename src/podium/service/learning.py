"""Answers the routes of online learning: score, observe and assign."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from starlette.types import Scope

from podium.errors import UsageError
from podium.online import Request, assign_costs
from podium.service.learner import observation_of
from podium.service.parts import Parts
from podium.service.problem import Field, Problem
from podium.service.requests import (
    LONGEST_NAME,
    CostsRequest,
    Job,
    JobsRequest,
    ObserveRequest,
    ScoreRequest,
)
from podium.store import ObservationRecord

Work = Callable[[], Mapping[str, Any]]

MOST_COLUMNS = 64
"""Of one assignment; clusters have fewer GPU types."""


class Learning:
    """Answers checked requests with the agent's words."""

    def __init__(self, parts: Parts, source: str = "") -> None:
        self._parts = parts
        self._source = source
        self._most = parts.settings.serve.max_batch
        self._sizes = frozenset(parts.learner.agent.parameters.features)
        self._turn = asyncio.Lock()

    async def score(self, body: ScoreRequest, _scope: Scope) -> Mapping[str, Any]:
        """Decides where a job runs."""
        self._parts.phase.check()
        self._bound("candidate_gpu_types", body.candidate_gpu_types)
        self._bound("colocated_job_types", body.colocated_job_types)
        if not body.candidate_gpu_types:
            raise Problem(
                400,
                "there is no GPU type to choose from",
                hint="give at least one",
                fields=[Field("candidate_gpu_types", "the list is empty")],
            )
        request = Request(
            body.job_type,
            tuple(body.candidate_gpu_types),
            self._used(body.features),
            tuple(body.colocated_job_types),
        )
        started = time.perf_counter()
        answer = self._parts.learner.agent.score(request)
        metrics = self._parts.metrics
        metrics.scoring.observe(time.perf_counter() - started)
        metrics.decided(answer.chosen_gpu_type, answer.decision_type)
        told = answer.as_object()
        told["ignored_features"] = [name for name in body.features if name not in self._sizes]
        return told

    async def observe(self, body: ObserveRequest, scope: Scope) -> Mapping[str, Any]:
        """Keeps an observation for good, then learns from it."""
        self._parts.phase.check()
        self._bound("colocated_job_types", body.colocated_job_types)
        record = ObservationRecord(
            body.job_type,
            body.gpu_type,
            body.runtime_s,
            recorded_s=time.time(),
            colocated_job_types=tuple(body.colocated_job_types),
            features=self._used(body.features),
            source=self._source,
            key=_key(body, scope),
        )
        self._check(record)
        if body.success:
            started = time.perf_counter()
            id = await self._parts.memory.keep(record)
            self._parts.metrics.committing.observe(time.perf_counter() - started)
            self._parts.metrics.observed(body.job_type, body.gpu_type)
            await self._parts.memory.learn(id)
        return self._known(record, is_updated=body.success)

    async def assign(self, body: CostsRequest | JobsRequest, _scope: Scope) -> Mapping[str, Any]:
        """Assigns many jobs at once, within capacities."""
        self._parts.phase.check()
        self._bound("capacities", body.capacities, MOST_COLUMNS)
        work = self._by_jobs(body) if isinstance(body, JobsRequest) else self._by_costs(body)
        async with self._turn:  # one at a time, beside the loop that answers everybody
            return await asyncio.to_thread(work)

    def _by_costs(self, body: CostsRequest) -> Work:
        self._bound("costs", body.costs)
        width = len(body.capacities)
        for row, costs in enumerate(body.costs):
            if len(costs) != width:
                raise _mismatch(f"costs[{row}]", len(costs), width)
        table = np.array(body.costs, dtype=np.float64).reshape(len(body.costs), width)
        return lambda: assign_costs(table, body.capacities).as_object()

    def _by_jobs(self, body: JobsRequest) -> Work:
        self._bound("jobs", body.jobs)
        if len(body.gpu_types) != len(body.capacities):
            raise _mismatch("gpu_types", len(body.gpu_types), len(body.capacities))
        capacities = dict(zip(body.gpu_types, body.capacities, strict=True))
        if len(capacities) != len(body.gpu_types):
            raise _invalid("gpu_types", "a GPU type is named twice", "name each once")
        requests = [self._request(job, body.gpu_types) for job in body.jobs]
        return lambda: self._parts.learner.agent.assign(requests, capacities).as_object()

    def _request(self, job: Job, gpu_types: Sequence[str]) -> Request:
        self._bound("jobs.colocated_job_types", job.colocated_job_types)
        allowed = [name for name in job.candidate_gpu_types if name in gpu_types]
        if job.candidate_gpu_types and not allowed:
            raise _invalid(
                "jobs.candidate_gpu_types", "a job may use none of the GPU types", "name more"
            )
        return Request(
            job.job_type,
            tuple(allowed or gpu_types),
            self._used(job.features),
            tuple(job.colocated_job_types),
        )

    def _check(self, record: ObservationRecord) -> None:
        try:
            self._parts.learner.agent.check(observation_of(record))
        except UsageError as error:  # bodies are checked: it is what is known already that objects
            fields = [Field(error.where, error.message)]
            raise Problem(409, error.message, hint=error.hint, fields=fields) from error

    def _known(self, record: ObservationRecord, *, is_updated: bool) -> Mapping[str, Any]:
        agent = self._parts.learner.agent
        request = Request(record.job_type, (record.gpu_type,), record.features)
        (pair,) = agent.candidates(request)
        return {
            "status": "ok",
            "updated": is_updated,
            "new_uncertainty": pair.sigma,
            "observations": pair.observations,
        }

    def _used(self, features: Mapping[str, float | bool | str]) -> dict[str, float]:
        used: dict[str, float] = {}
        for name, value in features.items():
            if name not in self._sizes:
                continue
            if not isinstance(value, float):
                raise _invalid(f"features.{name}", "this is no number", "give a size of the job")
            used[name] = value
        return used

    def _bound(self, name: str, entries: Sequence[Any], most: int | None = None) -> None:
        limit = self._most if most is None else min(most, self._most)
        if len(entries) > limit:
            raise Problem(
                413,
                f"{name} has {len(entries):,} entries, more than {limit:,}",
                hint="send less at a time, or raise serve.max_batch",
                fields=[Field(name, "the list is too long")],
            )


def _key(body: ObserveRequest, scope: Scope) -> str | None:
    given = next((value for name, value in scope["headers"] if name == b"idempotency-key"), b"")
    if len(given) > LONGEST_NAME:
        raise _invalid("Idempotency-Key", "the key is too long", f"at most {LONGEST_NAME} bytes")
    return given.decode("latin-1") or body.job_id or None


def _mismatch(name: str, found: int, wanted: int) -> Problem:
    problem = f"{found} entries stand against {wanted} capacities"
    return _invalid(name, problem, "give one capacity for each column")


def _invalid(name: str, message: str, hint: str) -> Problem:
    return Problem(422, message, hint=hint, fields=[Field(name, message)])
