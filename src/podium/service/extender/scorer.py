"""Scores pods by one policy, and keeps the scores of pods that ask for the same.

A pair policy is a pure function of two records. So the scores of a shape of pod stay true on every
node whose record has not changed since; only the others are scored again.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.model.records import ANY_MODEL, GPU_MILLI, POD
from podium.model.workload import Shapes
from podium.policies import PairPolicy
from podium.policies.policy import Policy
from podium.policies.session import ClusterSession, NodeScores, PairSession, is_same_table
from podium.policies.terms import term_values

MOST_SHAPES = 512
"""Shapes of pods whose scores are kept; the one not asked for longest goes first."""

Nodes = npt.NDArray[Any]


class Scorer:
    """Scores by a policy whose table was prepared from recent pods."""

    def __init__(
        self, policy: Policy, shapes: Shapes, session: PairSession | ClusterSession | None = None
    ) -> None:
        self.policy = policy
        self.shapes = shapes
        self._session = session or policy.session(shapes)
        self.terms = partial(term_values, policy, self._session)  # of a score on one node
        self._changes = Changes()
        self._rows: OrderedDict[bytes, _Row] = OrderedDict()

    @property
    def is_pure(self) -> bool:
        """Returns whether a score depends on the pod and one node alone."""
        return isinstance(self.policy, PairPolicy)

    def scores(self, pod: np.void, nodes: Nodes) -> NodeScores:
        """Scores a pod on all nodes; what is returned changes with the next call."""
        if not self.is_pure:
            return self._session.scores(pod, nodes)
        if not self._changes.see(nodes):
            self._rows.clear()
        key = pod.tobytes()
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = _Row(self._session.scores(pod, nodes))
            if len(self._rows) > MOST_SHAPES:
                self._rows.popitem(last=False)
        else:
            self._rows.move_to_end(key)
            changed = self._changes.since(row.seen)
            if len(changed):
                row.update(changed, self._session.scores(pod, nodes[changed]))
        row.seen = self._changes.count
        return row.found

    def warm(self, nodes: Nodes) -> Scorer:
        """Compiles, and scores the commonest pods: nobody is to wait for their first scores."""
        self.compile_for(nodes.dtype)
        if not self.is_pure:
            return self  # it would take them for pods that are there
        common = np.argsort(-self.shapes.weights, kind="stable")[:MOST_SHAPES]
        for pod in self.shapes.pods[common]:
            self.scores(pod, nodes)
        return self

    def compile_for(self, dtype: np.dtype[Any]) -> None:
        """Compiles what scores nodes with such records; a cluster policy remembers none of it."""
        pod, node = _example(dtype)
        session = self._session if self.is_pure else self.policy.session(self.shapes)
        with suppress(PolicyError):  # it fails on a pod that is not there
            session.scores(pod, node)

    def refresh(self, shapes: Shapes) -> Scorer:
        """Returns a scorer whose table is prepared anew; a cluster policy keeps its memory.

        Scores stay where the table does; others are worked out when they are asked for.
        """
        if isinstance(self._session, PairSession):
            session = self.policy.session(shapes)
            assert isinstance(session, PairSession)
            if not is_same_table(session.table, self._session.table):
                return Scorer(self.policy, shapes, session)
        else:
            self._session.refresh(shapes)
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
        words = np.ascontiguousarray(nodes).view(np.uint64).reshape(len(nodes), -1)
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
