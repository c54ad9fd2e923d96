"""Measures a finished run of a candidate, and checks measurements that a worker reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from podium.model.fit import fits
from podium.sim import Replay, Result
from podium.sim.funsearch import FunsearchResult
from podium.sim.load_curve import arrived_ratio
from podium.sim.metrics import measure_waiting
from podium.sim.plan import Plan
from podium.sim.usage import Usage as Usage
from podium.sim.usage import usage_of

Values = Mapping[str, float]

Held = tuple[int, int]
"""Decisions that held a pod, and all decisions of a run."""

INFLATION, REPLAY = "inflation", "replay"
FUNSEARCH = "funsearch"
"""Replay by the rules of the FunSearch simulator, which are described in `podium.sim.funsearch`."""

TIMED = (REPLAY, FUNSEARCH)
"""Protocols in which pods come and go at their times."""

HOLDING = "holding"
"""The kind of cases under inflation that are large enough to judge what holding pods is worth."""

FIGURES = {
    INFLATION: ("allocation_100", "allocation_130", "fragmentation", "cpu_only_placed"),
    REPLAY: (
        "allocation_arriving", "fragmentation_arriving", "queue_busy", "wait_mean_s", "wait_p95_s",
    ),
    FUNSEARCH: (
        "funsearch_score", "funsearch_score_without_retries", "funsearch_fragmentation",
        "funsearch_waited", "funsearch_wait_mean_s",
    ),
}  # fmt: skip
"""What is measured under each protocol.

Waits are seconds, `queue_busy` is percent of the time, `cpu_only_placed` percent of the pods that
want no GPU, as placed at the end; the others are percent of all GPUs. Replay is
measured from the first arrival to the last: one job of months outlasts all that matters. Scores
of FunSearch are taken a hundredfold, and `funsearch_waited` is percent of the pods.
"""


def measure_case(result: Result) -> dict[str, float]:
    """Measures the figures of a run that fitness rules use."""
    if result.plan.protocol.name == REPLAY:
        return _replayed(result)
    usage = usage_of(result)
    total = max(1, result.plan.cluster.gpu_milli_total)
    fragments = usage.fragment_milli[result.changes_after]
    return {
        "allocation_100": _allocation(result, usage, 1.0),
        "allocation_130": _allocation(result, usage, 1.3),
        "fragmentation": 100 * float(fragments.mean()) / total,
        "cpu_only_placed": 100 * _cpu_only_placed(result),
    }


def measure_funsearch(result: FunsearchResult) -> dict[str, float]:
    """Measures the figures of a run by the rules of the FunSearch simulator."""
    return {
        "funsearch_score": 100 * result.score,
        "funsearch_score_without_retries": 100 * result.score_without_retries,
        "funsearch_fragmentation": 100 * result.fragmentation,
        "funsearch_waited": 100 * result.waited / max(1, result.placed),
        "funsearch_wait_mean_s": result.wait_mean_s,
    }


def _cpu_only_placed(result: Result) -> float:
    is_cpu_only = result.plan.arrivals.pods["gpu_count"] == 0
    return float(result.is_placed[is_cpu_only].mean()) if is_cpu_only.any() else 1.0


def _replayed(result: Result) -> dict[str, float]:
    usage = usage_of(result)
    total = max(1, result.plan.cluster.gpu_milli_total)
    arriving = replace(usage, time_s=np.minimum(usage.time_s, result.arrival_s[-1]))
    waiting = measure_waiting(result)
    return {
        "allocation_arriving": 100 * arriving.mean(usage.gpu_weight_milli) / total,
        "fragmentation_arriving": 100 * arriving.mean(usage.fragment_milli) / total,
        "queue_busy": 100 * queue_busy(result),
        "wait_mean_s": waiting.mean_s,
        "wait_p95_s": waiting.p95_s,
    }


def queue_busy(result: Result) -> float:
    """Returns the share of a replay, from first to last arrival, in which a pod waits for room.

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


def contradictions(result: Result, values: Values) -> list[str]:
    """Lists the figures of a run that do not follow from its placements, pod by pod."""
    expected = _replayed_again(result) if _is_replay(result) else _inflated_again(result)
    allocated = expected.pop(_AVERAGE)
    found = [
        f"{name} is {values[name]}, and {value} by the placements"
        for name, value in expected.items()
        if not math.isclose(values[name], value, rel_tol=1e-9, abs_tol=1e-9)
    ]
    lost = values["fragmentation_arriving" if _is_replay(result) else "fragmentation"]
    if not (lost >= -_SLACK and lost + allocated <= 100 + _SLACK):
        told = f"{allocated:.2f} % allocated and {lost:.2f} % fragmented on average"
        found.append(f"{told} are {allocated + lost:.2f} % of the GPUs")
    return found


_AVERAGE = "average"  # allocation, over the moments at which fragmentation is taken


def _is_replay(result: Result) -> bool:
    return result.plan.protocol.name == REPLAY


