"""Answers the verbs of an extender. Whatever fails, pods are scheduled as without it."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from structlog.typing import FilteringBoundLogger

from podium.errors import PolicyError
from podium.files.excerpt import excerpt
from podium.kube.state import LiveState
from podium.policies import HOLD
from podium.service.extender import wire
from podium.service.extender.gangs import GangDomain
from podium.service.extender.history import REFUSED, Entry, History
from podium.service.extender.metrics import ExtenderMetrics
from podium.service.extender.prioritizer import Decision, Neutral, Prioritizer, scores_of
from podium.service.extender.scale import answered
from podium.service.extender.scorer import Scorer
from podium.service.extender.shortage import SHORTAGES, shortages
from podium.service.extender.window import LiveWindow
from podium.service.http.logs import KIND
from podium.settings import Extender

MOST_NAMED = 1000
"""Problems of pods that are logged once each, for as long as they are among the latest."""

MOST_HELD = 10_000
"""Pods that are held at a time; anybody can invent more."""

LATEST_S, LOOK_AGAIN_S = 1.0, 0.005
"""How long a bind waits for the watch to show its pod, and how often it looks."""

LONGEST_PROBLEM = 300
UNRECORDED = -1

TAKEN = "other pods have taken the GPUs of node {} meanwhile"
UNKNOWN = (
    "nothing is known of the GPUs of node {}: the watch does not show it, or it is not modelled"
)

UNMODELLED = "its GPUs cannot be modelled"

Binder = Callable[[wire.BindingArgs, tuple[int, ...]], Awaitable[str]]
"""Binds a pod and notes its GPUs; returns what went wrong, or nothing."""


@dataclass(slots=True)
class Memory:
    """Holds what is remembered of recent pods."""

    history: History
    recent: LiveWindow
    named: OrderedDict[str, None] = field(default_factory=OrderedDict)  # problems, once logged
    held_since_s: dict[str, float] = field(default_factory=dict)  # by UID


class Verbs:
    """Answers prioritize, filter and bind with bytes for bytes."""

    def __init__(
        self, settings: Extender, metrics: ExtenderMetrics, memory: Memory,
        log: FilteringBoundLogger, later: Callable[[Callable[[], None]], object],
    ) -> None:  # fmt: skip
        self._settings = settings
        self._metrics = metrics
        self._memory = memory
        self._log = log
        self._later = later  # runs something once the answer is on its way
        self.prioritizer: Prioritizer | None = None  # None: the cluster is not known yet
        self.shadows: list[Scorer] = []
        self.bind_pod: Binder | None = None
        self.on_bound: Callable[[Entry], None] | None = None  # hears of bound pods; never waits
        self.is_stale: Callable[[], bool] = lambda: False

    def prioritize(self, body: bytes) -> bytes:
        """Scores the feasible nodes of a pod from 0 to 1000."""
        started_s = time.perf_counter()
        try:
            args = wire.read_args(body, self._find)
        except wire.MalformedError as error:
            self._fall_open("prioritize", Neutral("malformed", str(error)))
            return wire.NEUTRAL
        decision = self._decide("prioritize", args)
        if isinstance(decision, Decision):
            answer = self._priorities(decision)
            self._assumed(decision)
        else:
            answer = wire.NEUTRAL
        self._metrics.answered("prioritize", time.perf_counter() - started_s)
        return answer

    def rehearse(self, body: bytes) -> None:
        """Answers prioritize as always, but nobody: nothing is remembered, assumed or counted."""
        assert self.prioritizer is not None
        decision = self.prioritizer.decide(wire.read_args(body, self._find))
        if isinstance(decision, Decision):
            self._priorities(decision)

    def filter(self, body: bytes) -> bytes:
        """Removes nodes on which a pod does not fit, or that the policy refuses for now."""
        started_s = time.perf_counter()
        try:
            args = wire.read_args(body)
        except wire.MalformedError as error:
            self._fall_open("filter", Neutral("malformed", str(error)))
            return wire.failed("the body is not what kube-scheduler sends")
        decision = self._decide("filter", args)
        refused = self._refused(decision) if isinstance(decision, Decision) else {}
        answer = wire.filtered(args, refused)
        self._metrics.answered("filter", time.perf_counter() - started_s)
        return answer

    async def bind(self, body: bytes) -> bytes:
        """Binds a pod to a node, and notes on it which GPUs were chosen."""
        started_s = time.perf_counter()
        try:
            args = wire.read_binding(body)
        except wire.MalformedError as error:
            self._fall_open("bind", Neutral("malformed", str(error)))
            return wire.bound("the body is not what kube-scheduler sends")
        if self.bind_pod is None or self.prioritizer is None:
            self._fall_open("bind", Neutral("not-ready", "no API server is known yet"))
            return wire.bound("the extender is not ready")
        await _until_seen(args.pod_uid, self.prioritizer.state)
        problem = _unbindable(args, self.prioritizer.state)
        slots = None if problem else self._claim(args)
        if not problem and slots is None and self._settings.filter:
            is_known = args.node in self.prioritizer.state.index
            problem = (TAKEN if is_known else UNKNOWN).format(args.node)
        problem = problem or await self.bind_pod(args, slots or ())
        if problem:
            self._release(args)
            facts = {"pod": f"{args.pod_namespace}/{args.pod_name}", "node": args.node}
            facts["problem"] = excerpt(problem, LONGEST_PROBLEM, quote="")
            self._log.warning("a pod was not bound", **facts, **{KIND: "unbound"})
        self._metrics.answered("bind", time.perf_counter() - started_s)
        return wire.bound(problem)

    def pod_moved(self, uid: str, node: str) -> None:
        """Hears of a pod that was bound to a node, or that is gone from it."""
        if self.prioritizer is not None:
            self.prioritizer.assumed.drop(uid)
            self._later(lambda: self._settle(uid if node else ""))
        self._memory.held_since_s.pop(uid, None)
        entry = self._memory.history.of(uid)
        if entry is not None and node and not entry.bound_to:
            entry.bound_to = node
            self._metrics.bound(self._bound_as(entry.decision, node))
            if self.on_bound is not None:
                self.on_bound(entry)

    def _find(self, text: bytes) -> Sequence[str] | None:
        return None if self.prioritizer is None else self.prioritizer.find_nodes(text)

    def _decide(self, verb: str, args: wire.ExtenderArgs) -> Decision | Neutral:
        decision: Decision | Neutral
        if self.prioritizer is None:
            decision = Neutral("not-ready", "the cluster is not known yet")
        elif self.is_stale():
            decision = Neutral("stale", "the API server has been silent for too long")
        else:
            try:
                scored = self.prioritizer
                decide = scored.decide_strictly if verb == "filter" else scored.decide
                decision = decide(args)
            except Exception as error:  # noqa: BLE001 - scheduling must go on
                self._log.error("scoring failed", exc_info=error, **{KIND: "failed scores"})
                decision = Neutral("bug", type(error).__name__)
        if isinstance(decision, Neutral):
            own = self.prioritizer
            is_known = own is not None and own.state.known_pod(args.pod.uid) is not None
            self._fall_open(verb, decision, "a pod" if is_known else "an unknown pod")
        return decision

    def _priorities(self, decision: Decision) -> bytes:
        """Writes the points of as few nodes as tell the best from the others."""
        assert self.prioritizer is not None
        behind = self.prioritizer.decisive_points(decision)
        kept, points = answered(decision.points, behind)
        at = decision.at[kept]
        if (at < 0).any():
            hosts = map(wire.host, map(decision.node_names.__getitem__, kept.tolist()))
        else:
            hosts = map(self.prioritizer.names.hosts.__getitem__, at.tolist())
        return wire.priorities(hosts, points.tolist())

    def _fall_open(self, verb: str, neutral: Neutral, whose: str = "no pod") -> None:
        self._metrics.neutral(verb, neutral.reason)
        named, problem = self._memory.named, excerpt(neutral.problem, LONGEST_PROBLEM, quote="")
        if problem in named:
            return
        named[problem] = None
        if len(named) > MOST_NAMED:
            named.popitem(last=False)
        # Anybody can invent pods; those that are there have a share of lines of their own.
        kind = f"{neutral.reason}, {whose}"
        facts = {"reason": neutral.reason, "problem": problem, KIND: kind}
        self._log.warning("no node is preferred", verb=verb, **facts)

    def _assumed(self, decision: Decision) -> None:
        assert self.prioritizer is not None
        self.prioritizer.assume(decision)
        self._later(lambda: self._remember(decision))

    def _remember(self, decision: Decision) -> None:
        """Does what the caller need not wait for."""
        assert self.prioritizer is not None
        names = self.prioritizer.names.names
        entry = self._memory.history.add(decision, time.time(), names, self._gang(decision))
        shapes = self.prioritizer.scorer.shapes
        for number, known in enumerate(self.shadows):
            try:
                shadow = known if known.shapes is shapes else known.refresh(shapes)
                self.shadows[number] = shadow
                best = _best(shadow, decision)
            except PolicyError as error:
                facts = {"policy": known.policy.name, "problem": str(error)}
                self._log.warning("a shadow policy failed", **facts, **{KIND: "failed shadows"})
                continue
            entry.shadow[shadow.policy.name] = best
            is_same = decision.is_best(self._number(best)) if best else decision.best < 0
            self._metrics.shadowed(shadow.policy.name, is_same=is_same)

    def _bound_as(self, decision: Decision, node: str) -> Literal["best", "preference", "other"]:
        """Tells whether a pod went where the policy likes it, others may prefer it, or neither."""
        if decision.is_best(self._number(node)):
            return "best"
        has_preferences = self.prioritizer and self.prioritizer.has_preferences(decision)
        return "preference" if has_preferences else "other"

    def _number(self, node: str) -> int:
        """Finds the record of a node; one that no record has stands for those that have none."""
        known = {} if self.prioritizer is None else self.prioritizer.state.index
        return known.get(node, UNRECORDED)

    def _gang(self, decision: Decision) -> GangDomain | None:
        group, target = decision.request.group, decision.target
        if self.prioritizer is None or group is None or target is None:
            return None
        return GangDomain.of(group, target, self.prioritizer.state.domain_names)

    def _refused(self, decision: Decision) -> dict[str, str]:
        """Names the nodes that are removed: those that lack something or that the policy refuses.

        Where it refuses all that could take the pod, it holds the pod, for a limited time.
        """
        places = np.flatnonzero((decision.scores == HOLD) & (decision.at >= 0))
        lacking = shortages(decision.request, decision.nodes)[decision.at[places]]
        is_held = decision.best < 0 and bool((lacking == 0).any()) and self._may_hold(decision)
        if is_held:
            self._metrics.held()
        is_removed = (lacking > 0) | is_held | (decision.best >= 0)
        refused = {
            decision.node_names[place]: SHORTAGES[number] or REFUSED
            for place, number in zip(
                places[is_removed].tolist(), lacking[is_removed].tolist(), strict=True
            )
        }
        refused |= self._unbindable_nodes(decision)
        kept = len(decision.node_names) - len(refused)
        if kept == 1 and decision.best >= 0:
            self._assumed(decision)  # kube-scheduler does not score a single node
        elif not kept:
            self._later(lambda: self._remember(decision))
        return refused

    def _unbindable_nodes(self, decision: Decision) -> dict[str, str]:
        """Names nodes that cannot be modelled: where Podium binds, it gives out no GPUs of them."""
        assert self.prioritizer is not None
        unmodelled = self.prioritizer.state.unmodelled_nodes
        if not (unmodelled and self._settings.bind and decision.request.spec.gpu_count):
            return {}
        return {name: UNMODELLED for name in decision.node_names if name in unmodelled}

    def _may_hold(self, decision: Decision) -> bool:
        """Returns whether the policy may still hold a pod back; none waits forever."""
        since = self._memory.held_since_s
        now_s = time.monotonic()
        while since and now_s - since[next(iter(since))] > 2 * self._settings.max_hold_s:
            del since[next(iter(since))]  # the first is the oldest
        if len(since) >= MOST_HELD and decision.pod.uid not in since:
            return False
        return now_s - since.setdefault(decision.pod.uid, now_s) <= self._settings.max_hold_s

    def _settle(self, bound: str) -> None:
        """Lets the state work out what changed, before somebody waits for it.

        A pod that is bound without a question, to another replica for instance, is recent too.
        """
        if self.prioritizer is not None:
            self.prioritizer.state.index  # noqa: B018 - looking at it is what does it
            if bound and bound not in self._memory.recent:
                self.prioritizer.note_bound(bound)

    def _claim(self, args: wire.BindingArgs) -> tuple[int, ...] | None:
        """Names the GPUs of a pod on the node it goes to; they are no longer anybody else's."""
        if self.prioritizer is None:
            return ()
        entry = self._memory.history.of(args.pod_uid)
        decision = entry.decision if entry is not None else None
        return self.prioritizer.claim(args.pod_uid, args.node, decision)

    def _release(self, args: wire.BindingArgs) -> None:
        """Forgets where a pod was to go that could not be bound."""
        if self.prioritizer is not None:
            self.prioritizer.assumed.drop(args.pod_uid)


