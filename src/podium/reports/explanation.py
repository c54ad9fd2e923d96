"""Explains one decision of a run: the nodes that could take the pod, their scores, and the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UnknownName, UsageError
from podium.model.fit import fits, fitting_slots, is_model_allowed
from podium.policies import HOLD, PairPolicy
from podium.sim.result import PLACED, Result, slots_of
from podium.sim.state_at import state_at

CPU_SHORT = "not enough CPU"
MEMORY_SHORT = "not enough memory"
WRONG_MODEL = "another GPU model is required"
GPU_SHORT = "not enough free GPUs"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that could take the pod."""

    node: str
    score: float | None  # None: the policy refused it
    is_chosen: bool
    cpu_milli_left: int
    memory_mib_left: int
    gpu_milli_left: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one pod was decided."""

    pod: str
    policy: str
    request: dict[str, int]
    node: str  # empty when it was not placed
    reason: str  # why it was not placed
    gpu_slots: tuple[int, ...]
    feasible: int
    reasons: dict[str, int]  # why the other nodes could not take it, and how many
    candidates: tuple[Candidate, ...]  # the best first


def explain(result: Result, name: str, most: int = 5) -> Explanation:
    """Rebuilds the state in which a pod was decided and scores it again."""
    pod = _find(result, name)
    nodes = state_before(result, pod)
    record = result.plan.arrivals.pods[pod]
    feasible = np.array([fits(record, node) for node in nodes])
    chosen = int(result.node[pod]) if result.status[pod] == PLACED else -1
    scores = _scores(result, record, nodes, chosen)
    ranks = np.argsort(result.plan.rank_order)
    ordered = sorted(
        np.flatnonzero(feasible).tolist(), key=lambda node: (-scores[node], ranks[node])
    )
    shown = [node for node in ordered[:most] if node != chosen][: most - 1 if chosen >= 0 else most]
    return Explanation(
        pod=name,
        policy=result.plan.policy.name,
        request={
            key: int(record[key]) for key in ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
        },
        node=result.plan.cluster.names[chosen] if chosen >= 0 else "",
        reason=result.reason(pod),
        gpu_slots=slots_of(int(result.slots[pod])),
        feasible=int(feasible.sum()),
        reasons=_reasons(record, nodes[~feasible]),
        candidates=tuple(
            _candidate(result, nodes, node, scores[node], node == chosen)
            for node in ([chosen] if chosen >= 0 else []) + shown
        ),
    )


def state_before(result: Result, pod: int) -> npt.NDArray[Any]:
    """Returns the nodes as they were when the pod was decided.

    That is before it was placed, before an arrival that was dropped, and at the end for a pod
    that was still offered then.
    """
    return state_at(result, _changes_before(result, pod))


def _changes_before(result: Result, pod: int) -> int:
    placed = np.flatnonzero(result.changes == pod + 1)
    if len(placed):
        return int(placed[0])
    is_dropped = result.plan.protocol.name == "inflation" and result.holds[pod] == 0
    if is_dropped:
        return int(result.changes_after[pod - 1]) if pod else 0
    return len(result.changes)


def _find(result: Result, name: str) -> int:
    names = result.plan.arrivals.names
    if name not in names and name in result.plan.trace.names:
        raise UsageError(
            f'pod "{name}" is in the trace, but was not drawn in this run',
            where=f"{result.plan.protocol.name}, seed {result.plan.seed}",
            hint="use another --seed or a higher --ratio, or --protocol replay or rounds",
        )
    if name not in names:
        raise UnknownName.among("pod", name, set(names))  # some arrive several times
    return names.index(name)


def _scores(
    result: Result, record: Any, nodes: npt.NDArray[Any], chosen: int
) -> npt.NDArray[np.float64]:
    policy, order = result.plan.policy, result.plan.rank_order
    if isinstance(policy, PairPolicy):
        return policy.scores(record, nodes, policy.table(result.plan.trace.shapes()))
    if hasattr(policy.start(result.plan.seed), "scores"):
        found = np.zeros(len(nodes))
        # Choosers see the nodes in rank order.
        found[order] = policy.scores(record, nodes[order])
        return found
    # What a chooser remembered is gone with the run: it is known by its choice alone.
    found = np.full(len(nodes), 0.0 if chosen >= 0 else HOLD)
    found[chosen] = 1.0 if chosen >= 0 else HOLD
    return found


def _reasons(record: Any, nodes: npt.NDArray[Any]) -> dict[str, int]:
    return dict(Counter(_reason(record, node) for node in nodes).most_common())


def _reason(record: Any, node: Any) -> str:
    if record["gpu_count"] and not is_model_allowed(record, node):
        return WRONG_MODEL
    if record["gpu_count"] and len(fitting_slots(record, node)) < record["gpu_count"]:
        return GPU_SHORT
    return CPU_SHORT if record["cpu_milli"] > node["cpu_milli_left"] else MEMORY_SHORT


def _candidate(
    result: Result, nodes: npt.NDArray[Any], node: int, score: float, is_chosen: bool
) -> Candidate:
    record = nodes[node]
    return Candidate(
        node=result.plan.cluster.names[node],
        score=None if score == HOLD else float(score),
        is_chosen=is_chosen,
        cpu_milli_left=int(record["cpu_milli_left"]),
        memory_mib_left=int(record["memory_mib_left"]),
        gpu_milli_left=tuple(record["gpu_milli_left"][: record["gpu_count"]].tolist()),
    )
