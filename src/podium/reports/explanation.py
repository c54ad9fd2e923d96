"""Explains one decision of a run: the nodes that could take the pod, their scores, and the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UnknownName, UsageError
from podium.model import Workload
from podium.model.shares import IMPOSSIBLE
from podium.policies import HOLD, PairPolicy
from podium.sim.execution import table_at
from podium.sim.feasible import Moment, moment_at
from podium.sim.filters import filters_of
from podium.sim.gangs import LEVELS
from podium.sim.result import PLACED, Result, slots_of
from podium.sim.state_at import state_at

CPU_SHORT = "not enough CPU"
MEMORY_SHORT = "not enough memory"
WRONG_MODEL = "another GPU model is required"
GPU_SHORT = "not enough free GPUs"
_WORDS = {
    "cpu": CPU_SHORT, "memory": MEMORY_SHORT, "gpu-model": WRONG_MODEL, "gpu": GPU_SHORT,
    "gpu-share": GPU_SHORT, "gpu-memory": "not enough GPU memory", "cordoned": "unschedulable",
}  # fmt: skip

LEARNED = ("tuned", "found", "trained")
"""Origins of policies in which a machine had a part."""


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
class GangPlace:
    """The gang that a pod belongs to."""

    name: str
    members: int
    placed: int
    minimum: int  # pods that start together
    domain: str  # rack, block or zone that all of them must be in; often empty


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
    is_bound: bool = False  # it ran before the run began, and nobody decided about it
    gang: GangPlace | None = None
    evicted: tuple[str, ...] = ()  # pods that had to leave for it
    times_evicted: int = 0  # how often it had to leave itself
    origin: str = ""  # whose the policy is, where a machine had a part in it

    def as_object(self) -> dict[str, Any]:
        """Describes it as JSON types; what only some pods have is left out of the others."""
        found = asdict(self)
        if not self.is_bound:
            del found["is_bound"]
        if self.gang is None:
            del found["gang"]
        for name in ("evicted", "times_evicted", "origin"):
            if not found[name]:
                del found[name]
        return found


def explain(result: Result, name: str, most: int = 5) -> Explanation:
    """Rebuilds the state in which a pod was decided and scores it again."""
    pod = _find(result, name)
    nodes, moment = state_before(result, pod), moment_at(result, _changes_before(result, pod))
    record, full_names = result.plan.arrivals.pods[pod], result.plan.arrivals.full_names
    feasible = moment.feasible(pod)
    chosen = int(result.node[pod]) if result.status[pod] == PLACED else -1
    scores = _scores(result, pod, nodes, chosen)
    ranks = np.argsort(result.plan.rank_order)
    ordered = sorted(
        np.flatnonzero(feasible).tolist(), key=lambda node: (-scores[node], ranks[node])
    )
    shown = [node for node in ordered[:most] if node != chosen][: most - 1 if chosen >= 0 else most]
    return Explanation(
        pod=full_names[pod],
        policy=result.plan.policy.name,
        request={
            key: int(record[key]) for key in ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
        },
        node=result.plan.cluster.names[chosen] if chosen >= 0 else "",
        reason=result.reason(pod),
        gpu_slots=slots_of(int(result.slots[pod])),
        feasible=int(feasible.sum()),
        reasons=_reasons(moment, pod),
        candidates=tuple(
            _candidate(result, nodes, node, scores[node], node == chosen)
            for node in ([chosen] if chosen >= 0 else []) + shown
        ),
        is_bound=bool(result.is_bound[pod]),
        gang=_gang(result, pod),
        evicted=tuple(full_names[other] for other in result.evicted_for(pod).tolist()),
        times_evicted=int(result.times_evicted[pod]),
        origin=origin if (origin := result.plan.policy.origin) in LEARNED else "",
    )


def state_before(result: Result, pod: int) -> npt.NDArray[Any]:
    """Returns the nodes as they were when the pod was decided.

    That is before it was placed, before an arrival that was dropped, and at the end for a pod
    that was still offered then.
    """
    return state_at(result, _changes_before(result, pod))


def _changes_before(result: Result, pod: int) -> int:
    if result.status[pod] == PLACED:
        return int(np.flatnonzero(result.changes == pod + 1)[-1])
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
    full_names = result.plan.arrivals.full_names
    if name not in names and name in full_names:
        return full_names.index(name)
    if name not in names:
        raise UnknownName.among("pod", name, set(full_names))  # some arrive several times
    return names.index(name)


def _scores(
    result: Result, pod: int, nodes: npt.NDArray[Any], chosen: int
) -> npt.NDArray[np.float64]:
    policy, order = result.plan.policy, result.plan.rank_order
    record = result.plan.arrivals.pods[pod]
    if isinstance(policy, PairPolicy):
        return _pair_scores(result, policy, pod, nodes)
    if hasattr(policy.start(result.plan.seed), "scores"):
        found = np.zeros(len(nodes))
        # Choosers see the nodes in rank order.
        found[order] = policy.scores(record, nodes[order])
        return found
    # What a chooser remembered is gone with the run: it is known by its choice alone.
    found = np.full(len(nodes), 0.0 if chosen >= 0 else HOLD)
    found[chosen] = 1.0 if chosen >= 0 else HOLD
    return found


def _pair_scores(
    result: Result, policy: PairPolicy, pod: int, nodes: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Scores a pod on all nodes, as what it is on the GPUs of each."""
    arrivals, table = result.plan.arrivals, table_at(result.plan, _changes_before(result, pod))
    found = np.full(len(nodes), HOLD)
    shares = _shares(arrivals, pod, nodes)
    for count, milli in np.unique(shares, axis=0).tolist():
        if count == IMPOSSIBLE:
            continue
        record = arrivals.pods[pod : pod + 1].copy()[0]
        record["gpu_count"], record["gpu_milli"] = count, milli
        which = (shares == (count, milli)).all(axis=1)
        found[which] = policy.scores(record, nodes[which], table)
    return found


