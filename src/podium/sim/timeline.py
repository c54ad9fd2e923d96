"""Samples a run for plots: what was in use, fragmented and waiting, at evenly spread moments."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.sim.load_curve import arrived_ratio
from podium.sim.protocols import Inflation, Replay
from podium.sim.result import HELD, Result
from podium.sim.usage import Usage, usage_of

Samples = npt.NDArray[np.float64]  # (num_points,)
Indices = npt.NDArray[np.int64]  # (num_points,)


@dataclass(frozen=True, slots=True, eq=False)
class Timeline:
    """Holds the state of the cluster at each sampled moment; shares are fractions of it."""

    time_s: Samples  # all 0 where no time passes
    arrived_ratio: Samples  # GPU demand that has arrived, over capacity
    changes: Samples  # placements and releases so far
    gpu_allocation: Samples
    cpu_allocation: Samples
    memory_allocation: Samples
    fragmentation: Samples  # of all GPUs
    nodes_in_use: Samples
    waiting: Samples  # pods that have arrived and are neither placed nor dropped

    def __len__(self) -> int:
        return len(self.time_s)

    def as_columns(self) -> dict[str, list[float]]:
        """Gives the values by name, for plots."""
        return {each.name: getattr(self, each.name).tolist() for each in fields(self)}

    def as_rows(self) -> list[dict[str, float]]:
        """Gives one mapping per moment, for tables and JSON."""
        columns = self.as_columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Moments:
    """Names the sampled moments in the counts of a run."""

    time_s: Samples
    arrived: Indices  # pods that have arrived
    changes: Indices  # index into the columns of Usage
    waiting: Samples


def timeline(result: Result, points: int = 200) -> Timeline:
    """Samples a run evenly: a replay in time, inflation in arrived load, rounds in changes."""
    if points < 2:
        raise UsageError(f"a timeline of {points} points", hint="at least 2 are expected")
    usage = usage_of(result)
    protocol = result.plan.protocol
    if isinstance(protocol, Replay):
        moments = _in_time(result, usage, points)
    elif isinstance(protocol, Inflation):
        moments = _in_load(result, points)
    else:
        moments = _in_changes(result, points)
    return _sampled(result, usage, moments)


def _in_time(result: Result, usage: Usage, points: int) -> _Moments:
    arrival, history = result.arrival_s, result.history
    start = np.sort(history.start_s[history.node >= 0])
    cut = np.sort(history.finish_s[len(arrival) :])  # who is evicted waits again
    last = max(usage.time_s[-1], arrival[-1])
    time_s = np.unique(np.linspace(usage.time_s[0], last, points))
    arrived = np.searchsorted(arrival, time_s, side="right")
    started = np.searchsorted(start, time_s, side="right")
    started -= np.searchsorted(cut, time_s, side="right")
    changes = np.searchsorted(usage.time_s[1:], time_s, side="right")
    return _Moments(time_s, arrived, changes, (arrived - started).astype(np.float64))


def _in_load(result: Result, points: int) -> _Moments:
    load = np.concatenate([[0.0], arrived_ratio(result)])
    if load[-1] == 0:  # nobody asks for a GPU: by arrivals then
        load = np.arange(len(load), dtype=np.float64)
    wanted = np.linspace(0.0, load[-1], points)
    arrived = np.unique(np.searchsorted(load, wanted, side="right") - 1)
    changes = np.concatenate([[0], result.changes_after])[arrived].astype(np.int64)
    return _Moments(np.zeros(len(arrived)), arrived, changes, _held_back(result)[arrived])


def _in_changes(result: Result, points: int) -> _Moments:
    total, pods = len(result.changes), len(result.node)
    changes = np.unique(np.linspace(0, total, points).round().astype(np.int64))
    arrived = np.full(len(changes), pods)
    running = np.concatenate([[0], np.cumsum(np.sign(result.changes))])[changes]
    return _Moments(np.zeros(len(changes)), arrived, changes, (pods - running).astype(np.float64))


def _held_back(result: Result) -> Samples:
    """Counts the pods that are held after each arrival of an inflation run.

    A run does not keep when a pod that was held is dropped; it counts as dropped at once.
    """
    pods = np.arange(len(result.node))
    is_late = result.is_placed & (result.start_s > pods)
    joins = is_late | (result.status == HELD)
    steps = np.zeros(len(pods) + 1)
    np.add.at(steps, pods[joins] + 1, 1)
    np.subtract.at(steps, result.start_s[is_late].astype(np.int64) + 1, 1)
    counts: Samples = np.cumsum(steps)
    return counts


def _sampled(result: Result, usage: Usage, moments: _Moments) -> Timeline:
    cluster, at = result.plan.cluster, moments.changes
    gpu_total = max(1, cluster.gpu_milli_total)
    load = np.concatenate([[0.0], arrived_ratio(result)])
    return Timeline(
        time_s=moments.time_s,
        arrived_ratio=load[moments.arrived],
        changes=at.astype(np.float64),
        gpu_allocation=usage.gpu_weight_milli[at] / gpu_total,
        cpu_allocation=usage.cpu_milli[at] / max(1, cluster.cpu_milli_total),
        memory_allocation=usage.memory_mib[at] / max(1, cluster.memory_mib_total),
        fragmentation=usage.fragment_milli[at] / gpu_total,
        nodes_in_use=usage.nodes_in_use[at],
        waiting=moments.waiting,
    )
