"""Says why a pod was not placed: one reason that counts most, and how many nodes have which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.files.excerpt import escaped
from podium.model.constraints import UNCONSTRAINED
from podium.sim.feasible import Moment, moment_at
from podium.sim.filters import Filter, filters_of, would_fit_empty
from podium.sim.result import HELD, HELD_BACK, NO_ROOM, PLACED, Result

OTHER_REASONS = ("gang", "held", "room")
"""Reasons that no node has; the others are those of `podium.sim.filters.Reason`."""

FITS_NOW = "node(s) had room later"
WAITING = "node(s) were not tried"
LEVEL_NAMES = ("", "rack", "block", "zone")

Flags = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Tells why no node took a pod."""

    reason: str  # of `Reason` or OTHER_REASONS; empty where a node could take the pod
    message: str  # one line, in the manner of kube-scheduler
    counts: dict[str, int]  # nodes by what they said, the commonest first; all nodes are counted
    would_fit_empty: bool  # a node on which nothing runs could take it


def refusal_of(result: Result, pod: int) -> Refusal | None:
    """Says why a pod was not placed, at the end of its run; nothing of one that was.

    Where nothing leaves, pods are dropped as they arrive. One that a node could take in the end,
    since others it wants to be near came later, is judged as it arrived.
    """
    if result.status[pod] == PLACED:
        return None
    memo: dict[Any, Refusal] = result.derived.setdefault("refusals", {})
    gang = _waiting_gang(result, pod)
    key = ("gang", gang) if gang else (int(result.status[pod]), refused_alike(_end(result), pod))
    if key not in memo:
        memo[key] = _of_gang(result, gang) if gang else _at_end(result, pod)
    found = memo[key]
    if found.reason == "room" and result.plan.protocol.name == "inflation" and pod:
        before = refusal_at(moment_at(result, int(result.changes_after[pod - 1])), pod)
        return before if before.reason else found
    return found


def refusal_at(moment: Moment, pod: int) -> Refusal:
    """Says why nodes refuse a pod at a moment; the reason is empty where one could take it."""
    return _refusal(moment, pod, filters_of(moment, pod), "")


def refused_alike(moment: Moment, pod: int) -> tuple[Any, ...]:
    """Gives the same of pods that nodes refuse in the same words.

    Pods of one line fit alike, but what keeps them from a node may be a taint or a selector.
    """
    arrivals = moment.plan.arrivals
    own = arrivals.constraints[pod] if arrivals.constraints else UNCONSTRAINED
    asked, memory = arrivals.gpu_asked, arrivals.gpu_memory_mib
    return (
        moment.line(pod),
        own.on_nodes,
        arrivals.gpu_specs[pod],
        None if asked is None else asked[pod].tobytes(),
        None if memory is None else int(memory[pod]),
    )


def count_reasons(result: Result) -> dict[str, int]:
    """Counts the pods that were not placed by reason, the commonest first."""
    behind = np.flatnonzero(result.status != PLACED).tolist()
    found = (refusal_of(result, pod) for pod in behind)
    return dict(Counter(each.reason for each in found if each is not None).most_common())


def _end(result: Result) -> Moment:
    if "end" not in result.derived:
        result.derived["end"] = moment_at(result)
    end: Moment = result.derived["end"]
    return end


def _at_end(result: Result, pod: int) -> Refusal:
    moment = _end(result)
    filters = filters_of(moment, pod)
    if result.status[pod] == HELD:
        return replace(_refusal(moment, pod, filters, HELD_BACK), reason="held", message=HELD_BACK)
    found = _refusal(moment, pod, filters, FITS_NOW)
    return found if found.reason else replace(found, reason="room", message=NO_ROOM)


def _refusal(moment: Moment, pod: int, filters: list[Filter], accepting: str) -> Refusal:
    told = _told(filters, len(moment.plan.cluster))
    is_of_pod = any(each.is_of_pod for each in filters)
    counts = {text: count for text, _, count in told}
    total = len(moment.plan.cluster)
    rest = total - sum(counts.values())
    if rest and accepting:
        counts[accepting] = rest
    return Refusal(
        reason="" if rest else _dominant(filters, _candidates(moment, pod)),
        message=_message(rest, total, told, is_of_pod=is_of_pod),
        counts=counts,
        would_fit_empty=would_fit_empty(moment, pod, filters),
    )


def _message(
    available: int, total: int, told: Iterable[tuple[str, str, int]], *, is_of_pod: bool = False
) -> str:
    rows = (text if is_of_pod else f"{count:,} {text}{detail}" for text, detail, count in told)
    said = ", ".join(rows)
    return f"{available:,}/{total:,} nodes are available" + (f": {said}" if said else "")


def _told(filters: list[Filter], total: int) -> list[tuple[str, str, int]]:
    """Counts each node once, by the first filter that refuses: text, detail and count."""
    seen = np.zeros(total, bool)
    found: dict[str, list[tuple[Filter, Flags]]] = {}
    for each in filters:
        mine = each.fails & ~seen
        seen |= each.fails
        if mine.any():
            # Manifests name taints and resources.
            found.setdefault(escaped(each.text), []).append((each, mine))
    rows = [
        (text, _shortage(alike), sum(int(mine.sum()) for _, mine in alike))
        for text, alike in found.items()
    ]
    return sorted(rows, key=lambda row: -row[2])


