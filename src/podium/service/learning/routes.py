"""Answers the routes of online learning: score, observe, assign and forget."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from starlette.types import Scope

from podium.errors import UsageError
from podium.online import Request, assign_costs
from podium.service.learning.learner import observation_of
from podium.service.http.outline import too_long
from podium.service.components import Parts
from podium.service.http.problem import Field, Problem
from podium.service.learning.requests import (
    LONGEST_NAME,
    MOST_COLUMNS,
    CostsRequest,
    ForgetRequest,
    Job,
    JobsRequest,
    ObserveRequest,
    ScoreRequest,
)
from podium.store import ObservationRecord, ReusedName

Work = Callable[[], Mapping[str, Any]]


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
            key=_key(scope),
            job_id=body.job_id or None,
        )
        self._check(record)
        try:
            return await (self._kept(record) if body.success else self._left_out(record))
        except ReusedName as error:
            fields = [Field(error.where, error.message)]
            raise Problem(409, error.message, hint=error.hint, fields=fields) from error

    async def _kept(self, record: ObservationRecord) -> Mapping[str, Any]:
        started = time.perf_counter()
        if self._parts.learner.agent.knows(observation_of(record)):
            (kept,) = await self._parts.memory.keep([record])
        else:
            kept = await self._parts.memory.keep_new(record, lambda: self._check(record))
        waited_s = time.perf_counter() - started
        self._parts.metrics.committing.observe(waited_s)
        if not kept.is_repeat:
            self._parts.metrics.observed(record.job_type, record.gpu_type)
        await self._parts.memory.learn(kept.id, waited_s)
        return self._known(record, is_updated=not kept.is_repeat, is_repeated=kept.is_repeat)

    async def _left_out(self, record: ObservationRecord) -> Mapping[str, Any]:
        if record.key is not None or record.job_id is not None:
            await self._parts.memory.check_unused(record)
        return self._known(record, is_updated=False)

    async def forget(self, body: ForgetRequest, _scope: Scope) -> Mapping[str, Any]:
        """Forgets job types and GPU types that nobody uses, as though they had never been."""
        self._parts.phase.check()
        self._bound("job_types", body.job_types)
        self._bound("gpu_types", body.gpu_types)
        memory = self._parts.memory
        jobs, gpus = await memory.names(body.job_types, body.gpu_types)
        found = {
            "job_types": [name for name in dict.fromkeys(body.job_types) if name in jobs],
            "gpu_types": [name for name in dict.fromkeys(body.gpu_types) if name in gpus],
        }
        records = [self._marker(job_type=name) for name in found["job_types"]]
        records += [self._marker(gpu_type=name) for name in found["gpu_types"]]
        if records:
            kept = await memory.keep(records)
            await memory.learn(kept[-1].id)
            self._parts.log.info("forgotten", **found)
        return {"status": "ok", "forgotten": found}

    def _marker(self, *, job_type: str = "", gpu_type: str = "") -> ObservationRecord:
        return ObservationRecord(
            job_type,
            gpu_type,
            runtime_s=0.0,
            recorded_s=time.time(),
            source=self._source,
            forgets="job_type" if job_type else "gpu_type",
        )

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
            hint = f"{error.hint}; POST /v1/forget frees names that nobody uses"
            raise Problem(409, error.message, hint=hint, fields=fields) from error

    def _known(
        self, record: ObservationRecord, *, is_updated: bool, is_repeated: bool = False
    ) -> Mapping[str, Any]:
        agent = self._parts.learner.agent
        request = Request(record.job_type, (record.gpu_type,), record.features)
        (pair,) = agent.candidates(request)
        return {
            "status": "ok",
            "updated": is_updated,
            "repeated": is_repeated,
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
            raise too_long(name, len(entries), limit)


def _key(scope: Scope) -> str | None:
    given = next((value for name, value in scope["headers"] if name == b"idempotency-key"), b"")
    if len(given) > LONGEST_NAME:
        raise _invalid("Idempotency-Key", "the key is too long", f"at most {LONGEST_NAME} bytes")
    return given.decode("latin-1") or None


def _mismatch(name: str, found: int, wanted: int) -> Problem:
    problem = f"{found} entries stand against {wanted} capacities"
    return _invalid(name, problem, "give one capacity for each column")


def _invalid(name: str, message: str, hint: str) -> Problem:
    return Problem(422, message, hint=hint, fields=[Field(name, message)])
