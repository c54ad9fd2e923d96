"""Defines every figure of a run, once, with its unit in its name.

Allocation is the share of capacity that pods hold: averaged over the time from the first
arrival to the last departure under replay, and at the end otherwise. Of GPUs, a pod counts the
fewest cards that it takes on any node which fits it: on another it may hold more, and no policy
gains by that. Failed attempts weigh in no average. Pods that ran before the run began hold their
share, and are otherwise not counted: nobody decided about them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.model.records import GPU_MILLI
from podium.model.workload import gpu_demand
from podium.sim.result import HELD, PLACED, UNPLACED, Result
from podium.sim.usage import usage_of

POD_CLASSES = ("cpu-only", "share", "1-gpu", "2-gpu", "4-gpu", "8-gpu", "other")


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tells how long placed pods waited between arrival and start."""

    mean_s: float
    p50_s: float
    p95_s: float
    p99_s: float
    max_s: float
    waited: int  # pods that did not start at once


@dataclass(frozen=True, slots=True)
class Metrics:
    """Holds the figures of a run; allocations and fragmentation are fractions of the cluster."""

    gpu_allocation: float
    cpu_allocation: float
    memory_allocation: float
    fragmentation: float  # FGD's expected fragmentation, as a share of all GPUs
    fragmentation_ratio: float  # the same, as a share of the GPUs left idle
    placed: int
    unplaced: int
    held: int
    holds: int  # decisions to hold, over all pods
    placed_share: dict[str, float]  # by class of pod; classes without pods are left out
    waiting: Waiting
    makespan_s: float  # first arrival to last departure
    completion_mean_s: float  # arrival to departure
    nodes_in_use_mean: float
    nodes_in_use_peak: int
    evictions: int = 0
    lost_gpu_s: float = 0.0  # time that evicted pods had run, times their GPUs


def measure(result: Result) -> Metrics:
    """Computes every figure of a run."""
    usage = usage_of(result)
    cluster = result.plan.cluster
    gpu_total = max(1, cluster.gpu_milli_total)
    idle = cluster.gpu_milli_total - usage.gpu_milli
    shares = np.divide(usage.fragment_milli, idle, out=np.zeros_like(idle), where=idle > 0)
    return Metrics(
        gpu_allocation=usage.mean(usage.gpu_weight_milli) / gpu_total,
        cpu_allocation=usage.mean(usage.cpu_milli) / max(1, cluster.cpu_milli_total),
        memory_allocation=usage.mean(usage.memory_mib) / max(1, cluster.memory_mib_total),
        fragmentation=usage.mean(usage.fragment_milli) / gpu_total,
        fragmentation_ratio=usage.mean(shares),
        placed=int(((result.status == PLACED) & ~result.is_bound).sum()),
        unplaced=int(((result.status == UNPLACED) & ~result.is_bound).sum()),
        held=int(((result.status == HELD) & ~result.is_bound).sum()),
        holds=result.held_decisions,
        placed_share=placed_share(result),
        waiting=measure_waiting(result),
        makespan_s=float(usage.time_s[-1] - usage.time_s[0]),
        completion_mean_s=_completion(result),
        nodes_in_use_mean=usage.mean(usage.nodes_in_use),
        nodes_in_use_peak=int(usage.nodes_in_use.max()),
        evictions=len(result.evicted),
        lost_gpu_s=_lost(result),
    )


def measure_waiting(result: Result) -> Waiting:
    """Summarises the waiting of placed pods; zeros when none was, or when no time passes."""
    waits = waits_s(result)[result.is_placed & ~result.is_bound]
    if result.plan.protocol.name != "replay" or len(waits) == 0:
        waits = np.zeros(1)
    p50, p95, p99 = np.percentile(waits, [50, 95, 99])
    return Waiting(
        mean_s=float(waits.mean()),
        p50_s=float(p50),
        p95_s=float(p95),
        p99_s=float(p99),
        max_s=float(waits.max()),
        waited=int((waits > 0).sum()),
    )


def waits_s(result: Result) -> npt.NDArray[np.float64]:
    """Gives how long each pod waited in the queue: until it started, less what it ran in vain."""
    waits: npt.NDArray[np.float64] = result.start_s - result.arrival_s
    if result.evictions is None:
        return waits
    in_vain = result.evictions.end_s - result.evictions.start_s
    # Sums of parts may miss the whole by a rounding error.
    return np.maximum(0.0, waits - np.bincount(result.evicted, in_vain, len(waits)))


def _lost(result: Result) -> float:
    if result.evictions is None or result.plan.protocol.name != "replay":
        return 0.0
    in_vain = result.evictions.end_s - result.evictions.start_s
    if result.plan.arrivals.age_s is not None:  # of pods that ran before, when they leave first
        pods, first = np.unique(result.evicted, return_index=True)
        in_vain[first] += result.plan.arrivals.age_s[pods]
    gpus = gpu_demand(result.history.records[len(result.status) :]) / GPU_MILLI
    return float((in_vain * gpus).sum())


def class_of(pods: npt.NDArray[np.void]) -> npt.NDArray[np.int64]:
    """Numbers each pod's class, an index into POD_CLASSES."""
    count, milli = pods["gpu_count"], pods["gpu_milli"]
    tests = [count == 0, (count == 1) & (milli < GPU_MILLI), *(count == k for k in (1, 2, 4, 8))]
    return np.select(tests, list(range(6)), 6)


def placed_share(result: Result) -> dict[str, float]:
    """Gives the share of placed pods in each class that occurs."""
    is_arriving = ~result.is_bound
    classes = class_of(result.plan.arrivals.pods)[is_arriving]
    is_placed = result.is_placed[is_arriving]
    return {
        name: float(is_placed[classes == index].mean())
        for index, name in enumerate(POD_CLASSES)
        if (classes == index).any()
    }


def _completion(result: Result) -> float:
    times = (result.finish_s - result.arrival_s)[result.is_placed & ~result.is_bound]
    times = times[np.isfinite(times)]
    return float(times.mean()) if len(times) else 0.0
