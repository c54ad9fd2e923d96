"""Decides how a pod is scored: reads what it asks for, scores it, and gives nodes their points.

Nothing here waits, and nothing is asked of the API server: the state is kept current beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.kube.objects import UNREADABLE, decode
from podium.kube.pod import Request, Unreadable
from podium.kube.state import LiveState
from podium.model.fit import tightest_slots
from podium.model.records import GPU_MILLI
from podium.model.shares import IMPOSSIBLE
from podium.policies import HOLD, load
from podium.policies.session import NodeScores
from podium.service.extender.assumed import AssumedPods
from podium.service.extender.gangs import GangTargets, Target
from podium.service.extender.guard import LateError
from podium.service.extender.names import NamesAt, NodeNames
from podium.service.extender.scale import MOST, Ties, scaled
from podium.service.extender.scorer import Scorer
from podium.service.extender.shortage import shortages
from podium.service.extender.window import LiveWindow
from podium.service.extender.wire import ExtenderArgs, ObjectMeta
from podium.settings import Extender
from podium.sim.plan import TIE_POLICY
from podium.traces.kubernetes.pod import PREFERENCES

Reason = Literal[
    "malformed", "not-ready", "stale", "unmodelled", "unknown-nodes", "policy", "slow", "bug"
]
"""Why no node is preferred."""

MOST_STRANGERS = 100
"""Pods that the watch has not shown yet and that are assumed: it lags by far fewer."""

FEW_NODES = 16

PREPARE_S = 2.0
"""Most that the preparation of a table may hold up one answer."""

Nodes = npt.NDArray[Any]
Whole = npt.NDArray[np.int64]
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Neutral:
    """Tells that no node is preferred, and why."""

    reason: Reason
    problem: str  # in words


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """Is how one pod was scored on the nodes that kube-scheduler asked about."""

    pod: ObjectMeta
    request: Request
    policy: str
    node_names: Sequence[str]
    at: npt.NDArray[np.int64]  # (num_names,) indices of their records; -1: not known yet
    scores: npt.NDArray[np.float64]  # (num_names,) of the policy
    points: npt.NDArray[np.int64]  # (num_names,) 0 to 1000
    nodes: Nodes  # all nodes, as they were scored
    rank: npt.NDArray[np.int64]  # (num_nodes,) their places in the order that breaks ties
    best: int  # which of the names kube-scheduler will most likely take; -1: none has points
    rivals: int  # nodes with as many points that its own scores do not tell from the best
    slots: tuple[int, ...]  # the GPUs on the best node
    target: Target | None  # of the pod's gang
    terms: Callable[[np.void, Nodes, int], dict[str, float]]  # of the score of a node

    @property
    def best_node(self) -> str:
        """Names the best node, empty where the pod is refused everywhere."""
        return self.node_names[self.best] if self.best >= 0 else ""

    @property
    def tied(self) -> int:
        """Counts the nodes that have the most points."""
        return int((self.points == self.points.max()).sum()) if self.best >= 0 else 0

    def is_best(self, node: int) -> bool:
        """Tells whether no node has more points than the one whose record has this index."""
        return self.best >= 0 and bool((self.points[self.at == node] == self.points.max()).any())


class Prioritizer:
    """Scores pods against the live state and the pods that are assumed on it."""

    def __init__(
        self, state: LiveState, assumed: AssumedPods, recent: LiveWindow, scorer: Scorer,
        settings: Extender,
    ) -> None:  # fmt: skip
        self.state = state
        self.assumed = assumed
        self.recent = recent
        self.scorer = scorer
        self._settings = settings
        self._targets = GangTargets(state)
        self._packing = load(TIE_POLICY).session()
        self.names = NodeNames()
        self._copy: tuple[int, Nodes] | None = None  # of the state at a version

    def decide(self, args: ExtenderArgs) -> Decision | Neutral:
        """Scores a pod on the nodes asked about; assumes nothing yet."""
        return self._decided(args, without=(args.pod.uid,))

    def decide_strictly(self, args: ExtenderArgs) -> Decision | Neutral:
        """Scores a pod as if of all assumed pods only those were there that the watch has shown.

        A call with invented pods may change who is preferred for a moment, never who is refused.
        """
        return self._decided(args, without={args.pod.uid, *self._strangers()})

    def _strangers(self) -> list[str]:
        known = self.state.known_pod
        return [uid for uid in self.assumed.uids() if known(uid) is None]

    def _decided(self, args: ExtenderArgs, without: Collection[str]) -> Decision | Neutral:
        request = self._request(args)
        if isinstance(request, Unreadable):
            return Neutral("unmodelled", str(request))
        at = self._indices(args.node_names)
        if len(at) and (at < 0).all():
            return Neutral("unknown-nodes", "none of the nodes is known")
        nodes, rank = self._nodes(without), self.names.see(self.state.names).rank
        try:
            self._learn(request, args.pod.uid, nodes, at)
            found = scores_of(self.scorer, request, nodes, at, rank)
        except PolicyError as error:
            return Neutral("slow" if isinstance(error, LateError) else "policy", str(error))
        scores = np.where(at >= 0, found.scores[at], HOLD) if len(at) else np.zeros(0)
        target = self._target(request)
        points = self._points(scores, at, rank, target)
        best, rivals = self._expected(request, points, nodes, at)
        slots = slots_on(request, found.gpu_slots, nodes, int(at[best])) if best >= 0 else ()
        return Decision(
            args.pod, request, self.scorer.policy.name, args.node_names, at, scores, points,
            nodes, rank, best, rivals, slots, target, self.scorer.terms,
        )  # fmt: skip

    def _learn(self, request: Request, uid: str, nodes: Nodes, at: Whole) -> None:
        """Counts the pod among the recent ones, and has the table prepared anew if that is due.

        As in a simulation, who fits nowhere is not seen, and who fits one node is not scored.
        """
        recent, kinds = self.recent, self.state.gpu_kinds
        if (request.uid or uid) in recent and not recent.is_due(kinds):
            return
        fitting = _fitting(request, nodes, at[at >= 0])
        if fitting:
            recent.add(request, uid)
        if fitting > 1 and recent.is_due(kinds):
            fresh = self.scorer.refresh(recent.shapes(kinds))
            # A table that cannot be prepared replaces none.
            fresh.ask(b"", fresh.session, PREPARE_S)
            self.scorer = fresh
            recent.prepared(kinds)

    def note_bound(self, uid: str) -> None:
        """Counts a pod among the recent ones that was bound without a question about it."""
        pod = self.state.pod(uid)
        request = self.state.request_of(pod) if pod is not None and pod.node else None
        if isinstance(request, Request):
            self.recent.add(request)

    def _expected(
        self, request: Request, points: Whole, nodes: Nodes, at: Whole
    ) -> tuple[int, int]:
        """Finds the node that kube-scheduler will take of those with most points: it packs.

        Gives with it how many others it may draw just as well; -1: no node has points.
        """
        most = int(points.max(initial=0))
        if most == 0:
            return -1, 0
        tied = np.flatnonzero(points == most)
        known = tied[at[tied] >= 0]
        if len(known) > 1:
            packed = self._packing.scores(request.record, nodes[at[known]]).scores
            foremost = known[packed == packed.max()]
        else:
            foremost = known
        return int(foremost[0]), len(foremost) - 1 + len(tied) - len(known)

    def assume(self, decision: Decision) -> None:
        """Assumes the pod on its best node until the watch shows where it went.

        Where kube-scheduler draws among several, or weighs what the pod prefers, nothing is
        assumed: a wrong guess would part the next pod from this one, whereas kube-scheduler knows
        where it is. A question that was answered late may be about a pod that runs already.
        """
        known = self.state.pod(decision.pod.uid)
        is_open = decision.best < 0 or decision.rivals > 0
        is_open |= PREFERENCES in decision.request.remarks
        if is_open or (known is not None and known.node):
            self.assumed.drop(decision.pod.uid)
            return
        if not decision.request.uid and len(self._strangers()) >= MOST_STRANGERS:
            return
        record = record_on(decision.request, decision.nodes[decision.at[decision.best]])
        mask = sum(1 << slot for slot in decision.slots)
        self.assumed.assume(decision.pod.uid, record, decision.best_node, mask)

    def claim(self, uid: str, node: str, decision: Decision | None) -> tuple[int, ...] | None:
        """Assumes a pod on the node that kube-scheduler chose, and names its GPUs there.

        Until now only the best node was known. None: others have taken the GPUs meanwhile, or
        nobody knows which GPUs the node has.
        """
        pod, at = self.state.pod(uid), self.state.index.get(node)
        known = self.state.request_of(pod) if decision is None and pod is not None else None
        request = known if decision is None else decision.request
        if request is None or isinstance(request, Unreadable):
            return ()
        if at is None:
            return None if request.spec.gpu_count else ()
        nodes = self._nodes(without={uid, *self.assumed.unclaimed()})
        record = record_on(request, nodes[at])
        slots = self._slots_on(request, nodes, at, decision)
        if len(slots) < record["gpu_count"]:
            return None
        mask = sum(1 << slot for slot in slots)
        self.assumed.assume(uid, record, node, mask, is_claimed=True)
        return slots

    def _slots_on(
        self, request: Request, nodes: Nodes, at: int, decision: Decision | None
    ) -> tuple[int, ...]:
        """Chooses GPUs of a node: those of the decision, if it is its best and they are free."""
        if decision is not None and self.state.index.get(decision.best_node) == at:
            milli = record_on(request, nodes[at])["gpu_milli"]
            if (nodes[at]["gpu_milli_left"][[*decision.slots]] >= milli).all():
                return decision.slots
        slots = np.full(at + 1, -1)
        if self.scorer.is_pure:  # another policy would take it for another decision
            with suppress(PolicyError):
                slots = scores_of(self.scorer, request, nodes, _NONE, _NONE).gpu_slots
        return slots_on(request, slots, nodes, at)

    def _request(self, args: ExtenderArgs) -> Request | Unreadable:
        known = self.state.pod(args.pod.uid)
        if known is not None:
            return self.state.request_of(known)
        try:
            return self.state.request(decode("Pod", args.raw_pod))
        except UNREADABLE as error:  # an integer of 5,000 digits, for instance
            return Unreadable(f"{args.pod.namespace}/{args.pod.name}", str(error))

    def find_nodes(self, text: bytes) -> NamesAt | None:
        """Finds the nodes of a JSON list of names, where all are known and nothing is unusual."""
        return self.names.see(self.state.names).find(text)

    def _indices(self, names: Sequence[str]) -> npt.NDArray[np.int64]:
        if isinstance(names, NamesAt):
            return names.at
        found = map(self.state.index.get, names, repeat(-1))
        return np.fromiter(found, np.int64, len(names))

    def _nodes(self, without: Collection[str]) -> Nodes:
        nodes = self.state.nodes
        found = self.assumed.applied(nodes, self.state.index.get, without)
        if found is not nodes:
            return found
        # The state changes its own in place; decisions about the same state share a copy.
        if self._copy is None or self._copy[0] != self.state.version:
            self._copy = self.state.version, nodes.copy()
        return self._copy[1]

    def has_preferences(self, decision: Decision) -> bool:
        """Tells whether kube-scheduler may weigh preferences of pods or nodes, which come first."""
        return self.state.has_preferences(decision.request)

    def decisive_points(self, decision: Decision) -> int:
        """Gives the points behind the best from which on a node cannot win."""
        return MOST if self.has_preferences(decision) else self._settings.decisive_points

    def _target(self, request: Request) -> Target | None:
        if request.group is None or not self._settings.gang_points:
            return None
        gang = self.state.gang_of(request)
        if gang is None:
            return None
        others: Callable[[], Nodes] = lambda: self._nodes(without=gang.waiting)  # noqa: E731
        return self._targets.target(request, gang, others)

    def _points(
        self, scores: npt.NDArray[np.float64], at: Whole, rank: Whole, target: Target | None
    ) -> Whole:
        if target is None:
            return _with_unknown(self._scaled(scores, at, rank), at, at >= 0)
        is_inside = target.flags(self.state.domains)[at] & (at >= 0)
        gang_points = self._settings.gang_points
        points = np.zeros(len(scores), np.int64)
        for group, extra in ((is_inside, gang_points), (~is_inside, 0)):
            own = self._scaled(scores[group], at[group], rank)
            shared = np.maximum(own * (MOST - gang_points) // MOST, 1) + extra
            points[group] = np.where(own > 0, np.minimum(shared, MOST), 0)
        return _with_unknown(points, at, (at >= 0) & ~is_inside)

    def _scaled(self, scores: npt.NDArray[np.float64], at: Whole, rank: Whole) -> Whole:
        """Gives points to nodes that stand in any order."""
        in_order, is_known = np.full(len(rank), HOLD), at >= 0
        in_order[rank[at[is_known]]] = scores[is_known]
        ties = cast("Ties", self._settings.ties)
        points: Whole = np.where(is_known, scaled(in_order, ties)[rank[at]], 0)
        return points


def _fitting(request: Request, nodes: Nodes, at: Whole) -> int:
    """Counts nodes that a pod fits, or some of them: of those asked about, most have room."""
    for few in (at[:FEW_NODES], at):
        count = int((shortages(request, nodes[few]) == 0).sum())
        if count > 1:
            break
    return count


def _with_unknown(points: Whole, at: Whole, is_rival: npt.NDArray[np.bool_]) -> Whole:
    """Gives nodes of which nothing is known the points of their best rival.

    So they neither win nor lose by Podium: kube-scheduler's own scores decide between the two.
    """
    return np.where(at >= 0, points, points[is_rival].max(initial=0))


def scores_of(scorer: Scorer, request: Request, nodes: Nodes, at: Whole, rank: Whole) -> NodeScores:
    """Scores a pod on the nodes asked about, as what it is on the GPUs of each.

    A policy that sees the whole cluster sees no others, in the order that breaks ties.

    Raises:
        PolicyError: the policy fails, or is too slow (LateError).
    """
    about = request.record.tobytes()
    if request.shares is not None:
        about += request.shares.tobytes()
    if scorer.is_pure or not len(nodes):
        return scorer.ask(about, lambda: _by_kind(scorer, request, nodes))
    shown = shown_in_order(nodes, at, rank)
    found = scorer.ask(about, lambda: _by_kind(scorer, request, shown))
    return NodeScores(found.scores[rank], found.gpu_slots[rank])


def shown_in_order(nodes: Nodes, at: Whole, rank: Whole) -> Nodes:
    """Gives the nodes asked about in the order that breaks ties, and others without anything."""
    shown, known = np.zeros_like(nodes), at[at >= 0]
    shown[rank[known]] = nodes[known]
    return shown


def _by_kind(scorer: Scorer, request: Request, nodes: Nodes) -> NodeScores:
    if request.shares is None:
        return scorer.scores(request.record, nodes)
    scores, slots = np.full(len(nodes), HOLD), np.full(len(nodes), -1)
    for kind, (count, _) in enumerate(request.shares.tolist()):
        which = np.flatnonzero(nodes["gpu_model"] == kind)
        if count != IMPOSSIBLE and len(which):
            found = scorer.scores(record_on(request, nodes[which[0]]), nodes)
            scores[which], slots[which] = found.scores[which], found.gpu_slots[which]
    return NodeScores(scores, slots)


def record_on(request: Request, node: np.void) -> np.void:
    """Gives the record of a pod as it is on the GPUs of a node."""
    if request.shares is None or node["gpu_model"] < 0:
        return cast("np.void", request.record)
    record = request.record.copy()
    record["gpu_count"], record["gpu_milli"] = request.shares[node["gpu_model"]]
    return cast("np.void", record)


def slots_on(request: Request, chosen: Whole, nodes: Nodes, at: int) -> tuple[int, ...]:
    """Names the GPUs of a node: the policy's choice for a part of one, or the tightest that fit."""
    record = record_on(request, nodes[at])
    if chosen[at] >= 0 and record["gpu_count"] == 1 and record["gpu_milli"] < GPU_MILLI:
        return (int(chosen[at]),)
    return tightest_slots(record, nodes[at])
