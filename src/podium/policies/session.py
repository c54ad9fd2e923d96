"""Scores pods one after another, each on all nodes at once, for a live service.

A policy is a value and remembers nothing. Its session holds what lives longer than one decision:
the table that `prepare` made of recent pods, and the chooser of a cluster policy. Any number of
threads may ask a session at once.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from podium.errors import PolicyError, meant_by
from podium.model.fit import fitting_nodes, fitting_slots
from podium.model.records import (
    GPU_MILLI,
    POD,
    Node,
    Pod,
    node_records,
    node_view,
    pod_record,
    pod_view,
)
from podium.model.workload import Shapes
from podium.policies.source import NoNumber, Source, words_of

HOLD = -math.inf
"""A score that refuses a node; a pod refused everywhere is held and offered again."""

Scores = npt.NDArray[np.float64]
Slots = npt.NDArray[np.int64]
Nodes = npt.NDArray[Any] | Sequence[np.void | Node] | np.void | Node
"""Records of nodes in one array, which is not copied; or a list of records and views, or one."""


class NotANumberError(PolicyError, NoNumber):
    """A policy returned something other than a number, for this pod on this node."""


class Chooser(Protocol):
    """Sees the whole cluster and picks a node."""

    def choose(self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]) -> float:
        """Returns the index of a feasible node, or HOLD."""


@dataclass(frozen=True, slots=True, eq=False)
class Situation:
    """Tells what a run knows beside pod and nodes; a chooser with `observe` gets it first.

    Such a chooser also says, as `look_ahead`, how many pods of the queue it wants to see. The
    defaults are those of a pod that comes alone.
    """

    ahead: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0, POD))
    """Pods that are offered next, if nothing else happens."""
    ahead_holds: Slots = field(default_factory=lambda: np.zeros(0, np.int64))
    holds: int = 0  # how often the offered pod was held
    may_hold: bool = False
    round: int = 0
    max_rounds: int = 0  # 0: the run has no rounds
    waiting: int = 0  # pods in the queue
    to_come: int = 0  # pods that have not arrived
    num_pods: int = 1
    gpu_milli_asked: int = 0  # by all that arrived


class Named(Protocol):
    """What an error reports about a policy."""

    @property
    def name(self) -> str:
        """Names the policy."""

    @property
    def source(self) -> Source | None:
        """Finds the line at which it failed, where there is a text."""


class PairScoring(Named, Protocol):
    """What a session needs of a pair policy."""

    @property
    def takes_gpu(self) -> bool:
        """Returns whether a share pod is scored once per GPU slot."""

    def table(self, shapes: Shapes) -> Scores:
        """Prepares the table."""

    def native(self, table_ndim: int, gpu_slots: int) -> Any:
        """Compiles the policy, once; raises PolicyError where it does not compile."""

    def score_pair(self, pod: Any, node: Any, gpu: int, table: Scores) -> float:
        """Scores one pair in plain Python."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeScores:
    """A policy's scores of all nodes for one pod.

    A node on which the pod does not fit has the score HOLD and no slot, as if it were refused.
    """

    scores: Scores  # (num_nodes,) higher is better; HOLD: the pod does not fit, or is refused
    gpu_slots: Slots  # (num_nodes,) the GPU for a part of one; -1 where the policy names none


