"""Scores pods by one policy, and keeps the scores of pods that ask for the same.

A pair policy is a pure function of two records. So the scores of a shape of pod stay true on every
node whose record has not changed since; only the others are scored again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.workload import Shapes
from podium.policies import PairPolicy
from podium.policies.policy import Policy
from podium.policies.session import NodeScores

MOST_SHAPES = 64
"""Shapes of pods whose scores are kept; the one not asked for longest goes first."""

Nodes = npt.NDArray[Any]


class Scorer:
    """Scores by a policy whose table was prepared from recent pods."""

    def __init__(self, policy: Policy, shapes: Shapes) -> None:
        self.policy = policy
        self.shapes = shapes
        self._session = policy.session(shapes)
        self._rows: OrderedDict[bytes, _Row] = OrderedDict()

    def scores(self, pod: np.void, nodes: Nodes) -> NodeScores:
        """Scores a pod on all nodes; what is returned changes with the next call."""
        if not isinstance(self.policy, PairPolicy):
            return self._session.scores(pod, nodes)
        key = pod.tobytes()
        row = self._rows.get(key)
        if row is None or row.nodes.dtype != nodes.dtype or len(row.nodes) != len(nodes):
            row = self._rows[key] = _Row(nodes.copy(), self._session.scores(pod, nodes))
            if len(self._rows) > MOST_SHAPES:
                self._rows.popitem(last=False)
            return row.found
        self._rows.move_to_end(key)
        changed = row.changed(nodes)
        if len(changed):
            row.update(changed, nodes[changed], self._session.scores(pod, nodes[changed]))
        return row.found

    def warm(self, nodes: Nodes) -> Scorer:
        """Scores the commonest pods ahead of time, so that nobody waits for their first scores."""
        common = np.argsort(-self.shapes.weights, kind="stable")[:MOST_SHAPES]
        for pod in self.shapes.pods[common]:
            self.scores(pod, nodes)
        return self

    def refresh(self, shapes: Shapes) -> Scorer:
        """Returns a scorer whose table is prepared anew; a cluster policy keeps its memory."""
        if isinstance(self.policy, PairPolicy):
            return Scorer(self.policy, shapes)
        self._session.refresh(shapes)
        return self


class _Row:
    """Holds the scores of one shape, and the nodes as they were when scored."""

    __slots__ = ("_words", "found", "nodes")

    def __init__(self, nodes: Nodes, found: NodeScores) -> None:
        self.nodes = nodes
        self._words = _words(nodes)
        self.found = found

    def changed(self, nodes: Nodes) -> npt.NDArray[np.int64]:
        """Lists the nodes whose records differ."""
        return np.flatnonzero((self._words != _words(nodes)).any(axis=1))

    def update(self, which: npt.NDArray[np.int64], nodes: Nodes, found: NodeScores) -> None:
        """Replaces the scores of some nodes."""
        self.nodes[which] = nodes
        self.found.scores[which] = found.scores
        self.found.gpu_slots[which] = found.gpu_slots


def _words(nodes: Nodes) -> npt.NDArray[np.uint64]:
    """Shows records as words, which compare at once."""
    return np.ascontiguousarray(nodes).view(np.uint64).reshape(len(nodes), -1)
