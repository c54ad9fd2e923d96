"""The component that scores pods of a live cluster for kube-scheduler."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Protocol

import msgspec
from fastapi import APIRouter
from fastapi.responses import JSONResponse
from prometheus_client.registry import Collector
from pydantic import Field
from structlog.typing import FilteringBoundLogger

from podium.experiments.deployment import active_policy, shadow_policies
from podium.kube import need_extra
from podium.kube.pod import Unreadable
from podium.kube.state import LiveState
from podium.policies.policy import Policy
from podium.policies.thread import in_thread
from podium.service.components import BytesRoute, Component, Facts, Readiness
from podium.service.extender import bodies
from podium.service.extender.assumed import AssumedPods
from podium.service.extender.events import EventWriter
from podium.service.extender.guard import Guard, LateError, guard_of
from podium.service.extender.history import History
from podium.service.extender.metrics import ExtenderMetrics
from podium.service.extender.names import NodeNames
from podium.service.extender.outcome import Outcome
from podium.service.extender.prioritizer import Prioritizer
from podium.service.extender.scorer import Nodes, Scorer
from podium.service.extender.verbs import Memory, Verbs
from podium.service.extender.window import LiveWindow
from podium.service.extender.wire import BindingArgs
from podium.service.http.problem import Problem
from podium.service.http.replies import ErrorReply
from podium.settings import Settings
from podium.traces.kubernetes.keys import GPU_COUNT, GPU_MILLI

COMPILE_S, FIRST_S = 60.0, 5.0
"""How long the start waits for a policy to be prepared and compiled, and for each first score."""

MOST_BODY_BYTES = 2**26
"""Of a request with whole nodes: 1.5 MB for 1,500 of them, more where they have many images."""


def _example(name: str, gpus: str, milli: str) -> Mapping[str, Any]:
    requests = {"cpu": "1", "memory": "1Gi"}
    notes = {GPU_COUNT: gpus, GPU_MILLI: milli} if gpus else {}
    containers = [{"name": "main", "resources": {"requests": requests}}]
    return {"metadata": {"name": name, "annotations": notes}, "spec": {"containers": containers}}


_EXAMPLES = (
    _example("without-gpu", "", ""), _example("part-of-gpu", "1", "500"),
    _example("gpus", "2", "1000"),
)  # fmt: skip


class Following(Protocol):
    """Is a state that follows its cluster."""

    def age_s(self) -> float:
        """Returns the seconds since the API server was last heard of."""

    def lists(self) -> int:
        """Returns how often objects were listed: once for each kind while watches go on."""

    def problems(self) -> list[str]:
        """Says of which kinds the API server is not heard now, and why."""

    def unreadable(self) -> int:
        """Returns how many objects were left out since they cannot be read."""

    @property
    def failure(self) -> Exception | None:
        """Returns what ended a watch for good, if one has ended."""

    async def bind(self, args: BindingArgs, slots: tuple[int, ...]) -> str:
        """Binds a pod, with its GPUs as an annotation; returns what went wrong, or nothing."""

    async def write_event(self, event: Mapping[str, Any]) -> str:
        """Creates an Event; returns what went wrong, or nothing."""


Follow = Callable[
    [Settings, LiveState, FilteringBoundLogger], AbstractAsyncContextManager[Following]
]
"""Fills a state and keeps it current; entered once the whole cluster is known."""


class Extender(Component):
    """Answers kube-scheduler which nodes the policy prefers."""

    name = "extender"
    description = "Scores the nodes of a live cluster for kube-scheduler."
    sections = ("extender",)
    ready_fields = MappingProxyType(
        {
            "policy": Annotated[str, Field(description="The policy that scores.")],
            "validated": Annotated[str, Field(description="Whether it is: yes, no or unknown.")],
            "slow_policies": Annotated[
                str, Field(description="Policies that are too slow to be asked now, by commas.")
            ],
        }
    )

    def __init__(self, settings: Settings, log: FilteringBoundLogger, follow: Follow) -> None:
        own = settings.extender
        self._settings = settings
        self._log = log
        self._follow = follow
        keys = tuple(key.strip() for key in (own.topology or "").split(",") if key.strip())
        self.state = LiveState(keys)
        self.assumed = AssumedPods(own.assume_s, time.monotonic)
        self._metrics = ExtenderMetrics()
        self._memory = Memory(History(own.recent_pods), LiveWindow(own.window_pods))
        self.outcome = Outcome(self.state, self._memory.recent, own, log)
        self.verbs = Verbs(own, self._metrics, self._memory, log, _later)
        self._running = AsyncExitStack()
        self._following: Following | None = None
        self._guards: list[Guard] = []

    @property
    def failure(self) -> Exception | None:
        """Returns what ended a watch for good; an API server that is silent ends none."""
        return None if self._following is None else self._following.failure

    def routes(self) -> Sequence[BytesRoute | APIRouter]:
        """Lists the verbs that are switched on, and explanations."""
        own, verbs = self._settings.extender, self.verbs
        listed = [_verb("prioritize", verbs.prioritize)]
        listed += [_verb("filter", verbs.filter)] if own.filter else []
        listed += [_verb("bind", verbs.bind)] if own.bind else []
        answered = [replace(each, is_loopback_only=own.loopback_only) for each in listed]
        return [*answered, self._explanations(), self._outcomes()]

    def label_values(self, label: str) -> set[str]:
        """Lists the values that the nodes of the cluster have under a label."""
        specs = (spec for spec in self.state.specs if spec is not None)
        return {spec.labels[label] for spec in specs if label in spec.labels}

    def collectors(self) -> Sequence[Collector]:
        """Lists durations and counts, and figures of the state."""
        rows = {
            "state_age_seconds": (
                "Seconds since the API server was last heard of; -1: never.",
                lambda: self._following.age_s() if self._following else -1.0,
            ),
            "lists": (
                "Lists that were read: one for each kind, and one more where a watch broke off.",
                lambda: float(self._following.lists()) if self._following else 0.0,
            ),
            "failing_watches": (
                "Kinds of objects of which the API server is not heard now.",
                lambda: float(len(self._following.problems())) if self._following else 0.0,
            ),
            "unreadable_objects": (
                "Objects that were left out since they cannot be read.",
                lambda: float(self._following.unreadable()) if self._following else 0.0,
            ),
            "assumed_pods": ("Pods that are assumed on a node.", lambda: float(len(self.assumed))),
            "unmodelled_nodes": (
                "Nodes that are left out since they cannot be modelled: no pod is scored on them.",
                lambda: float(self.state.sizes().unmodelled_nodes),
            ),
            "slow_policies": (
                "Policies, shadows among them, that are too slow to be asked now.",
                lambda: float(len(self._slow())),
            ),
            "nodes": ("Nodes that are known.", lambda: float(self.state.sizes().nodes)),
            "pods": ("Pods that are known.", lambda: float(self.state.sizes().pods)),
            "recent_pods": (
                "Recent pods from which tables are prepared.",
                lambda: float(len(self._memory.recent)),
            ),
        }
        return [*self._metrics.collectors(rows), self.outcome]

    async def start(self) -> Facts:
        """Learns the cluster and compiles the policies."""
        need_extra()
        own = self._settings.extender
        self._policies = await in_thread(partial(_policies, self._settings))
        self._metrics.policies(self._policies)
        self._warn_of_unvalidated()
        for policy in self._policies:
            self._guards.append(guard_of(policy, own.max_answer_s, self._log))
            self._running.callback(self._guards[-1].close)
        self._following = following = await self._running.enter_async_context(
            self._follow(self._settings, self.state, self._log)
        )
        self._running.callback(self.state.subscribe(self.verbs.pod_moved))
        self.verbs.is_stale = lambda: following.age_s() > own.max_state_age_s
        self.verbs.bind_pod = following.bind
        if own.events:
            self._write_events(following)
        self._recall()
        self._running.callback(self.outcome.follow())
        await self._prepare()
        self._rehearse()
        self._running.push_async_callback(_cancel, asyncio.create_task(self.outcome.run()))
        known = {"nodes": len(self.state.index), "pods": len(self.state.pods)}
        return {**self.config(), **known}

    def config(self) -> Mapping[str, Any]:
        """Returns the policies that score, and whether each is validated."""
        if not self._policies:
            return {}
        policy, *shadows = self._policies
        shadow = {each.name: each.validation.word for each in shadows}
        return {"policy": policy.name, "validated": policy.validation.word, "shadow": shadow}

    def _warn_of_unvalidated(self) -> None:
        for policy in self._policies:
            if policy.validation.is_passed is False:
                role = "active" if policy is self._policies[0] else "shadow"
                facts = {"policy": policy.name, "role": role, "problem": policy.validation.reason}
                self._log.warning("a policy is not validated", **facts)
        active = self._policies[0]
        if active.origin == "file" and active.validation.is_passed is None:
            self._log.warning("nothing says whether a policy is validated", policy=active.name)

    def _write_events(self, following: Following) -> None:
        writer = EventWriter(self._metrics, self._log)
        self.verbs.on_bound = writer.bound
        writing = asyncio.create_task(writer.run(following.write_event))
        self._running.push_async_callback(_cancel, writing)

    async def stop(self) -> Facts:
        """Ends the watch."""
        self.verbs.prioritizer = None
        await self._running.aclose()
        return {}

    def readiness(self) -> Readiness:
        """Reports whether pods are scored."""
        if self.verbs.prioritizer is None or self._following is None:
            return Readiness("the cluster is not known yet", hint="see the service's log")
        age_s, most_s = self._following.age_s(), self._settings.extender.max_state_age_s
        if age_s > most_s:
            silent = f"the API server has been silent for {age_s:.0f} s"
            problems = self._following.problems() if age_s == float("inf") else []
            return Readiness(
                next(iter(problems), silent),
                hint="check the API server, and the service's log",
            )
        policy = self._policies[0]
        slow = ", ".join(self._slow())
        details = {"policy": policy.name, "validated": policy.validation.word}
        return Readiness(details={**details, "slow_policies": slow})

    def _slow(self) -> list[str]:
        return [guard.policy for guard in self._guards if guard.is_slow]

    def _recall(self) -> None:
        """Takes the pods that run for the recent ones; those that wait will be asked about."""
        for pod in [each for each in self.state.pods.values() if each.node]:
            request = self.state.request_of(pod)
            if not isinstance(request, Unreadable):
                self._memory.recent.add(request)

    async def _prepare(self) -> None:
        """Prepares the first tables of all policies, and scores the commonest pods."""
        shapes = self._memory.recent.shapes(self.state.gpu_kinds)
        nodes = self.state.nodes.copy()

        def make() -> list[Scorer]:
            pairs = zip(self._policies, self._guards, strict=True)
            made = [_first(Scorer(policy, shapes, guard), guard, nodes) for policy, guard in pairs]
            self.outcome.prepare(self._policies, shapes, nodes.dtype)
            NodeNames().find(b"[]")  # compiles
            return made

        scorer, *self.verbs.shadows = await in_thread(make)
        recent, settings = self._memory.recent, self._settings.extender
        own = Prioritizer(self.state, self.assumed, recent, scorer, settings)
        self.verbs.prioritizer = own
        self.outcome.latest = lambda: own.scorer.shapes

    def _rehearse(self) -> None:
        """Answers pods of all kinds once, so that nobody waits for what comes first."""
        own = self.verbs.prioritizer
        assert own is not None
        kept = own.scorer, own.recent
        own.scorer, own.recent = own.scorer.stand_in(), LiveWindow(1)
        for pod in _EXAMPLES:
            body = {"Pod": pod, "NodeNames": [name for name in self.state.names if name]}
            self.verbs.rehearse(msgspec.json.encode(body))
        own.scorer, own.recent = kept

    def _explanations(self) -> APIRouter:
        router = APIRouter()
        unknown: dict[int | str, Mapping[str, Any]] = {404: {"model": ErrorReply}}

        @router.get(
            "/v1/explain/{namespace}/{pod}",
            response_model=bodies.Explanation,
            responses={key: dict(value) for key, value in unknown.items()},
        )
        async def explain(namespace: str, pod: str) -> JSONResponse:
            """Explains how a recent pod was scored: the best nodes, and why not the others."""
            entry = self._memory.history.get(namespace, pod)
            if entry is None:
                problem = f"nothing is known of pod {namespace}/{pod}"
                hint = "only pods that kube-scheduler asked about recently can be explained"
                raise Problem(404, problem, hint=hint)
            told = await in_thread(entry.as_object)  # pods are scored meanwhile
            return JSONResponse({**told, "validated": self._policies[0].validation.word})

        return router

    def _outcomes(self) -> APIRouter:
        router = APIRouter()

        @router.get("/v1/outcome", response_model=bodies.Outcome)
        async def outcome() -> JSONResponse:
            """Tells what became of the cluster, and what its twins have made of the same pods."""
            found = [each.as_object() for each in self.outcome.accounts]
            return JSONResponse({"schedulers": found})

        return router


def _policies(settings: Settings) -> list[Policy]:
    """Loads the policy that scores, and then its shadows."""
    own, where = settings.extender, "extender.policy, extender.shadow"
    override = "extender.unvalidated"
    active = active_policy(own.policy, where, override, is_unvalidated=own.unvalidated)
    names = dict.fromkeys(name.strip() for name in own.shadow.split(",") if name.strip())
    others = (name for name in names if name != own.policy)
    return [active, *shadow_policies(others, where, active)]


def _first(scorer: Scorer, guard: Guard, nodes: Nodes) -> Scorer:
    """Prepares and compiles a policy, and has it score; one that does not end is slow at once."""
    try:
        scorer.ask(b"", partial(scorer.compile_for, nodes.dtype), COMPILE_S)
        for about, score in scorer.first_scores(nodes):
            scorer.ask(about, score, FIRST_S)
    except LateError:
        guard.pause()
    return scorer


def _verb(name: str, answer: Callable[[bytes], Any]) -> BytesRoute:
    request, reply, example = bodies.VERBS[name]
    return BytesRoute(f"/extender/{name}", request, reply, answer, MOST_BODY_BYTES, {name: example})


def _later(run: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_soon(run)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