async def _until_seen(uid: str, state: LiveState) -> None:
    """Waits for a pod that kube-scheduler has seen before the watch did."""
    deadline_s = time.monotonic() + LATEST_S
    while state.pod(uid) is None and time.monotonic() < deadline_s:
        await asyncio.sleep(LOOK_AGAIN_S)


def _unbindable(args: wire.BindingArgs, state: LiveState) -> str:
    """Says why a pod must not be bound, whoever asks: it is not one that waits for a node."""
    pod = state.pod(args.pod_uid)
    if pod is None or (pod.namespace, pod.name) != (args.pod_namespace, args.pod_name):
        return f'pods "{args.pod_name}" not found: the watch shows no such pod with this UID'
    return "" if pod.is_pending else f'pods "{args.pod_name}" waits for no node'


def _best(shadow: Scorer, decision: Decision) -> str:
    """Names a node that a shadow policy likes best: one that the policy likes, too, if any."""
    at, rank = decision.at, decision.rank
    found = scores_of(shadow, decision.request, decision.nodes, at, rank)
    scores = np.where(at >= 0, found.scores[at], HOLD)
    if scores.max(initial=HOLD) == HOLD:
        return ""
    places = np.flatnonzero(scores == scores.max())
    return decision.node_names[int(places[decision.points[places].argmax()])]
