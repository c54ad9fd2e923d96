"""Chooses by a weighted sum of scores, some of which are stretched over the nodes that fit."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from podium.model.records import NODE_8, NODE_16, POD
from podium.policies.jit import compiled, fingerprints, keep_on_disk, marked, stamp_of
from podium.policies.policy import Ties

Scale = Literal["as-is", "stretched", "chance"]
Scores = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Term:
    """Weighs one whole-number score of a pod on a node."""

    weight: int
    score: Any  # a plain function of (pod, node); nothing for a term of chance
    scale: Scale = "as-is"


class Mixture:
    """Sums up terms; a policy derives from it and lists them."""

    terms: ClassVar[tuple[Term, ...]] = ()
    ties: ClassVar[Ties] = "rank"

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def choose(self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]) -> float:
        """Gives the node with the highest sum; ties go to the first, or to any."""
        found = self.scores(pod, nodes, feasible)
        best = np.flatnonzero(found == found.max())
        return int(best[0] if self.ties == "rank" else self._random.choice(best))

    def scores(self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]) -> Scores:
        """Gives the weighted sums; the least number there is where the pod does not fit."""
        fitting = np.flatnonzero(feasible)
        total = np.full(len(nodes), np.iinfo(np.int64).min, np.int64)
        total[fitting] = 0
        for term in self.terms:
            total[fitting] += term.weight * self._term(term, pod, nodes, fitting)
        return total

    def _term(self, term: Term, pod: Any, nodes: npt.NDArray[Any], fitting: Scores) -> Scores:
        if term.scale == "chance":
            drawn = np.zeros(len(fitting), np.int64)
            drawn[self._random.integers(len(fitting))] = 100
            return drawn
        found = np.zeros(len(fitting), np.int64)
        _over_nodes(term.score)(np.array([tuple(pod)], POD), nodes, fitting, found)
        return stretched(found) if term.scale == "stretched" else found


def stretched(scores: Scores) -> Scores:
    """Stretches whole scores to 0..100, rounding down; all 0 when they are equal.

    NormalizeScore of hkust-adsl/kubernetes-scheduler-simulator, pkg/simulator/plugin.

    >>> stretched(np.array([10, 13, 12])).tolist()
    [0, 100, 66]
    """
    low, high = scores.min(), scores.max()
    found: Scores = (scores - low) * 100 // max(1, high - low)
    return found


@functools.cache
def _over_nodes(function: FunctionType) -> Any:
    # Kept for the process: every run starts a new chooser of the same class.
    import numba

    records = (repr(POD.descr), repr(NODE_8.descr), repr(NODE_16.descr))
    stamp = stamp_of([*records, *fingerprints([function])])
    score = compiled(function, stamp[:24])

    def over_nodes(pods: Any, nodes: Any, picked: Any, out: Any) -> None:
        for i in range(len(picked)):
            out[i] = score(pods[0], nodes[picked[i]])

    made = numba.njit(marked(over_nodes, stamp[:24]))
    keep_on_disk(made, over_nodes, stamp)
    return made