def is_same_table(one: Scores, other: Scores) -> bool:
    """Tells whether two tables are equal to the bit, so that scores stay what they are."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


class PairSession:
    """Scores by a pair policy: compiled where it compiles, in plain Python otherwise."""

    def __init__(self, policy: PairScoring, table: Scores) -> None:
        self._policy = policy
        self._table = table

    @property
    def table(self) -> Scores:
        """Returns the table by which it scores now."""
        return self._table

    def refresh(self, shapes: Shapes) -> None:
        """Prepares the table again from recent pods; scoring continues meanwhile."""
        self._table = self._policy.table(shapes)

    def scores(self, pod: np.void | Pod, nodes: Nodes) -> NodeScores:
        """Scores a pod on every node; the records must not change meanwhile."""
        pod, nodes = pod_record(pod), node_records(nodes)
        table = self._table  # a refresh may replace it in the midst of this
        scores, gpu_slots = np.full(len(nodes), HOLD), np.full(len(nodes), -1)
        picked = np.flatnonzero(fitting_nodes(pod, nodes))
        if len(picked):
            scores[picked], gpu_slots[picked] = self._score(pod, nodes, picked, table)
        return NodeScores(scores, gpu_slots)

    def compile(self, dtype: np.dtype[Any]) -> None:
        """Compiles what scores nodes with such records, without asking the policy."""
        nobody, nowhere = np.zeros(1, POD)[0], np.zeros(0, np.int64)
        self._score(nobody, np.zeros(0, dtype), nowhere, self._table)

    def _score(
        self, pod: np.void, nodes: npt.NDArray[Any], picked: Slots, table: Scores
    ) -> tuple[Scores, Slots]:
        policy = self._policy
        by_slot = policy.takes_gpu and 0 < pod["gpu_milli"] < GPU_MILLI
        try:
            native = policy.native(table.ndim, nodes.dtype["gpu_milli_left"].shape[0])
        except PolicyError:
            return _score_plain(policy, pod, nodes, picked, table, by_slot=by_slot)
        from podium.policies.batch import score_nodes

        scores, slots, failed = score_nodes(native, pod, nodes, picked, table, by_slot=by_slot)
        if failed >= 0:
            # Compiled code only knows that the policy failed; plain Python can say why.
            _score_plain(policy, pod, nodes, np.array([failed]), table, by_slot=by_slot)
            raise PolicyError(
                "the compiled policy fails where plain Python does not",
                where=f"{policy.name}, {pod_view(pod)} on node {failed}",
                hint="podium policies check shows where they differ",
            )
        return scores, slots


def _score_plain(
    policy: PairScoring, pod: np.void, nodes: npt.NDArray[Any], picked: Slots, table: Scores, *,
    by_slot: bool,
) -> tuple[Scores, Slots]:  # fmt: skip
    scores, slots = np.full(len(picked), HOLD), np.full(len(picked), -1)
    view = pod_view(pod)
    for i, node in enumerate(picked.tolist()):
        shown = node_view(nodes[node])
        for slot in fitting_slots(pod, nodes[node]).tolist() if by_slot else [-1]:
            try:
                score = policy.score_pair(view, shown, slot, table)
            except PolicyError:
                raise  # it says what to do by itself
            except Exception as error:
                raise _failure(policy, error, f"{view} on node {node}") from error
            if not score < math.inf:
                where = f"{policy.name}, {view} on node {node}"
                hint = "return a finite number, or HOLD"
                raise PolicyError("the score is NaN or infinite", where=where, hint=hint)
            if slots[i] < 0 or score > scores[i]:
                scores[i], slots[i] = score, slot
    return scores, slots


class ClusterSession:
    """Asks the one chooser of a cluster policy, which remembers what it chose before."""

    def __init__(self, policy: Named, chooser: Chooser) -> None:
        self._policy = policy
        self._chooser: Any = chooser
        self._turn = threading.RLock()  # a chooser is not written for two threads

    def refresh(self, shapes: Shapes) -> None:
        """Passes recent pods to a chooser that has a `refresh`."""
        if hasattr(self._chooser, "refresh"):
            with self._turn:
                refresh_chooser(self._policy, self._chooser, shapes)

    def scores(self, pod: np.void | Pod, nodes: Nodes) -> NodeScores:
        """Scores a pod on every node; where the chooser only chooses, its choice gets 1.

        Such a chooser treats this as a decision: round-robin moves on. A pod that it holds is
        refused by all nodes.
        """
        pod, nodes = pod_record(pod), node_records(nodes)
        scores, feasible = np.full(len(nodes), HOLD), fitting_nodes(pod, nodes)
        if feasible.any():
            view = pod_view(pod)
            try:
                with self._turn:
                    found = self._ask(view, _read_only(nodes), feasible.copy())
            except PolicyError:
                raise
            except Exception as error:
                raise _failure(self._policy, error, str(view)) from error
            scores[feasible] = found[feasible]
        return NodeScores(scores, np.full(len(nodes), -1))

    def _ask(self, pod: Pod, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]) -> Scores:
        if hasattr(self._chooser, "scores"):
            return np.asarray(self._chooser.scores(pod, nodes, feasible), np.float64)
        choice = self._chooser.choose(pod, nodes, feasible)
        if choice == HOLD:
            return np.full(len(nodes), HOLD)
        if not is_feasible(choice, feasible):
            raise PolicyError(
                f"the policy chose {choice!r}, which is not a node that fits",
                where=f"{self._policy.name}, {pod}",
                hint="return the index of a feasible node, or HOLD",
            )
        scores = np.zeros(len(nodes))
        scores[int(choice)] = 1.0
        return scores


def refresh_chooser(policy: Named, chooser: Any, shapes: Shapes) -> None:
    """Passes recent pods to a chooser; one that fails is the policy's error."""
    try:
        chooser.refresh(shapes)
    except PolicyError:
        raise
    except Exception as error:
        raise _failure(policy, error, "refresh(shapes)") from error


def is_feasible(choice: float, feasible: npt.NDArray[np.bool_]) -> bool:
    """Returns whether a choice is the index of a node on which the pod fits."""
    return 0 <= choice < len(feasible) and choice == int(choice) and bool(feasible[int(choice)])


def _read_only(nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    shown = nodes.view()
    shown.flags.writeable = False
    return shown


def _failure(policy: Named, error: Exception, where: str) -> PolicyError:
    line = policy.source.line_of(error) if policy.source is not None else 0
    kind = NotANumberError if isinstance(error, NoNumber) else PolicyError
    return kind(
        words_of(error),
        where=(f"line {line} of " if line else "") + f"{policy.name}, {where}",
        hint=meant_by(error),
    )
