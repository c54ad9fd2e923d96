"""Lists the stints of pods on nodes: a pod that is evicted and placed again has several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Evictions:
    """Lists who was evicted for whom, in order, and what each held until then."""

    at: Whole  # (num_evictions,) index into the changes of the run
    node: npt.NDArray[np.int32]  # (num_evictions,) index into the cluster
    slots: npt.NDArray[np.int32]  # (num_evictions,) bit mask of GPU slots
    start_s: npt.NDArray[np.float64]  # (num_evictions,)
    end_s: npt.NDArray[np.float64]  # (num_evictions,)
    preemptor: Whole  # (num_evictions,) the pod that it made room for

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """Lists the stints of a run: the last one of each pod, and then those cut short.

    Where nobody is evicted, these are the columns of the result itself.
    """

    pod: Whole  # (num_stints,) number in order of arrival
    node: npt.NDArray[np.int32]  # (num_stints,) index into the cluster, -1 = none
    slots: npt.NDArray[np.int32]  # (num_stints,) bit mask of GPU slots
    start_s: npt.NDArray[np.float64]  # (num_stints,)
    finish_s: npt.NDArray[np.float64]  # (num_stints,)
    records: npt.NDArray[Any]  # (num_stints,) of POD, as they are on the GPUs that they were given
    changes: npt.NDArray[np.int32]  # stint + 1 begun, -(stint + 1) ended, in order

    @property
    def held_gpu_milli(self) -> Whole:
        """Tells what each stint holds of GPUs: less than was asked for where its node lost some."""
        held: Whole = np.bitwise_count(self.slots).astype(np.int64) * self.records["gpu_milli"]
        return held

    @property
    def stint_of(self) -> Whole:
        """Tells which stint each change begins or ends."""
        return np.abs(self.changes.astype(np.int64)) - 1

    @property
    def moment_s(self) -> npt.NDArray[np.float64]:
        """Tells when each change was made."""
        stints = self.stint_of
        return np.where(self.changes > 0, self.start_s[stints], self.finish_s[stints])


def by_stint(
    changes: npt.NDArray[np.int32], evicted_at: Whole, num_pods: int
) -> npt.NDArray[np.int32]:
    """Numbers changes by stint instead of pod: the stint of eviction k is that of pod num_pods + k.

    >>> by_stint(np.array([1, -1, 2, 1], np.int32), np.array([1]), 2).tolist()
    [3, -3, 2, 1]
    """
    found = changes.copy()
    # By pod, and then in order: who leaves has come just before.
    order = np.argsort(np.abs(changes), kind="stable")
    place = np.empty(len(changes), np.int64)
    place[order] = np.arange(len(changes))
    begun_at = order[place[evicted_at] - 1]
    numbers = num_pods + 1 + np.arange(len(evicted_at), dtype=np.int32)
    found[begun_at], found[evicted_at] = numbers, -numbers
    return found