def _inflated_again(result: Result) -> dict[str, float]:
    pods, count = result.pods, len(result.node)
    start = np.where(result.is_placed, result.start_s, np.inf)
    weights = result.plan.gpu_weight_milli
    percent = 100.0 * weights / max(1, result.plan.cluster.gpu_milli_total)
    is_cpu_only = pods["gpu_count"] == 0
    placed, asking = int((result.is_placed & is_cpu_only).sum()), int(is_cpu_only.sum())
    return {
        "allocation_100": float(percent[start <= last_within(result, 1.0)].sum()),
        "allocation_130": float(percent[start <= last_within(result, 1.3)].sum()),
        "cpu_only_placed": 100.0 * placed / asking if asking else 100.0,
        _AVERAGE: float((percent * np.maximum(0.0, count - start)).sum()) / count,
    }


def _replayed_again(result: Result) -> dict[str, float]:
    is_placed, arrival_s = result.is_placed, result.arrival_s
    last_s, start_s = arrival_s[-1], result.start_s[is_placed]
    weights = result.plan.gpu_weight_milli[is_placed]
    within_s = np.minimum(result.finish_s[is_placed], last_s) - np.minimum(start_s, last_s)
    # The mean is taken from the first arrival to the last, or to the last change before it.
    end_s = min(float(last_s), float(result.finish_s[is_placed].max(initial=-np.inf)))
    span_s = end_s - float(arrival_s[0])
    total = max(1, result.plan.cluster.gpu_milli_total)
    average = 100 * float((weights * within_s).sum()) / (span_s * total) if span_s > 0 else 0.0
    waits_s = start_s - arrival_s[is_placed] if len(start_s) else np.zeros(1)
    return {
        "allocation_arriving": average,
        "wait_mean_s": float(waits_s.sum()) / len(waits_s),
        "wait_p95_s": float(np.percentile(waits_s, 95)),
        _AVERAGE: average,
    }


def bounds_of(plan: Plan) -> dict[str, float]:
    """Returns the most that any run of a case can reach, and where in it figures are taken.

    `after_100` and `after_130` are the shares of the arrivals from those on at which 100 % and
    130 % arrived load is taken: allocation never falls from there.
    """
    arrivals, total = plan.arrivals, max(1, plan.cluster.gpu_milli_total)
    percent = 100.0 * plan.gpu_weight_milli / total
    if plan.protocol.name != REPLAY:
        arrived = np.cumsum(100.0 * arrivals.gpu_weight_milli / total)
        last = [_last(arrived / 100, ratio) for ratio in (1.0, 1.3)]
        most = [min(100.0, float(np.cumsum(percent)[each])) for each in last]
        after = [1 - each / len(percent) for each in last]
        names = ("allocation_100", "allocation_130", "after_100", "after_130")
        return dict(zip(names, (*most, *after), strict=True))
    assert isinstance(plan.protocol, Replay)
    assert arrivals.arrival_s is not None
    assert arrivals.duration_s is not None
    left_s = (arrivals.arrival_s[-1] - arrivals.arrival_s) / plan.protocol.load
    # Averages end with the last arrival, if that pod can run at all.
    if left_s[0] <= 0 or not any(fits(arrivals.pods[-1], node) for node in plan.cluster.nodes):
        return {"allocation_arriving": 100.0}
    asked = float((percent * np.minimum(left_s, arrivals.duration_s)).sum()) / float(left_s[0])
    return {"allocation_arriving": min(100.0, asked)}


_MOST = 1e300  # whole numbers that are read from JSON may be larger than any float
_SLACK = 1e-6


def is_measurement(values: object, kind: str, bounds: Values | None = None) -> bool:
    """Returns whether a report has the figures of a protocol, all of them possible together."""
    if not isinstance(values, dict) or set(values) != set(FIGURES[kind]):
        return False
    for key, value in values.items():
        is_number = isinstance(value, float | int) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _MOST:
            return False
        most = (bounds or {}).get(key, _MOST if key.endswith("_s") else 100)
        if value > most + _SLACK:
            return False
    return _are_possible_together(values, kind, bounds or {})


def _are_possible_together(values: Values, kind: str, bounds: Values) -> bool:
    if kind == FUNSEARCH:
        return True
    if kind == REPLAY:
        both = values["allocation_arriving"] + values["fragmentation_arriving"]
        return both <= 100 + _SLACK
    first, last = values["allocation_100"], values["allocation_130"]
    after, end = bounds.get("after_100", 0.0), bounds.get("after_130", 0.0)
    allocated = first * (after - end) + last * end  # at least, on average over the arrivals
    return first <= last + _SLACK and allocated + values["fragmentation"] <= 100 + _SLACK


def _allocation(result: Result, usage: Usage, ratio: float) -> float:
    """Returns the percent of GPUs in use when the arrived demand is last within a ratio.

    Small clusters skip whole percents of arrived demand, so no average over one is taken.
    """
    milli = usage.gpu_weight_milli[result.changes_after[last_within(result, ratio)]]
    return 100 * float(milli) / max(1, result.plan.cluster.gpu_milli_total)


def last_within(result: Result, ratio: float) -> int:
    """Returns the last arrival with which the arrived demand is within a ratio of the GPUs."""
    return _last(arrived_ratio(result), ratio)


def _last(arrived: npt.NDArray[np.float64], ratio: float) -> int:
    return max(0, int(np.searchsorted(arrived, ratio + 1e-9, side="right")) - 1)
