"""Reads an inflation run as the publication does: figures at each percent of arrived load."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.sim.result import Result
from podium.sim.usage import usage_of


@dataclass(frozen=True, slots=True, eq=False)
class LoadCurve:
    """Holds one value per whole percent of arrived GPU demand."""

    percent: npt.NDArray[np.int64]
    allocation: npt.NDArray[np.float64]  # percent of all GPUs
    fragmentation: npt.NDArray[np.float64]  # percent of all GPUs
    arrived_ratio: float  # arrived demand at the end, as a share of capacity

    def at(self, percent: int) -> tuple[float, float]:
        """Gives allocation and fragmentation at a load, NaN where no arrival rounds to it."""
        found = np.flatnonzero(self.percent == percent)
        if len(found) == 0:
            return float("nan"), float("nan")
        return float(self.allocation[found[0]]), float(self.fragmentation[found[0]])


def load_curve(result: Result) -> LoadCurve:
    """Averages over the arrivals whose arrived percent rounds to each whole percent.

    As published, every single allocation is rounded to two decimals before it is averaged;
    fragmentation is not.
    """
    usage = usage_of(result)
    total = max(1, result.plan.cluster.gpu_milli_total)
    arrived = arrived_ratio(result)
    after = result.changes_after
    allocation = np.round(100 * usage.gpu_weight_milli[after] / total, 2)
    fragmentation = 100 * usage.fragment_milli[after] / total
    column = np.round(100 * arrived).astype(np.int64)
    percent, index, counts = np.unique(column, return_inverse=True, return_counts=True)
    return LoadCurve(
        percent=percent,
        allocation=np.bincount(index, allocation) / counts,
        fragmentation=np.bincount(index, fragmentation) / counts,
        arrived_ratio=float(arrived[-1]),
    )


def arrived_ratio(result: Result) -> npt.NDArray[np.float64]:
    """Gives the GPU demand up to each arrival over capacity; 0 where there are no GPUs."""
    demand = np.cumsum(result.plan.arrivals.gpu_weight_milli).astype(np.float64)
    capacity = result.plan.cluster.gpu_milli_total
    return demand / capacity if capacity else np.zeros(len(demand))
