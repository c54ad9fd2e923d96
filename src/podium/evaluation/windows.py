"""Cuts the arrivals of a recorded trace by time, and draws stretches of them by a seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model import Workload

STRETCHES = 10
"""So many stretches are drawn of a replayed part, each as long as all of them together make it."""

EXCHANGED = 0.03
"""Of the pods of a version of a trace, so many are others of it, met a second time."""

_STRETCH, _VERSION = 9, 10  # streams of a seed


def as_demand(workload: Workload) -> Workload:
    """Lets pods that run already arrive like all others: what is learnt starts on empty nodes."""
    if not workload.bound_to:
        return workload
    return replace(workload, bound_to=(), bound_slots=())


def check_times(workload: Workload) -> None:
    """Refuses pods of which nobody knows when they came and how long they ran."""
    if not workload.has_times:
        others = "choose --fitness inflation, or give arrivals and run times of all pods"
        lacks_run_times = bool(workload.namespaces) and workload.arrival_s is not None
        raise UsageError(
            "the trace has no times, so nothing can be learnt about waiting",
            where=workload.name,
            hint=f"add --duration 2h, {others}" if lacks_run_times else others,
        )


def between(workload: Workload, since: float, until: float) -> Workload:
    """Keeps the pods from one share of the arrivals to another, in order of arrival."""
    if workload.arrival_s is None:
        raise UsageError(
            "the trace has no arrival times, so no part of it can be held out by time",
            where=workload.name,
            hint="add --held-out seed",
        )
    count = len(workload)
    kept = np.arange(round(since * count), round(until * count))
    if not len(kept):
        raise UsageError(
            f"{count} pods are too few to hold a part of them out by time",
            where=workload.name,
            hint="add --held-out seed, or give a longer trace",
        )
    return _regrouped(workload.by_arrival().taken(kept), np.zeros(len(kept), np.int64))


def drawn(workload: Workload, seed: int) -> Workload:
    """Draws as many arrivals as there are, in stretches with the gaps that they were recorded with.

    A recorded replay is the same for every seed, and one run proves nothing. Stretches keep bursts
    and what follows a long job together (the moving block bootstrap of Kuensch, Annals of
    Statistics 1989, with blocks that go on at the beginning).
    """
    check_times(workload)
    arriving, count = workload.by_arrival(), len(workload)
    assert arriving.arrival_s is not None
    size = max(1, count // STRETCHES)
    random = np.random.default_rng([seed, _STRETCH])
    starts = random.integers(count, size=-(-count // size))
    order = ((starts[:, None] + np.arange(size)) % count).ravel()[:count]
    gaps_s = np.diff(arriving.arrival_s, prepend=arriving.arrival_s[0])
    gaps_s[0] = gaps_s.sum() / max(1, count - 1)  # nobody knows what came before the first
    arrival_s = np.cumsum(gaps_s[order]) - gaps_s[order[0]]
    taken = _regrouped(arriving.taken(order), np.arange(count) // size)
    return replace(taken, arrival_s=arrival_s)


def version(workload: Workload, seed: int, shift_s: float) -> Workload:
    """Draws a version of a recorded trace: as it was on the whole, and otherwise in every detail.

    Arrivals are moved by a normal deviate of `shift_s`, and some pods give way to others. What
    depends on who came a moment before whom differs; bursts, long jobs and their order stay.
    """
    check_times(workload)
    arriving, count = workload.by_arrival(), len(workload)
    random = np.random.default_rng([seed, _VERSION])
    is_kept = random.random(count) >= EXCHANGED
    again = random.integers(count, size=count - int(is_kept.sum()))
    chosen = np.sort(np.concatenate([np.flatnonzero(is_kept), again]))
    assert arriving.arrival_s is not None
    arrival_s = np.maximum(0.0, arriving.arrival_s[chosen] + shift_s * random.normal(size=count))
    order = np.argsort(arrival_s, kind="stable")
    taken = _regrouped(arriving.taken(chosen[order]), np.zeros(count, np.int64))
    return replace(taken, arrival_s=arrival_s[order])


def _regrouped(workload: Workload, stretch: npt.NDArray[np.int64]) -> Workload:
    """Makes a gang of its own of what each stretch has of a gang; a part waits for no other."""
    if not workload.gangs:
        return workload
    gang: Any = workload.pods["gang"]
    number: dict[tuple[int, int], int] = {}
    pods = workload.pods.copy()
    for pod in np.flatnonzero(gang):
        key = (int(stretch[pod]), int(gang[pod]) - 1)
        pods["gang"][pod] = number.setdefault(key, 1 + len(number))
    sizes = np.bincount(pods["gang"], minlength=len(number) + 1)[1:].tolist()
    rules = workload.gang_rules
    own = tuple(
        replace(rules[old], minimum=min(rules[old].minimum, size))
        for (_, old), size in zip(number if rules else (), sizes, strict=False)
    )
    names = tuple(workload.gangs[old] for _, old in number)
    return replace(workload, pods=pods, gangs=names, gang_rules=own)