def _shares(arrivals: Workload, pod: int, nodes: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    """Gives GPUs and milli that a pod takes on each node, spread over as many as have room."""
    model, free = nodes["gpu_model"], nodes["gpu_milli_left"]
    record = arrivals.pods[pod]
    own = np.array([record["gpu_count"], record["gpu_milli"]], np.int32)
    if arrivals.gpu_shares is None:
        return np.tile(own, (len(nodes), 1))
    shares = np.where((model >= 0)[:, np.newaxis], arrivals.gpu_shares[pod, model], own)
    if arrivals.gpu_spreads is None:
        return shares
    is_left = (free >= shares[:, 1:]).sum(axis=1) < shares[:, 0]
    together = free.sum(axis=1, dtype=np.int64)
    for way in range(arrivals.gpu_spreads.shape[2]):
        other = arrivals.gpu_spreads[pod, model, way]
        is_of_all = (other[:, 0] == nodes["gpu_count"]) & (together >= other.prod(axis=1))
        fits = is_left & (other[:, 0] >= 0) & (model >= 0)
        fits &= is_of_all | ((free >= other[:, 1:]).sum(axis=1) >= other[:, 0])
        shares = np.where(fits[:, np.newaxis], other, shares)
        is_left &= ~fits
    return shares


def _reasons(moment: Moment, pod: int) -> dict[str, int]:
    """Counts nodes by the first filter that refuses the pod, the commonest reason first."""
    seen = np.zeros(len(moment.plan.cluster), bool)
    counts: Counter[str] = Counter()
    for each in filters_of(moment, pod):
        count = int((each.fails & ~seen).sum())
        seen |= each.fails
        if count:
            counts[_WORDS.get(each.reason) or _said(each.text)] += count
    return dict(counts.most_common())


def _said(text: str) -> str:
    return text.removeprefix("node(s) ").removeprefix("had ")


def _gang(result: Result, pod: int) -> GangPlace | None:
    gangs, arrivals = result.plan.gangs, result.plan.arrivals
    number = int(gangs.gang_of[pod]) if gangs.is_any else 0
    if not number:
        return None
    is_member = gangs.gang_of == number
    return GangPlace(
        name=arrivals.gangs[int(arrivals.pods["gang"][pod]) - 1],
        members=int(is_member.sum()),
        placed=int((is_member & result.is_placed).sum()),
        minimum=int(gangs.minimum[number]),
        domain=list(LEVELS)[gangs.level[number]],
    )


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