def _shortage(alike: list[tuple[Filter, Flags]]) -> str:
    """Says the most that any node has of what filters of one text find short."""
    # What nodes have left that come near says more than what others do not have.
    near = [each for each in alike if not each[0].is_static] or alike
    first = near[0][0].shortage
    if first is None:
        return ""
    free, nodes = first.free.copy(), np.zeros(len(first.free), bool)
    for each, mine in near:
        if each.shortage is not None:
            free[mine] = each.shortage.free[mine]
        nodes |= mine
    return f" ({replace(first, free=free).told(nodes)})"


def _candidates(moment: Moment, pod: int) -> Flags:
    """Leaves out nodes without GPUs for a pod that asks for some, where others have them."""
    nodes = moment.state.arrays["nodes"]
    has_gpus: Flags = nodes["gpu_count"] > 0
    asks = moment.plan.arrivals.pods["gpu_count"][pod] > 0
    return has_gpus if asks and has_gpus.any() else np.ones(len(nodes), bool)


def _dominant(filters: list[Filter], candidates: Flags) -> str:
    """Picks what most of the nodes lack that come nearest: those that no static filter refuses."""
    is_static = np.any([each.fails & each.is_static for each in filters], axis=0)
    near = candidates & ~is_static
    lacking: dict[str, Flags] = {}
    for each in filters:
        fails = each.fails & near if near.any() else each.fails & candidates & each.is_static
        if fails.any():
            lacking[each.reason] = lacking.get(each.reason, np.zeros_like(fails)) | fails
    return max(lacking, key=lambda reason: int(lacking[reason].sum()))


def _waiting_gang(result: Result, pod: int) -> int:
    """Gives the gang that a pod waits for; 0 if it starts on its own."""
    gangs = result.plan.gangs
    gang = int(gangs.gang_of[pod]) if gangs.is_any else 0
    times_evicted = result.times_evicted
    if not gang or result.status[pod] == HELD or times_evicted[pod]:
        return 0
    if "gang sizes" not in result.derived:
        has_run = result.is_placed | (times_evicted > 0)
        result.derived["gang sizes"] = np.bincount(gangs.gang_of[has_run], minlength=gang)
    placed = result.derived["gang sizes"]
    is_started = gang < len(placed) and placed[gang] >= gangs.minimum[gang]
    return 0 if is_started else gang


def _of_gang(result: Result, gang: int) -> Refusal:
    gangs = result.plan.gangs
    members = np.flatnonzero(gangs.gang_of == gang)
    first, minimum = int(members[0]), int(gangs.minimum[gang])
    name = escaped(result.plan.arrivals.gangs[result.plan.arrivals.pods["gang"][first] - 1])
    if len(members) < minimum:
        said = f'gang "{name}" waits for members ({len(members):,} of {minimum:,} have arrived)'
        filters = filters_of(_end(result), first)
        could = would_fit_empty(_end(result), first, filters)
        return Refusal("gang", said, {WAITING: len(result.plan.cluster)}, could)
    waiting = members[~result.is_placed[members]]
    trial = _trial(result, gang, waiting)
    level = LEVEL_NAMES[gangs.level[gang]]
    said = f'no one {level} holds gang "{name}"' if level else f'gang "{name}" does not fit'
    if not trial.reason:  # another order of pods, or another policy, might have started it
        return replace(trial, reason="gang", message=f"{said} the way its pods were placed")
    return replace(trial, reason="gang", message=f"{said} {trial.message}")


def _trial(result: Result, gang: int, waiting: Whole) -> Refusal:
    """Tries to start a gang at the end of a run, as gangs of the same pods are tried once."""
    gangs, end = result.plan.gangs, _end(result)
    alike = tuple(refused_alike(end, pod) for pod in waiting.tolist())
    missing = int(gangs.minimum[gang]) - int((gangs.gang_of == gang).sum()) + len(waiting)
    key = ("trial", alike, missing, int(gangs.level[gang]), int(gangs.home[gang]))
    memo: dict[Any, Refusal] = result.derived["refusals"]
    if key not in memo:
        memo[key] = _tried(result, gang, waiting, missing)
    return memo[key]


def _tried(result: Result, gang: int, waiting: Whole, missing: int) -> Refusal:
    moment, seated, outside = _best_seats(result, gang, waiting)
    unseated = waiting[~seated]
    next_pod = int(unseated[0] if len(unseated) else waiting[0])
    filters = [*filters_of(moment, next_pod), *outside]
    found = _refusal(moment, next_pod, filters, "node(s) could take its next pod")
    if seated.sum() >= missing or not found.reason:
        return replace(found, reason="")
    verb = "is" if missing == 1 else "are"
    needed = f", {missing:,} {verb} needed" if missing < len(waiting) else ""
    told = f"{seated.sum():,} of {len(waiting):,} pods found a node{needed}"
    return replace(found, message=f"({told}): {found.message}")


def _best_seats(result: Result, gang: int, waiting: Whole) -> tuple[Moment, Flags, list[Filter]]:
    """Finds the domain that holds most of a gang; what is outside refuses the rest of it."""
    gangs, end = result.plan.gangs, _end(result)
    level, home = int(gangs.level[gang]), int(gangs.home[gang])
    if not level:
        return (*end.seated(waiting), [])
    domains = gangs.domains[level - 1]
    listed = [home] if home >= 0 else np.unique(domains[domains >= 0]).tolist()
    tried = [(domain, *end.seated(waiting, level, domain)) for domain in listed]
    domain, moment, seated = max(
        tried, key=lambda each: int(each[2].sum()), default=(-1, end, np.zeros(len(waiting), bool))
    )
    is_outside = (domains != domain) | (domains < 0)
    text = f"node(s) were in another {LEVEL_NAMES[level]}, or in none"
    return moment, seated, [Filter("selector", text, is_outside[result.plan.rank_order])]
