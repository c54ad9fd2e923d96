"""Picks the pods that run, wait or ran, and gives them arrivals and run times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from podium.model.workload import PodSpec
from podium.traces.kubernetes.pod import PodDraft
from podium.traces.kubernetes.run_times import RunTimes

State = Literal["now", "empty", "history"]
STATES: tuple[State, ...] = ("now", "empty", "history")

FINISHED = "finished, so left out"
GATED = "wait for their gates (spec.schedulingGates), so left out"
DELETED = "being deleted, so left out"
HOMELESS = "bound to nodes that the cluster does not have, so left out"
LEFT_OUT = {FINISHED: "finished", GATED: "gated", DELETED: "deleted", HOMELESS: "elsewhere"}
"""Names of pods that take no part, by the remark that says so."""

NOMINATED = (
    "status.nominatedNodeName is not honoured, the room that evicted pods make there is for any pod"
)
UNBOUND = "bound, but read as arrivals because the file has no nodes"

_DRAWS = 2  # a stream of its own beside those of generated nodes and pods


@dataclass(slots=True)
class Present:
    """Holds the pods of a dump that take part in a simulation; bound ones know their node."""

    state: State
    pods: list[PodDraft] = field(default_factory=list)
    # What belongs to a node in a history, where it never arrives but takes its part of the node.
    staying: list[PodDraft] = field(default_factory=list)
    remarks: Counter[str] = field(default_factory=Counter)


def present(drafts: Sequence[PodDraft], nodes: Collection[str], state: State | None) -> Present:
    """Sorts pods by what became of them; by default, running pods stay where they run."""
    is_running = any(d.standing.node and not d.standing.is_finished for d in drafts)
    found = Present(state or ("now" if is_running and nodes else "empty"))
    for draft in drafts:
        reason = _why_left_out(draft, found.state, nodes)
        if reason:
            found.remarks[reason] += 1
            continue
        if found.state == "history" and draft.standing.stays:
            found.staying.append(draft)
            continue
        node = draft.standing.node if found.state == "now" or draft.standing.stays else ""
        found.pods.append(_placed(draft, node))
    if found.state == "now":
        found.pods.sort(key=_turn)
    return found


def _placed(draft: PodDraft, node: str) -> PodDraft:
    """Puts a pod on its node, or off the GPUs on which it ran."""
    spec = draft.spec
    if node:
        standing = draft.standing
        bound = replace(
            spec, node=node, is_terminating=standing.deleted_s is not None,
            is_unready=standing.is_unready,
        )  # fmt: skip
        return replace(draft, spec=bound)
    return replace(draft, spec=replace(spec, gpu_slots=())) if spec.gpu_slots else draft


def _why_left_out(draft: PodDraft, state: State, nodes: Collection[str]) -> str:
    standing = draft.standing
    if standing.is_finished:
        has_run = standing.node and standing.ran_s is not None and not standing.stays
        return "" if state == "history" and has_run else FINISHED
    is_placed = standing.node and (state == "now" or standing.stays)
    if is_placed:
        # Pods may come without nodes: somebody knows where to find them.
        is_known = standing.node in nodes or (state == "now" and not nodes)
        return "" if is_known else HOMELESS
    if state == "history" and standing.node:
        return ""  # it was there, whatever becomes of it
    if standing.is_gated:
        return GATED
    return DELETED if standing.deleted_s is not None else ""


def _turn(draft: PodDraft) -> tuple[bool, float, float]:
    """Puts bound pods first, and then those that wait in the order of their creation."""
    if draft.spec.node:
        return False, 0.0, 0.0
    created_s = float("inf") if draft.created_s is None else draft.created_s
    return True, draft.spec.arrival_s or 0.0, created_s


def anew_note(found: Present) -> str:
    """Says what demand a history or an empty cluster has, and where its nodes begin."""
    finished = sum(draft.standing.is_finished for draft in found.pods)
    staying = len(found.staying) + sum(bool(draft.spec.node) for draft in found.pods)
    running = sum(bool(d.standing.node) and not d.spec.node for d in found.pods) - finished
    waiting = sum(not draft.standing.node for draft in found.pods)
    ran = f", {finished:,} that ran" if found.state == "history" else ""
    told = f"{running:,} that run{ran} and {waiting:,} that wait"
    beside = f"; {staying:,} of DaemonSets and static pods keep their part of the nodes"
    return f"pods arrive anew on empty nodes: {told}" + (beside if staying else "")


def timed(found: Present, gangs: Sequence[str], run_times: RunTimes, seed: int) -> list[PodSpec]:
    """Gives pods their arrivals and run times; those of one gang run alike."""
    lots = np.random.default_rng([seed, _DRAWS]).random(len(found.pods))
    of_gang: dict[str, float] = {}
    specs = []
    for draft, gang, lot, arrival_s in zip(
        found.pods, gangs, lots.tolist(), _arrivals(found), strict=True
    ):
        rank = of_gang.setdefault(gang, lot) if gang else lot
        duration_s = None if _stays(draft) else _duration_s(draft, run_times, rank)
        age_s = (draft.spec.age_s or run_times.age_s(draft.standing)) if draft.spec.node else 0.0
        spec = replace(
            draft.spec, gang=gang, arrival_s=arrival_s, duration_s=duration_s, age_s=age_s
        )
        specs.append(spec)
    if not any(map(_stays, found.pods)):
        return specs
    end_s = _end_s([s for s, d in zip(specs, found.pods, strict=True) if not _stays(d)])
    return [
        replace(spec, duration_s=end_s) if _stays(draft) else spec
        for spec, draft in zip(specs, found.pods, strict=True)
    ]


def _stays(draft: PodDraft) -> bool:
    return draft.standing.stays and bool(draft.spec.node)


def _duration_s(draft: PodDraft, run_times: RunTimes, rank: float) -> float | None:
    standing, now_s = draft.standing, run_times.now_s
    if standing.is_finished and run_times.asked is None:
        return standing.ran_s
    if draft.spec.node and standing.deleted_s is not None and now_s is not None:
        left_s = standing.deleted_s - now_s
        if left_s > 0:  # one past its time hangs, and nobody knows for how long
            return left_s
    total_s = run_times.total_s(draft.spec, standing, rank)
    if total_s is None or not draft.spec.node:
        return total_s
    return total_s - run_times.age_s(standing)


def _arrivals(found: Present) -> Iterator[float | None]:
    """Counts from the earliest pod, or from now where pods run already."""
    waiting = [draft for draft in found.pods if not draft.spec.node]
    earliest_s = min((d.created_s for d in waiting if d.created_s is not None), default=0.0)
    for draft in found.pods:
        if draft.spec.arrival_s is not None:
            yield draft.spec.arrival_s
        elif found.state == "now" or draft.spec.node:
            yield 0.0
        else:
            yield None if draft.created_s is None else draft.created_s - earliest_s


def _end_s(specs: list[PodSpec]) -> float | None:
    """Bounds the time that a run takes, so that pods of DaemonSets outlast the others."""
    durations = [spec.duration_s for spec in specs]
    if any(duration is None for duration in durations):
        return None
    last_s = max((spec.arrival_s or 0.0 for spec in specs), default=0.0)
    running = (spec.duration_s or 0.0 for spec in specs if spec.node)
    waiting = (spec.duration_s or 0.0 for spec in specs if not spec.node)
    return last_s + max(running, default=0.0) + max(waiting, default=0.0)
