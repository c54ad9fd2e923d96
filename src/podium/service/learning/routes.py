"""Answers the routes of online learning: score, observe, assign and forget."""

from __future__ import annotations

import json
import math
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.types import Scope
from structlog.typing import FilteringBoundLogger

from podium.errors import PodiumError, UsageError
from podium.online import Observation, Place, Request, assign_costs, transport_plan
from podium.online.cost import Option
from podium.online.priority import priority_score
from podium.service.components import Answer, JsonRoute, Unfinished
from podium.service.http.batches import MOST_BATCHES, Batches, Wanted
from podium.service.http.body import is_gone, too_long
from podium.service.http.problem import Field, Problem
from podium.service.learning.answers import AnswerWriter
from podium.service.learning.journal import Journal
from podium.service.learning.learner import AgentLearner, observation_of
from podium.service.learning.metrics import LearningMetrics
from podium.service.learning.replies import AssignReply, ForgetReply, ObserveReply, ScoreReply
from podium.service.learning.requests import (
    BY_COSTS,
    BY_JOBS,
    EXAMPLES,
    LONGEST_NAME,
    MOST_COLUMNS,
    AssignRequest,
    CostsRequest,
    ForgetRequest,
    Job,
    JobsRequest,
    ObserveRequest,
    ScoreRequest,
)
from podium.service.learning.selector import Selector
from podium.settings import Serve
from podium.store import ObservationRecord, ReusedName

Work = Callable[[Event], Mapping[str, Any]]

MANY_PLACES = 64
"""Beyond so many places, each with company of its own, scoring takes long."""

_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "An observation that is sent again under the same key counts once.",
    "schema": {"type": "string", "maxLength": LONGEST_NAME},
}

_NOT_LEARNED = (
    "The observation is stored and not learned yet: what is told of its pair leaves it out. "
    "It is learned without another request."
)
_NOT_FORGOTTEN = (
    "That the names go is stored, and they are still known: forgetting them goes on without "
    "another request. The same request is answered with 200 and empty lists once they are gone."
)


