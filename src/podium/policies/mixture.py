"""Chooses by a weighted sum of scores, some of which are stretched over the nodes that fit."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from types import FunctionType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError
from podium.model.records import POD, node_view, pod_view
from podium.policies.jit import fingerprints, keep_on_disk, marked, stamp_of
from podium.policies.language.kind import NotPortable
from podium.policies.language.translation import Translation, translate
from podium.policies.policy import Ties, own_sources

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
        """Picks the node with the highest sum; ties go to the first, or to any."""
        found = self.scores(pod, nodes, feasible)
        best = np.flatnonzero(found == found.max())
        return int(best[0] if self.ties == "rank" else self._random.choice(best))

    def scores(self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]) -> Scores:
        """Sums up the weighted terms; the least number there is where the pod does not fit."""
        fitting = np.flatnonzero(feasible)
        total = np.full(len(nodes), np.iinfo(np.int64).min, np.int64)
        total[fitting] = 0
        for term in self.terms:
            total[fitting] += term.weight * self._term(term, pod, nodes, fitting)
        return total

    def contributions(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> list[Scores]:
        """Gives what each term adds to the sums of the nodes that fit; chance draws again."""
        fitting = np.flatnonzero(feasible)
        return [term.weight * self._term(term, pod, nodes, fitting) for term in self.terms]

    def _term(self, term: Term, pod: Any, nodes: npt.NDArray[Any], fitting: Scores) -> Scores:
        if term.scale == "chance":
            drawn = np.zeros(len(fitting), np.int64)
            drawn[self._random.integers(len(fitting))] = 100
            return drawn
        found = np.zeros(len(fitting), np.int64)
        pods, nodes = np.array([tuple(pod)], POD), np.ascontiguousarray(nodes)
        over = _over_nodes(term.score, nodes.dtype["gpu_milli_left"].shape[0])
        if not over(pods.ctypes.data, nodes.ctypes.data, nodes.itemsize, fitting, found):
            _explain(term.score, pods[0], nodes[fitting])
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


def _explain(function: FunctionType, pod: np.void, nodes: npt.NDArray[Any]) -> None:
    """Raises, in plain Python, the error at which compiled code could only fail."""
    plain = _translated(function).plain()
    for node in nodes:
        plain(pod_view(pod), node_view(node))
    raise PolicyError(f"the compiled {function.__name__} fails where plain Python does not")


@functools.cache
def _translated(function: FunctionType) -> Translation:
    try:
        return translate(function)
    except NotPortable as error:
        raise PolicyError(
            f"{function.__name__} cannot be compiled: {error.reason}",
            where=f"{function.__code__.co_filename}, line {error.line}",
            hint="use numbers, if, for and math only",
        ) from error


@functools.cache
def _over_nodes(function: FunctionType, gpu_slots: int) -> Any:
    # Kept for the process: every run starts a new chooser of the same class.
    import numba

    from podium.policies.abi import translated_functions
    from podium.policies.language.native_arithmetic import NATIVE
    from podium.policies.language.native_records import shown_node, shown_pod

    names = _translated(function).namespace(NATIVE)
    own = [value for value in names.values() if isinstance(value, FunctionType)]
    stamp = stamp_of([*own_sources(), str(gpu_slots), *fingerprints(own)])
    score = translated_functions(names, stamp[:24])["score"]
    node_at = shown_node[gpu_slots]

    def over_nodes(pod: int, nodes: int, size: int, picked: Any, out: Any) -> bool:
        try:
            for i in range(len(picked)):
                out[i] = score(shown_pod(pod), node_at(nodes + size * picked[i]))
        except Exception:  # noqa: BLE001 - the only form Numba compiles
            return False
        return True

    made = numba.njit(marked(over_nodes, stamp[:24]))
    keep_on_disk(made, over_nodes, stamp)
    return made
