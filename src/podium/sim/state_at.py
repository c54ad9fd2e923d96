"""Rebuilds the cluster as it was at any moment of a run, from the run's placements.

A moment is a number of changes: placements and releases, in the order of `Result.changes`. What
runs then decides the state, so that any moment costs the same: one look at the changes before it,
and one subtraction for each pod that runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model.records import GPU_MILLI, SHARE_CLASS
from podium.sim.result import Result

Records = npt.NDArray[Any]


def state_at(result: Result, changes: int) -> Records:
    """Gives the nodes after the first so many changes, as the cluster lists them."""
    running = running_at(result, changes)
    pods = result.plan.arrivals.pods[running]
    return occupied(result.plan.cluster.nodes, pods, result.node[running], result.slots[running])


def running_at(result: Result, changes: int) -> npt.NDArray[np.int64]:
    """Lists the pods that run after the first so many changes, in order of arrival."""
    if not 0 <= changes <= len(result.changes):
        raise UsageError(
            f"the state after {changes:,} changes was asked for, the run made "
            f"{len(result.changes):,}",
            hint=f"a whole number from 0 to {len(result.changes)} is expected",
        )
    made = result.changes[:changes]
    is_running = np.zeros(len(result.node), bool)
    is_running[made[made > 0] - 1] = True
    # A pod is placed once and leaves once.
    is_running[-made[made < 0] - 1] = False
    return np.flatnonzero(is_running)


def occupied(
    nodes: Records, pods: Records, at: npt.NDArray[np.int32], slots: npt.NDArray[np.int32]
) -> Records:
    """Copies nodes and lets pods run on them: pod i on node `at[i]`, on a bit mask of its GPUs."""
    found = nodes.copy()
    every_slot = np.arange(nodes["gpu_milli_left"].shape[1], dtype=np.int32)
    is_taken = slots[:, np.newaxis] >> every_slot & 1
    is_share = pods["gpu_milli"] < GPU_MILLI
    classes = np.where(is_share, pods["gpu_count"] * SHARE_CLASS, 1 << pods["gpu_count"])
    np.subtract.at(found["cpu_milli_left"], at, pods["cpu_milli"])
    np.subtract.at(found["memory_mib_left"], at, pods["memory_mib"])
    np.subtract.at(found["gpu_milli_left"], at, is_taken * pods["gpu_milli"][:, np.newaxis])
    np.bitwise_or.at(found["gpu_classes"], at, classes)
    return found
