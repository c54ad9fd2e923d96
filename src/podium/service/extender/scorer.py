"""Scores pods by one policy, and keeps the scores of pods that ask for the same.

A pair policy is a pure function of two records. So the scores of a shape of pod stay true on every
node whose record has not changed since; only the others are scored again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.model.records import ANY_MODEL, GPU_MILLI, POD
from podium.model.workload import Shapes
from podium.policies import PairPolicy
from podium.policies.policy import Policy
from podium.policies.session import ClusterSession, NodeScores, PairSession, is_same_table
from podium.policies.terms import term_values
from podium.service.extender.guard import Guard

MOST_SHAPES = 512
"""Shapes of pods whose scores are kept; the one not asked for longest goes first."""

WARM_S = 10.0
"""How long the commonest shapes are scored ahead of time."""

Nodes = npt.NDArray[Any]
T = TypeVar("T")


class Scorer:
    """Scores by a policy whose table is prepared from recent pods."""

    def __init__(
        self, policy: Policy, shapes: Shapes, guard: Guard | None = None,
        before: Scorer | None = None,
    ) -> None:  # fmt: skip
        self.policy = policy
        self.shapes = shapes
        self._guard = guard  # None: nobody is in a hurry
        self._before = before  # whose scores stay true where the table is the same
        self._session: PairSession | ClusterSession | None = None
        self._changes = Changes()
        self._rows: OrderedDict[bytes, _Row] = OrderedDict()

    @property
    def is_pure(self) -> bool:
        """Returns whether a score depends on the pod and one node alone."""
        return isinstance(self.policy, PairPolicy)

    @property
    def terms(self) -> Callable[[np.void, Nodes, int], dict[str, float]]:
        """Returns what takes a score on one node apart."""
        return partial(term_values, self.policy, self.session())

    def session(self) -> PairSession | ClusterSession:
        """Opens the session once: it runs `prepare`, or starts the chooser."""
        found = self._session
        if found is None:
            found = self._session = self.policy.session(self.shapes)
            self._keep_scores(found)
        return found

    def _keep_scores(self, session: PairSession | ClusterSession) -> None:
        before, self._before = self._before, None
        known = None if before is None else before._session
        if before is None or not isinstance(known, PairSession):
            return
        if isinstance(session, PairSession) and is_same_table(session.table, known.table):
            self._changes, self._rows = before._changes, before._rows

    def ask(self, about: bytes, work: Callable[[], T], limit_s: float | None = None) -> T:
        """Runs something that scores by the policy, for a limited time.

        Raises:
            LateError: it takes longer, or the policy was late too often.
        """
        if self._guard is None:
            return work()
        return self._guard.ask(about, work, self._start_again, limit_s)

    def _start_again(self) -> None:
        """Leaves what it keeps to a thread that does not end, and which may still write to it."""
        self._changes, self._rows = Changes(), OrderedDict()
        if not self.is_pure:
            self._session = None  # it lets one thread in at a time

    def scores(self, pod: np.void, nodes: Nodes) -> NodeScores:
        """Scores a pod on all nodes; what is returned changes with the next call."""
        session, changes, rows = self.session(), self._changes, self._rows
        if not self.is_pure:
            return session.scores(pod, nodes)
        if not changes.see(nodes):
            rows.clear()
        key = pod.tobytes()
        row = rows.get(key)
        if row is None:
            row = rows[key] = _Row(session.scores(pod, nodes))
            if len(rows) > MOST_SHAPES:
                rows.popitem(last=False)
        else:
            rows.move_to_end(key)
            changed = changes.since(row.seen)
            if len(changed):
                row.update(changed, session.scores(pod, nodes[changed]))
        row.seen = changes.count
        return row.found

    def warm(self, nodes: Nodes) -> Scorer:
        """Compiles, and scores the commonest pods: nobody is to wait for their first scores."""
        self.compile_for(nodes.dtype)
        for _, score in self.first_scores(nodes):
            score()
        return self

    def first_scores(self, nodes: Nodes) -> Iterator[tuple[bytes, Callable[[], NodeScores]]]:
        """Lists what scores the commonest pods, by what they ask for, for a limited time."""
        until_s = time.monotonic() + WARM_S
        if not self.is_pure:
            return  # it would take them for pods that are there
        common = np.argsort(-self.shapes.weights, kind="stable")[:MOST_SHAPES]
        for pod in self.shapes.pods[common]:
            if time.monotonic() > until_s:
                return
            yield pod.tobytes(), partial(self.scores, pod, nodes)

    def compile_for(self, dtype: np.dtype[Any]) -> None:
        """Compiles what scores nodes with such records; a cluster policy remembers none of it."""
        session = self.session() if self.is_pure else self.policy.session(self.shapes)
        if isinstance(session, PairSession):
            session.compile(dtype)
            return
        with suppress(PolicyError):  # it fails on a pod that is not there
            session.scores(*_example(dtype))

    def stand_in(self) -> Scorer:
        """Returns a scorer that can be asked about pods that are not there."""
        return self if self.is_pure else Scorer(self.policy, self.shapes, self._guard)

    def refresh(self, shapes: Shapes) -> Scorer:
        """Returns a scorer whose table is prepared anew; a cluster policy keeps its memory.

        Scores stay where the table does; others are worked out when they are asked for.
        """
        if self.is_pure:
            return Scorer(self.policy, shapes, self._guard, before=self)
        self.ask(b"", partial(self.session().refresh, shapes))
        self.shapes = shapes
        return self


def _example(dtype: np.dtype[Any]) -> tuple[np.void, Nodes]:
    """Makes a pod and a node that it fits on."""
    pod, node = np.zeros(1, POD), np.zeros(1, dtype)
    pod["cpu_milli"], pod["memory_mib"], pod["gpu_count"], pod["gpu_milli"] = 1000, 1024, 1, 500
    pod["gpu_models"] = ANY_MODEL
    for name in ("cpu_milli_left", "cpu_milli_total", "memory_mib_left", "memory_mib_total"):
        node[name] = 65536
    node["gpu_count"], node["gpu_milli_left"][:, 0] = 1, GPU_MILLI
    return pod[0], node


class Changes:
    """Finds out which node records changed since some time, which it counts in calls."""

    def __init__(self) -> None:
        self.count = 0
        self._words = np.zeros((0, 0), np.uint64)
        self._changed_at = np.zeros(0, np.int64)  # (num_nodes,) the count of the last change

    def see(self, nodes: Nodes) -> bool:
        """Looks at the nodes; returns whether they are as many and of the same kind as before."""
        words = np.ascontiguousarray(nodes).view(np.uint64).reshape(len(nodes), nodes.itemsize // 8)
        self.count += 1
        if words.shape != self._words.shape:
            self._words = words.copy()
            self._changed_at = np.full(len(nodes), self.count)
            return False
        changed = np.flatnonzero((self._words != words).any(axis=1))
        self._words[changed] = words[changed]
        self._changed_at[changed] = self.count
        return True

    def since(self, count: int) -> npt.NDArray[np.int64]:
        """Lists the nodes that changed after a count."""
        return np.flatnonzero(self._changed_at > count)


class _Row:
    """Holds the scores of one shape."""

    __slots__ = ("found", "seen")

    def __init__(self, found: NodeScores) -> None:
        self.found = found
        self.seen = 0  # the count of changes that the scores know of

    def update(self, which: npt.NDArray[np.int64], found: NodeScores) -> None:
        """Replaces the scores of some nodes."""
        self.found.scores[which] = found.scores
        self.found.gpu_slots[which] = found.gpu_slots
