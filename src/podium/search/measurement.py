"""Measures a finished run of a candidate, and checks measurements that a worker reports."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from podium.sim import Result
from podium.sim.course import Course, follow
from podium.sim.load_curve import arrived_ratio
from podium.sim.metrics import measure_waiting

Values = Mapping[str, float]
INFLATION, REPLAY = "inflation", "replay"

FIGURES = {
    INFLATION: ("allocation_100", "allocation_130", "fragmentation"),
    REPLAY: ("gpu_allocation", "fragmentation", "wait_mean_s", "wait_p95_s"),
}
"""What is measured under each protocol; all but the waits are percent of all GPUs."""


def measure_case(result: Result) -> dict[str, float]:
    """Takes the figures of a run that fitness rules are made of."""
    course = follow(result)
    total = max(1, result.plan.cluster.gpu_milli_total)
    if result.plan.protocol.name == INFLATION:
        fragments = course.fragment_milli[result.changes_after]
        return {
            "allocation_100": _allocation(result, course, 1.0),
            "allocation_130": _allocation(result, course, 1.3),
            "fragmentation": 100 * float(fragments.mean()) / total,
        }
    waiting = measure_waiting(result)
    return {
        "gpu_allocation": 100 * course.mean(course.gpu_milli) / total,
        "fragmentation": 100 * course.mean(course.fragment_milli) / total,
        "wait_mean_s": waiting.mean_s,
        "wait_p95_s": waiting.p95_s,
    }


def is_measurement(values: object, kind: str) -> bool:
    """Tells whether a report has the figures of a protocol, all of them possible."""
    if not isinstance(values, dict) or set(values) != set(FIGURES[kind]):
        return False
    for key, value in values.items():
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value) or value < 0:
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
