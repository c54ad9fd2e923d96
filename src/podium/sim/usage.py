"""Follows a run change by change: what was in use, and what was fragmented, at each moment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.sim.interrupt import unbroken
from podium.sim.result import Result

Column = npt.NDArray[np.float64]  # (num_changes + 1,) the first value is the empty cluster's


@dataclass(frozen=True, slots=True, eq=False)
class Usage:
    """Tells what was in use after each placement and release."""

    time_s: Column  # all 0 where nothing leaves: such a run is judged by how it ends
    gpu_milli: Column  # held, which the same pods may do more or less of on other nodes
    gpu_weight_milli: Column  # what the pods that run count, wherever they are
    cpu_milli: Column
    memory_mib: Column
    nodes_in_use: Column
    fragment_milli: Column  # FGD's expected fragmentation, summed over the nodes

    def mean(self, values: Column) -> float:
        """Averages a column over the time of the run; the last value where no time passes."""
        spans = np.diff(self.time_s)
        total = float(spans.sum())
        return float((values[:-1] * spans).sum() / total) if total > 0 else float(values[-1])


def usage_of(result: Result) -> Usage:
    """Walks through a run's changes, once however often it is asked."""
    if "usage" not in result.derived:
        result.derived["usage"] = _walk(result)
    usage: Usage = result.derived["usage"]
    return usage


def _walk(result: Result) -> Usage:
    from podium.policies.fragmentation import typical_pods
    from podium.sim.kernel.walk import walker

    plan, history = result.plan, result.history
    weights = plan.gpu_weight_milli[history.pod]
    changes, pods = history.changes, history.records
    written = np.zeros((2, len(changes) + 1))
    typical = typical_pods(plan.trace.shapes())
    nodes = plan.cluster.nodes.copy()
    with unbroken():
        walker()(nodes, pods, history.node, history.slots, changes, typical, written)
    return Usage(
        time_s=_times(result),
        gpu_milli=_running_sum(changes, history.held_gpu_milli),
        gpu_weight_milli=_running_sum(changes, weights),
        cpu_milli=_running_sum(changes, pods["cpu_milli"]),
        memory_mib=_running_sum(changes, pods["memory_mib"]),
        nodes_in_use=written[0],
        fragment_milli=written[1],
    )


def _times(result: Result) -> Column:
    if result.plan.protocol.name != "replay":
        return np.zeros(len(result.changes) + 1)
    first = result.arrival_s[0] if len(result.arrival_s) else 0.0
    return np.concatenate([[first], result.history.moment_s])


def _running_sum(changes: npt.NDArray[np.int32], amounts: npt.NDArray[np.generic]) -> Column:
    steps = np.sign(changes) * amounts[np.abs(changes) - 1].astype(np.float64)
    return np.concatenate([[0.0], np.cumsum(steps)])
