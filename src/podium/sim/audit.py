"""Audits the figures of a run: takes them again pod by pod, as nothing that made them does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from podium.model.records import GPU_MILLI
from podium.model.state import occupied
from podium.model.workload import gpu_demand
from podium.sim.bound import placed_records
from podium.sim.metrics import Metrics, Waiting
from podium.sim.recount import Recount, recount
from podium.sim.result import HELD, PLACED, UNPLACED, Result
from podium.sim.usage import Usage, usage_of

_SLACK = 1e-9
"""By how much sums in another order may differ, relative to the larger."""

Found = Iterator[str]


def audit(result: Result, metrics: Metrics) -> Recount:
    """Counts a run again, and says which of its figures do not follow from its placements."""
    found = recount(result)
    if not found.is_possible:
        return found
    return Recount((*_usage(result, usage_of(result)), *_figures(result, metrics)))


def _usage(result: Result, usage: Usage) -> Found:
    """At every moment, what is in use and what is fragmented are parts of what there is."""
    total = result.plan.cluster.gpu_milli_total
    history = result.history
    stints = history.stint_of
    milli = history.records["gpu_milli"][stints].astype(np.int64)
    steps = np.sign(history.changes) * np.bitwise_count(history.slots[stints]) * milli
    used = np.concatenate([[0], np.cumsum(steps)])
    if not np.array_equal(used, usage.gpu_milli):
        yield "the course of the GPUs held is not that of the placements"
    if _is_overcommitted(result):
        return
    slack = _SLACK * max(1, total)
    is_possible = (usage.fragment_milli >= -slack) & (usage.fragment_milli + used <= total + slack)
    for moment in np.flatnonzero(~is_possible).tolist():
        lost, there = usage.fragment_milli[moment], total - int(used[moment])
        yield f"{lost:,.0f} GPU milli were fragmented after {moment:,} changes, of {there:,} free"


def _figures(result: Result, metrics: Metrics) -> Found:
    told = {each.name: getattr(metrics, each.name) for each in fields(metrics)}
    told |= {f"wait_{each.name}": getattr(metrics.waiting, each.name) for each in fields(Waiting)}
    for name, value in (*_shares(result), *_counts(result), *_times(result)):
        if not math.isclose(told[name], value, rel_tol=_SLACK, abs_tol=_SLACK):
            yield f"{name} is {told[name]}, and {value} by the placements"
    if not _is_overcommitted(result):
        yield from _parts(metrics)


def _is_overcommitted(result: Result) -> bool:
    """Tells whether a GPU may have given more than it has.

    It has to pods that ran before the run began, or as one of several that are shared.
    """
    plan, count = result.plan, len(result.plan.bound)
    pods = placed_records(
        plan.arrivals.taken(np.arange(count)), plan.bound.node, plan.bound.slots, plan.cluster
    )
    began = occupied(plan.cluster.nodes, pods, plan.bound.node, plan.bound.slots)
    return bool((began["gpu_milli_left"] < 0).any()) or any(
        kind.is_shared for kind in plan.cluster.gpu_kinds
    )


def _parts(metrics: Metrics) -> Found:
    """Says where parts of a whole are more than it."""
    both = metrics.gpu_allocation + metrics.fragmentation
    if metrics.fragmentation < -_SLACK or both > 1 + _SLACK:
        yield (
            f"{100 * metrics.gpu_allocation:.2f} % allocated and {100 * metrics.fragmentation:.2f} "
            f"% fragmented are {100 * both:.2f} % of the GPUs"
        )
    if not -_SLACK <= metrics.fragmentation_ratio <= 1 + _SLACK:
        yield f"fragmentation_ratio is {metrics.fragmentation_ratio}"


def _shares(result: Result) -> Iterator[tuple[str, float]]:
    cluster, pods = result.plan.cluster, result.history.records
    weights = result.plan.gpu_weight_milli[result.history.pod]
    for name, amounts, total in (
        ("gpu_allocation", weights, cluster.gpu_milli_total),
        ("cpu_allocation", pods["cpu_milli"], cluster.cpu_milli_total),
        ("memory_allocation", pods["memory_mib"], cluster.memory_mib_total),
    ):
        yield name, _mean_use(result, amounts) / max(1, total)


def _mean_use(result: Result, amounts: npt.NDArray[np.generic]) -> float:
    history = result.history
    if result.plan.protocol.name != "replay":
        return float(amounts[: len(result.status)][result.is_placed].astype(np.float64).sum())
    is_run = history.node >= 0
    taken = amounts[is_run].astype(np.float64)
    start_s, finish_s = history.start_s[is_run], history.finish_s[is_run]
    span_s = _span_s(result)
    return float((taken * (finish_s - start_s)).sum()) / span_s if span_s > 0 else 0.0


def _span_s(result: Result) -> float:
    if result.plan.protocol.name != "replay" or not result.is_placed.any():
        return 0.0
    history = result.history
    return float(history.finish_s[history.node >= 0].max() - result.arrival_s[0])


def _cut_short(result: Result) -> Iterator[tuple[int, float, float]]:
    history, count = result.history, len(result.status)
    yield from zip(
        history.pod[count:].tolist(), history.start_s[count:].tolist(),
        history.finish_s[count:].tolist(), strict=True,
    )  # fmt: skip


def _counts(result: Result) -> Iterator[tuple[str, float]]:
    for name, status in (("placed", PLACED), ("unplaced", UNPLACED), ("held", HELD)):
        yield name, int(((result.status == status) & ~result.is_bound).sum())
    yield "holds", int(result.holds.sum(dtype=np.int64))
    yield from _losses(result)


def _losses(result: Result) -> Iterator[tuple[str, float]]:
    milli = gpu_demand(result.history.records[len(result.status) :]).tolist()
    ages = result.plan.arrivals.age_s
    left_s = {} if ages is None else dict(enumerate(ages.tolist()))
    spans_s = [end_s - start_s + left_s.pop(pod, 0.0) for pod, start_s, end_s in _cut_short(result)]
    lost = sum(gpu * span_s for gpu, span_s in zip(milli, spans_s, strict=True)) / GPU_MILLI
    yield "evictions", len(spans_s)
    yield "lost_gpu_s", lost if result.plan.protocol.name == "replay" else 0.0


def _times(result: Result) -> Iterator[tuple[str, float]]:
    is_replay = result.plan.protocol.name == "replay"
    is_counted = result.is_placed & ~result.is_bound
    in_vain = np.zeros(len(is_counted))
    for pod, start_s, end_s in _cut_short(result):
        in_vain[pod] += end_s - start_s
    waits = np.maximum(0.0, result.start_s - result.arrival_s - in_vain)[is_counted]
    waits = waits if is_replay and len(waits) else np.zeros(1)
    ends = (result.finish_s - result.arrival_s)[is_counted] if is_replay else np.zeros(0)
    yield "wait_mean_s", float(waits.sum()) / len(waits)
    for name, percent in (("wait_p50_s", 50), ("wait_p95_s", 95), ("wait_p99_s", 99)):
        yield name, float(np.percentile(waits, percent))
    yield "wait_max_s", float(waits.max())
    yield "wait_waited", int(np.count_nonzero(waits > 0))
    yield "makespan_s", _span_s(result)
    yield "completion_mean_s", float(ends.sum()) / len(ends) if len(ends) else 0.0
