"""Measures a finished run of a candidate, and checks measurements that a worker reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from podium.sim import Result
from podium.sim.course import Course, follow
from podium.sim.load_curve import arrived_ratio
from podium.sim.metrics import measure_waiting

Values = Mapping[str, float]
INFLATION, REPLAY = "inflation", "replay"
HOLDING = "holding"
"""The kind of cases under inflation that are large enough to judge what holding pods is worth."""

FIGURES = {
    INFLATION: ("allocation_100", "allocation_130", "fragmentation", "cpu_only_placed"),
    REPLAY: (
        "allocation_arriving", "fragmentation_arriving", "queue_busy", "wait_mean_s", "wait_p95_s",
    ),
}  # fmt: skip
"""What is measured under each protocol.

Waits are seconds, `queue_busy` is percent of the time, `cpu_only_placed` percent of the pods that
want no GPU, as placed at the end; the others are percent of all GPUs. Replay is
measured from the first arrival to the last: one job of months outlasts all that matters.
"""


def measure_case(result: Result) -> dict[str, float]:
    """Takes the figures of a run that fitness rules are made of."""
    if result.plan.protocol.name == REPLAY:
        return _replayed(result)
    course = follow(result)
    total = max(1, result.plan.cluster.gpu_milli_total)
    fragments = course.fragment_milli[result.changes_after]
    return {
        "allocation_100": _allocation(result, course, 1.0),
        "allocation_130": _allocation(result, course, 1.3),
        "fragmentation": 100 * float(fragments.mean()) / total,
        "cpu_only_placed": 100 * _cpu_only_placed(result),
    }


def _cpu_only_placed(result: Result) -> float:
    is_cpu_only = result.plan.arrivals.pods["gpu_count"] == 0
    return float(result.is_placed[is_cpu_only].mean()) if is_cpu_only.any() else 1.0


def _replayed(result: Result) -> dict[str, float]:
    course = follow(result)
    total = max(1, result.plan.cluster.gpu_milli_total)
    arriving = replace(course, time_s=np.minimum(course.time_s, result.arrival_s[-1]))
    waiting = measure_waiting(result)
    return {
        "allocation_arriving": 100 * arriving.mean(course.gpu_milli) / total,
        "fragmentation_arriving": 100 * arriving.mean(course.fragment_milli) / total,
        "queue_busy": 100 * queue_busy(result),
        "wait_mean_s": waiting.mean_s,
        "wait_p95_s": waiting.p95_s,
    }


def queue_busy(result: Result) -> float:
    """Gives the share of a replay, from first to last arrival, in which a pod waits for room.

    Pods that no empty node could take are not counted: they wait whatever the policy does.
    """
    arrived_s, started_s = result.arrival_s[result.is_placed], result.start_s[result.is_placed]
    last_s = float(result.arrival_s[-1])
    span_s = last_s - float(result.arrival_s[0])
    if span_s <= 0 or len(arrived_s) == 0:
        return 0.0
    until_s = np.minimum(np.maximum.accumulate(started_s), last_s)
    # Pods are in order of arrival: each adds what goes beyond those before it.
    since_s = np.maximum(arrived_s, np.concatenate([[-np.inf], until_s[:-1]]))
    return float(np.maximum(0.0, until_s - since_s).sum()) / span_s


_MOST = 1e300  # whole numbers that are read from JSON may be larger than any float


def is_measurement(values: object, kind: str) -> bool:
    """Tells whether a report has the figures of a protocol, all of them possible."""
    if not isinstance(values, dict) or set(values) != set(FIGURES[kind]):
        return False
    for key, value in values.items():
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _MOST:
            return False
        if not key.endswith("_s") and value > 100 + 1e-9:
            return False
    return True


def _allocation(result: Result, course: Course, ratio: float) -> float:
    """Gives the percent of GPUs in use when the arrived demand is last within a ratio.

    Small clusters skip whole percents of arrived demand, so no average over one is taken.
    """
    arrived = arrived_ratio(result)
    last = max(0, int(np.searchsorted(arrived, ratio + 1e-9, side="right")) - 1)
    milli = course.gpu_milli[result.changes_after[last]]
    return 100 * float(milli) / max(1, result.plan.cluster.gpu_milli_total)
