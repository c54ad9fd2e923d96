"""Plays the cluster that a policy alone would have made of the pods that really came.

A twin begins as the cluster is. From then on its nodes come, change and go with the real ones, and
so do its pods; but the policy chooses where each runs, at once if it fits. Who fits nowhere waits,
and is tried again when something leaves, by priority and then by arrival.

What it does not know: pod affinity and spread, ports, other resources, volumes, devices that are
claimed, gangs, preemption. Pods end when the real ones do, whenever they started here.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.kube.nodes import NodeTable, Taken
from podium.kube.pod import LivePod, Request, request_for
from podium.kube.state import LiveState
from podium.model.cluster import NodeSpec
from podium.model.constraints import Constraints
from podium.model.fit import pod_class
from podium.model.workload import PodSpec
from podium.policies import HOLD
from podium.service.extender.admission import Admission
from podium.service.extender.prioritizer import record_on, scores_of, slots_on
from podium.service.extender.scorer import Scorer
from podium.service.extender.shortage import shortages

Nodes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Seat:
    """Is where a pod runs in a twin, and what it takes there."""

    node: str
    cpu_milli: int
    memory_mib: int
    slots: tuple[int, ...]
    gpu_milli: int  # of each of them
    gpu_class: int


@dataclass(frozen=True, slots=True)
class Waiter:
    """Is a pod that asks for a node in a twin."""

    uid: str
    number: int  # in order of arrival
    since_s: float
    spec: PodSpec


class _Line(NamedTuple):
    """Tells pods apart that may not find room alike."""

    priority: int
    asked: tuple[int, int, int, int, int, str]
    constraints: Constraints


class Twin:
    """Holds the nodes and pods of a cluster as one policy would have placed them."""

    def __init__(
        self, state: LiveState, scorer: Scorer, tie_scorer: Scorer | None,
        on_start: Callable[[Waiter, float], None],
    ) -> None:  # fmt: skip
        self.scorer = scorer
        self.waiting: dict[str, Waiter] = {}
        self.seats: dict[str, Seat] = {}
        self._state = state
        self._on_start = on_start  # hears who gets a node, and when
        self._table = NodeTable()
        self._on: dict[str, dict[str, Seat]] = {}  # by node
        self._numbers: dict[str, int] = {}
        self._count = 0
        self._lines: dict[_Line, list[tuple[int, str]]] = {}
        self._heard_nodes: dict[str, None] = {}
        self._heard_pods: dict[str, float] = {}  # since when
        self._is_roomier = False
        self._admission = Admission()
        self._rank = np.zeros(0, np.int64)
        self._tie_scorer = tie_scorer  # None: among equals, the first by name is taken
        self._random = np.random.default_rng(0)

    @property
    def nodes(self) -> Nodes:
        """Gives the node records, with gaps."""
        return self._table.nodes

    @property
    def specs(self) -> list[NodeSpec | None]:
        """Describes the nodes in the order of their records, None is a gap."""
        return self._table.specs

    def hear(self, kind: Literal["Node", "Pod"], name: str, now_s: float) -> None:
        """Notes that a node or a pod of the real cluster is not what it was."""
        if kind == "Node":
            self._heard_nodes[name] = None
        else:
            self._heard_pods.setdefault(name, now_s)

    def begin(self, since_s: Callable[[str], float], now_s: float) -> Iterator[None]:
        """Takes the cluster as it is, piece by piece."""
        self._heard_nodes = dict.fromkeys(self._state.index)
        yield from self._follow_nodes(now_s)
        for uid in list(self._state.pods):
            pod = self._state.pods.get(uid)
            if pod is not None and pod.node and not pod.is_finished:
                self._copy(pod)
                yield
        for pod in sorted(self._state.pending, key=lambda pod: since_s(pod.uid)):
            self._queue(self._waiter(pod.uid, pod.spec, since_s(pod.uid)))
        yield from self._retry(now_s)

    def work(self, since_s: Callable[[str], float], now_s: float) -> Iterator[None]:
        """Does what was heard of, piece by piece: departures, nodes, those who wait, arrivals."""
        self._state.index  # noqa: B018 - what changed is worked out, and heard of, by looking
        heard, self._heard_pods = self._heard_pods, {}
        coming: list[str] = []
        for uid, at_s in heard.items():
            pod = self._state.pods.get(uid)
            if pod is not None and not _is_over(pod):
                coming.append(uid)
            else:
                self._leave(uid)
                now_s = at_s
                yield
        yield from self._follow_nodes(now_s)
        if self._is_roomier:
            yield from self._retry(now_s)
        for uid in coming:
            pod = self._state.pods.get(uid)
            if pod is not None:
                self._offer(pod, since_s(uid), heard[uid])
                yield

    # Pods.

    def _offer(self, pod: LivePod, since_s: float, now_s: float) -> None:
        if pod.uid in self.seats:
            self._resize(pod)
        elif pod.draft.standing.stays:
            if pod.node:
                self._copy(pod)
        elif pod.is_pending or pod.node:
            known = self.waiting.get(pod.uid)
            if known is not None and _line(known.spec) == _line(pod.spec):
                return
            if known is not None:
                self._unqueue(known)
            waiter = self._waiter(pod.uid, pod.spec, since_s)
            if not self._place(waiter, now_s):
                self._queue(waiter)

    def _copy(self, pod: LivePod) -> None:
        """Lets a pod run where it really runs."""
        spec, kind = pod.spec, 0
        if pod.slots:
            kind = pod_class({"gpu_count": len(pod.slots), "gpu_milli": pod.gpu_milli})
        amounts = spec.cpu_milli, spec.memory_mib
        self._sit(pod.uid, Seat(pod.node, *amounts, pod.slots, pod.gpu_milli, kind))

    def _resize(self, pod: LivePod) -> None:
        seat, spec = self.seats[pod.uid], pod.spec
        if (seat.cpu_milli, seat.memory_mib) != (spec.cpu_milli, spec.memory_mib):
            self._is_roomier = True
            amounts = spec.cpu_milli, spec.memory_mib
            self._sit(
                pod.uid, Seat(seat.node, *amounts, seat.slots, seat.gpu_milli, seat.gpu_class)
            )

    def _sit(self, uid: str, seat: Seat) -> None:
        self.seats[uid] = seat
        self._on.setdefault(seat.node, {})[uid] = seat
        self._fill(seat.node)

    def _leave(self, uid: str) -> None:
        """Takes out a pod that is really gone."""
        self._numbers.pop(uid, None)
        waiter = self.waiting.get(uid)
        if waiter is not None:
            self._unqueue(waiter)
        seat = self.seats.pop(uid, None)
        if seat is not None:
            del self._on[seat.node][uid]
            self._fill(seat.node)
            self._is_roomier = True

    # Waiting.

    def _waiter(self, uid: str, spec: PodSpec, since_s: float) -> Waiter:
        self._count += 1
        return Waiter(uid, self._numbers.setdefault(uid, self._count), since_s, spec)

    def _queue(self, waiter: Waiter) -> None:
        self.waiting[waiter.uid] = waiter
        insort(self._lines.setdefault(_line(waiter.spec), []), (waiter.number, waiter.uid))

    def _unqueue(self, waiter: Waiter) -> None:
        del self.waiting[waiter.uid]
        key = _line(waiter.spec)
        line = self._lines[key]
        del line[bisect_left(line, (waiter.number, waiter.uid))]
        if not line:
            del self._lines[key]

    def _retry(self, now_s: float) -> Iterator[None]:
        """Tries all who wait; where one finds no room, nobody behind it in its line does."""
        self._is_roomier = False
        first = [(-key.priority, *line[0]) for key, line in self._lines.items()]
        heapq.heapify(first)
        while first:
            priority, _, uid = heapq.heappop(first)
            waiter = self.waiting[uid]
            if self._place(waiter, now_s):
                self._unqueue(waiter)
                line = self._lines.get(_line(waiter.spec))
                if line:
                    heapq.heappush(first, (priority, *line[0]))
            yield

    # Nodes.

    def _follow_nodes(self, now_s: float) -> Iterator[None]:
        heard, self._heard_nodes = self._heard_nodes, {}
        has_changed = False
        for name in heard:
            spec = self._state.node(name)
            if spec == self._table.spec(name):
                continue
            has_changed = self._is_roomier = True
            if spec is None:
                self._remove(name, now_s)
            else:
                self._table.put(spec)
                self._fill(name)
            yield
        if has_changed:
            self._admission.see(self._table.specs)
            self._rank = np.argsort(np.argsort(np.array(self._table.names)))

    def _remove(self, name: str, now_s: float) -> None:
        """Takes a node away; its pods wait again, for as long as the real ones are there."""
        self._table.remove(name)
        for uid in self._on.pop(name, {}):
            del self.seats[uid]
            pod = self._state.pods.get(uid)
            if pod is not None and not pod.draft.standing.stays:
                self._queue(self._waiter(uid, pod.spec, now_s))

    def _fill(self, name: str) -> None:
        """Writes the record of a node from its description and the pods on it."""
        spec = self._table.spec(name)
        if spec is None:
            return
        taken = Taken(spec.gpu_count)
        for seat in self._on.get(name, {}).values():
            taken.cpu_milli += seat.cpu_milli
            taken.memory_mib += seat.memory_mib
            slots = (slot for slot in seat.slots if slot < spec.gpu_count)
            taken.take(slots, seat.gpu_milli, seat.gpu_class)
        self._table.fill(name, taken)

    # Placing.

    def _place(self, waiter: Waiter, now_s: float) -> bool:
        """Lets a pod run on the node that the policy likes best; tells whether it fits on any."""
        spec = waiter.spec
        request = request_for(spec, self._table.gpu_kinds, self.nodes)
        at, chosen = self._best(request)
        if at < 0:
            return False
        record = record_on(request, self.nodes[at])
        slots = slots_on(request, chosen, self.nodes, at)
        gpu_milli, name = int(record["gpu_milli"]), self._table.names[at]
        seat = Seat(name, spec.cpu_milli, spec.memory_mib, slots, gpu_milli, pod_class(record))
        self._sit(waiter.uid, seat)
        self._on_start(waiter, now_s)
        return True

    def _best(self, request: Request) -> tuple[int, npt.NDArray[np.int64]]:
        """Finds the best node, -1: none, and the GPU that the policy chose on each.

        A pod that the policy refuses everywhere goes to the first node that takes it: in the real
        cluster kube-scheduler would place it as well.
        """
        nodes, admits = self.nodes, self._admission.flags(request.spec.constraints)
        try:
            found = scores_of(self.scorer, request, nodes, np.flatnonzero(admits), self._rank)
            scores, chosen = np.where(admits, found.scores, HOLD), found.gpu_slots
        except PolicyError:
            scores, chosen = np.full(len(nodes), HOLD), np.full(len(nodes), -1)
        best = scores.max(initial=HOLD)
        if best > HOLD:
            return self._settled(request, np.flatnonzero(scores == best)), chosen
        fitting = np.flatnonzero(admits & (shortages(request, nodes) == 0))
        return self._first(fitting) if len(fitting) else -1, chosen

    def _settled(self, request: Request, ties: npt.NDArray[np.int64]) -> int:
        """Chooses among equal nodes: as kube-scheduler would on its own, and then by lot."""
        if self._tie_scorer is None or len(ties) == 1:
            return self._first(ties)
        everywhere = np.arange(len(ties))
        with suppress(PolicyError):
            nodes = self.nodes[ties]
            scores = scores_of(self._tie_scorer, request, nodes, everywhere, everywhere).scores
            ties = ties[scores == scores.max()]
        return int(self._random.choice(ties))

    def _first(self, nodes: npt.NDArray[np.int64]) -> int:
        return int(nodes[self._rank[nodes].argmin()])


def _line(spec: PodSpec) -> _Line:
    asked = (
        spec.cpu_milli, spec.memory_mib, spec.gpu_count, spec.gpu_milli, spec.gpu_memory_mib,
        spec.gpu_spec,
    )  # fmt: skip
    return _Line(spec.priority, asked, spec.constraints)


def _is_over(pod: LivePod) -> bool:
    """Tells whether a pod neither runs nor waits any more, or leaves before it ran."""
    is_leaving = pod.draft.standing.deleted_s is not None and not pod.node
    return pod.is_finished or is_leaving