class LearningRoutes:
    """Answers checked requests by what the agent knows, and stores what it observes."""

    def __init__(
        self,
        learner: AgentLearner,
        journal: Journal,
        metrics: LearningMetrics,
        selector: Selector,
        log: FilteringBoundLogger,
        serve: Serve,
    ) -> None:
        self._learner, self._journal = learner, journal
        self._metrics, self._log = metrics, log
        self._selector, self._serve = selector, serve
        self._batches, self._wide = Batches(), Batches()
        self._source = socket.gethostname()
        self._sizes = dict.fromkeys(learner.agent.parameters.features)
        self._writer = AnswerWriter()

    def listed(self) -> list[JsonRoute]:
        """Lists the routes; those that wait for the store, or for their turn, have own limits."""

        def route(path: str, request: Any, reply: Any, answer: Answer, **more: Any) -> JsonRoute:
            return JsonRoute(path, request, reply, answer, EXAMPLES[path], **more)

        waiting = {"max_in_flight": self._serve.max_observing}
        tags = (BY_COSTS, BY_JOBS)
        return [
            route("/v1/score", ScoreRequest, ScoreReply, self.score),
            route(
                "/v1/observe", ObserveRequest, ObserveReply, self.observe,
                parameters=[_KEY], unfinished=_NOT_LEARNED, **waiting,
            ),
            route(
                "/v1/assign", AssignRequest, AssignReply, self.assign,
                union_tags=tags, max_in_flight=MOST_BATCHES,
            ),
            route(
                "/v1/forget", ForgetRequest, ForgetReply, self.forget,
                unfinished=_NOT_FORGOTTEN, **waiting,
            ),
        ]  # fmt: skip

    def close(self) -> None:
        """Begins no more work on batches and on scores of many places."""
        self._batches.close()
        self._wide.close()

    async def score(self, body: ScoreRequest, scope: Scope) -> bytes:
        """Decides where a job runs."""
        request = self._scored(body)
        started = time.perf_counter()
        if len(request.places) > MANY_PLACES:  # others are answered meanwhile
            answer = await self._wide.work(
                lambda _: self._learner.agent.score(request, time.monotonic()),
                partial(is_gone, scope),
            )
        else:
            answer = self._learner.agent.score(request, time.monotonic())
        self._metrics.scoring.observe(time.perf_counter() - started)
        self._metrics.decided(answer)
        selected = self._selector.select(answer.chosen_gpu_type)
        priority = priority_score(answer.chosen.expected_s, body.waited_s, body.weight)
        missing = [name for name in self._sizes if name not in request.features]
        features = self._ignored(body.features), missing
        return self._writer.write(answer, selected, priority, features)

    def _scored(self, body: ScoreRequest) -> Request:
        self._bound("candidate_gpu_types", body.candidate_gpu_types)
        self._bound("places", body.places)
        self._bound("colocated_job_types", body.colocated_job_types)
        for number, place in enumerate(body.places):
            if place.colocated_job_types:
                self._bound(f"places[{number}].colocated_job_types", place.colocated_job_types)
        if not body.candidate_gpu_types and not body.places:
            name = "places" if "places" in body.model_fields_set else "candidate_gpu_types"
            raise Problem(
                400,
                "no GPU type to choose from",
                hint="list at least one",
                fields=[Field(name, "the list is empty")],
            )
        return Request(
            body.job_type,
            tuple(body.candidate_gpu_types),
            self._used(body.features),
            tuple(body.colocated_job_types),
            tuple(
                Place(each.gpu_type, tuple(each.colocated_job_types), each.node)
                for each in body.places
            ),
            body.job_id,
        )

    async def observe(self, body: ObserveRequest, scope: Scope) -> Mapping[str, Any] | Unfinished:
        """Stores an observation for good, then learns from it."""
        self._bound("colocated_job_types", body.colocated_job_types)
        key = _key(scope)
        record = ObservationRecord(
            body.job_type,
            body.gpu_type,
            body.runtime_s,
            recorded_s=time.time(),
            colocated_job_types=tuple(body.colocated_job_types),
            features=self._used(body.features),
            source=self._source,
            key=key,
            job_id=body.job_id or None,
            outcome=body.outcome,
            unlearned=self._unlearned(body.features) if key else "",
        )
        observation = observation_of(record)
        self._check(observation)
        try:
            with _database_errors():
                taught = await self._store(record, observation)
        except ReusedName as error:
            fields = [Field(error.where, error.message)]
            raise Problem(409, error.message, hint=error.hint, fields=fields) from error
        told = {**taught, "ignored_features": self._ignored(body.features)}
        return told if told["learned"] else Unfinished(told)

    async def _store(
        self, record: ObservationRecord, observation: Observation
    ) -> Mapping[str, Any]:
        pair = Request(record.job_type, (record.gpu_type,), record.features)
        (before,) = self._learner.agent.options(pair)
        started = time.perf_counter()
        if self._learner.agent.knows(observation):
            (stored,) = await self._journal.store([record])
        else:
            stored = await self._journal.store_new(record, lambda: self._check(observation))
        waited_s = time.perf_counter() - started
        self._metrics.committing.observe(waited_s)
        if not stored.is_repeat:
            self._metrics.observed(record.job_type, record.gpu_type, record.outcome)
        is_learned = await self._journal.learn(stored.id, waited_s)
        if stored.is_repeat and record.job_id:
            self._learner.agent.close(record.job_id)  # it may have been scored again
        (now,) = self._learner.agent.options(pair)
        return _taught(before, now, is_repeated=stored.is_repeat, is_learned=is_learned)

    async def forget(self, body: ForgetRequest, _scope: Scope) -> Mapping[str, Any] | Unfinished:
        """Forgets job types and GPU types, as though they had never been observed."""
        self._bound("job_types", body.job_types)
        self._bound("gpu_types", body.gpu_types)
        with _database_errors():
            found, is_done = await self._forget(body)
        told = {"status": "ok", "done": is_done, "forgotten": found}
        return told if is_done else Unfinished(told)

    async def _forget(self, body: ForgetRequest) -> tuple[dict[str, list[str]], bool]:
        """Returns the names that were known, and whether they are forgotten by now."""
        jobs, gpus = await self._journal.names(body.job_types, body.gpu_types)
        found = {
            "job_types": [name for name in dict.fromkeys(body.job_types) if name in jobs],
            "gpu_types": [name for name in dict.fromkeys(body.gpu_types) if name in gpus],
        }
        records = [self._marker(job_type=name) for name in found["job_types"]]
        records += [self._marker(gpu_type=name) for name in found["gpu_types"]]
        if not records:
            return found, True
        stored = await self._journal.store(records)
        is_done = await self._journal.learn(stored[-1].id)
        self._log.info("forgotten" if is_done else "forgetting goes on", **found)
        return found, is_done

    def _marker(self, *, job_type: str = "", gpu_type: str = "") -> ObservationRecord:
        return ObservationRecord(
            job_type,
            gpu_type,
            runtime_s=0.0,
            recorded_s=time.time(),
            source=self._source,
            forgets="job_type" if job_type else "gpu_type",
        )

    async def assign(self, body: CostsRequest | JobsRequest, scope: Scope) -> Mapping[str, Any]:
        """Assigns many jobs at once, within capacities."""
        self._bound("capacities", body.capacities, MOST_COLUMNS)
        work = self._by_jobs(body) if isinstance(body, JobsRequest) else self._by_costs(body)
        return await self._batches.work(work, partial(is_gone, scope))

    def _by_costs(self, body: CostsRequest) -> Work:
        self._bound("costs", body.costs)
        width = len(body.capacities)
        for row, costs in enumerate(body.costs):
            if len(costs) != width:
                raise _mismatch(f"costs[{row}]", len(costs), width)
        rows = [[math.inf if cost is None else cost for cost in row] for row in body.costs]
        table = np.array(rows, dtype=np.float64).reshape(len(rows), width)

        def work(_is_unwanted: Event) -> Mapping[str, Any]:
            found = assign_costs(table, body.capacities)
            return {**found.as_object(), **_plan(table, body)}

        return work

    def _by_jobs(self, body: JobsRequest) -> Work:
        self._bound("jobs", body.jobs)
        if len(body.gpu_types) != len(body.capacities):
            raise _mismatch("gpu_types", len(body.gpu_types), len(body.capacities))
        capacities = dict(zip(body.gpu_types, body.capacities, strict=True))
        if len(capacities) != len(body.gpu_types):
            raise _invalid("gpu_types", "a GPU type is listed twice", "list each GPU type once")
        requests = [
            self._request(job, body.gpu_types, f"jobs[{number}]")
            for number, job in enumerate(body.jobs)
        ]

        def work(is_unwanted: Event) -> Mapping[str, Any]:
            agent, wanted = self._learner.agent, Wanted(requests, is_unwanted)
            found = agent.assign(wanted, capacities).as_object()
            if not body.plan:
                return found
            return {**found, **_plan(agent.costs(wanted, body.gpu_types), body)}

        return work

    def _request(self, job: Job, gpu_types: Sequence[str], where: str) -> Request:
        self._bound(f"{where}.colocated_job_types", job.colocated_job_types)
        allowed = [name for name in job.candidate_gpu_types if name in gpu_types]
        if job.candidate_gpu_types and not allowed:
            raise _invalid(
                f"{where}.candidate_gpu_types",
                f"{where} may use none of the GPU types",
                "list more GPU types",
            )
        return Request(
            job.job_type,
            tuple(allowed or gpu_types),
            self._used(job.features, f"{where}.features"),
            tuple(job.colocated_job_types),
        )

    def _check(self, observation: Observation) -> None:
        try:
            self._learner.agent.check(observation)
        except UsageError as error:  # the body is valid: what is known already leaves no room
            fields = [Field(error.where, error.message)]
            hint = f"{error.hint}; POST /v1/forget frees names that are no longer used"
            raise Problem(409, error.message, hint=hint, fields=fields) from error

    def _ignored(self, features: Iterable[str]) -> list[str]:
        return [name for name in features if name not in self._sizes]

    def _unlearned(self, features: Mapping[str, float | bool | str | None]) -> str:
        """Returns a digest of what is not stored, by which a request under the same key is told."""
        rest = {name: features[name] for name in self._ignored(features)}
        return sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()[:16]

    def _used(
        self, features: Mapping[str, float | bool | str | None], where: str = "features"
    ) -> dict[str, float]:
        used: dict[str, float] = {}
        for name, value in features.items():
            if name not in self._sizes or value is None:
                continue
            if not isinstance(value, float):
                raise _invalid(f"{where}.{name}", "not a number", "send a number")
            used[name] = value
        return used

    def _bound(self, name: str, entries: Sequence[Any], most: int | None = None) -> None:
        limit = self._serve.max_batch if most is None else min(most, self._serve.max_batch)
        if len(entries) > limit:
            raise too_long(name, len(entries), limit)


