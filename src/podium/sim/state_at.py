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
from podium.model.state import occupied
from podium.sim.result import Result

Records = npt.NDArray[Any]


def state_at(result: Result, changes: int) -> Records:
    """Gives the nodes after the first so many changes, as the cluster lists them."""
    running, history = running_at(result, changes), result.history
    pods, where = history.records[running], history.node[running]
    return occupied(result.plan.cluster.nodes, pods, where, history.slots[running])


def running_at(result: Result, changes: int) -> npt.NDArray[np.int64]:
    """Lists the stints under way after the first so many changes, by number in the history.

    Where nobody is evicted, these are the pods that run, in order of arrival.
    """
    if not 0 <= changes <= len(result.changes):
        raise UsageError(
            f"the state after {changes:,} changes was asked for, the run made "
            f"{len(result.changes):,}",
            hint=f"a whole number from 0 to {len(result.changes)} is expected",
        )
    history = result.history
    made = history.changes[:changes]
    is_running = np.zeros(len(history.node), bool)
    is_running[made[made > 0] - 1] = True
    # A stint begins once and ends once.
    is_running[-made[made < 0] - 1] = False
    return np.flatnonzero(is_running)