@contextmanager
def _database_errors() -> Iterator[None]:
    """Answers 503 where the store fails; mistakes of the caller pass."""
    try:
        yield
    except UsageError:
        raise
    except PodiumError as error:
        raise Problem(
            503,
            "database error",
            hint="send the request again shortly, with the same job_id or Idempotency-Key; "
            "the service's log has the details",
            headers={"retry-after": "1"},
        ) from error


def _taught(
    before: Option, now: Option, *, is_repeated: bool, is_learned: bool
) -> Mapping[str, Any]:
    """Tells what an observation changed in what is believed of its pair."""
    mean_interval_s, run_interval_s = now.known.intervals_s()
    return {
        "status": "ok",
        "updated": is_learned and not is_repeated,
        "repeated": is_repeated,
        "learned": is_learned,
        "new_uncertainty": now.known.sigma,
        "observations": now.known.observations,
        "failures": now.risk.failures,
        "success_chance": 1.0 - now.risk.chance,
        "mean_interval_s": mean_interval_s,
        "run_interval_s": run_interval_s,
        "before": {
            "mu": before.known.mu,
            "sigma": before.known.sigma,
            "success_chance": 1.0 - before.risk.chance,
            "mean_interval_s": before.known.intervals_s()[0],
        },
        "mu": now.known.mu,
    }


def _plan(costs: NDArray[np.float64], body: CostsRequest | JobsRequest) -> Mapping[str, Any]:
    return {"plan": transport_plan(costs, body.capacities).tolist()} if body.plan else {}


def _key(scope: Scope) -> str | None:
    key = next((value for name, value in scope["headers"] if name == b"idempotency-key"), b"")
    if len(key) > LONGEST_NAME:
        hint = f"use at most {LONGEST_NAME} bytes"
        raise _invalid("Idempotency-Key", "the key is too long", hint)
    return key.decode("latin-1") or None


def _mismatch(name: str, found: int, wanted: int) -> Problem:
    problem = f"{found} entries do not match {wanted} capacities"
    return _invalid(name, problem, "send one capacity for each column")


def _invalid(name: str, message: str, hint: str) -> Problem:
    return Problem(422, message, hint=hint, fields=[Field(name, message)])
