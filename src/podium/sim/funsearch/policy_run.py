"""Runs any policy of Podium by the FunSearch simulator's rules, and measures it by them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.errors import PodiumError, PolicyError
from podium.model.cluster import Cluster
from podium.model.records import ANY_MODEL, GPU_MILLI
from podium.model.workload import Workload
from podium.policies import ClusterPolicy, PairPolicy, Policy
from podium.sim.funsearch.metrics import SNAPSHOT_STEP, Amounts, FunsearchResult, Meter
from podium.sim.funsearch.simulation import times_of

if TYPE_CHECKING:
    from podium.policies.abi import Native
    from podium.sim.callback import ClusterCallback, PairCallback
    from podium.sim.funsearch.events import Log

MOST_EVENTS = 64
"""Events for each pod after which a run is given up: pods fail again and again."""


@dataclass(frozen=True, slots=True, eq=False)
class FunsearchCase:
    """A cluster and its pods as the original sees them: pods accept any GPU model."""

    cluster: Cluster
    workload: Workload
    asked: npt.NDArray[np.int64]  # (num_pods, 4) of CPU, memory, GPUs and GPU milli, as Amounts

    @classmethod
    def of(cls, cluster: Cluster, workload: Workload, load: float = 1.0) -> FunsearchCase:
        """Reads the pods; `load` divides the time between arrivals.

        Raises:
            InputError: they have no times.
        """
        arrival_s, _ = times_of(workload)
        aligned = replace(workload.on(cluster), arrival_s=arrival_s / load)
        return cls(cluster, aligned, _asked(aligned))

    def run(self, policy: Policy) -> FunsearchResult:
        """Runs a policy, compiled where it compiles."""
        attempt = _Attempt(self, policy)
        attempt.play(*attempt.native())
        return attempt.measured()

    def log(self, policy: Policy) -> Log:
        """Runs a policy, and returns what happened, event by event."""
        attempt = _Attempt(self, policy)
        attempt.play(*attempt.native())
        return attempt.log()

    def run_plainly(self, policy: PairPolicy) -> FunsearchResult:
        """Runs a policy in plain Python."""
        attempt = _Attempt(self, policy)
        attempt.play(*attempt.plain())
        return attempt.measured()


def run_policy(cluster: Cluster, workload: Workload, policy: Policy) -> FunsearchResult:
    """Runs a policy by the original's rules on its events, and measures it with its metrics."""
    return FunsearchCase.of(cluster, workload).run(policy)


class _Attempt:
    """Holds what one run changes."""

    def __init__(self, case: FunsearchCase, policy: Policy) -> None:
        from podium.sim.funsearch import events

        self._case, self._policy = case, policy
        self._events = events
        self._pods = _records(case.workload)
        self._nodes = case.cluster.nodes.copy()
        size, slots = len(self._pods), self._nodes["gpu_milli_left"].shape[1]
        self._places = events.Places(
            np.full(size, -1), np.zeros((size, slots), np.bool_), np.zeros(size, np.bool_),
            np.zeros(GPU_MILLI + 1, np.int64),
        )  # fmt: skip
        most = MOST_EVENTS * size + 1
        columns = (np.empty(most, np.int64) for _ in range(4))
        self._log = events.Log(np.empty(most), *columns)
        self._feasible = np.zeros(len(self._nodes), np.bool_)
        self._table = _table(policy, case.workload)
        self._count = 0

    def play(self, native: Native, callback: PairCallback | ClusterCallback | None) -> None:
        """Plays all events; raises PolicyError where the policy fails."""
        status = self._play(native.address) if len(self._pods) else 0
        is_failed = status < self._events.TOO_MANY
        if is_failed and callback is None and isinstance(self._policy, PairPolicy):
            self._case.run_plainly(self._policy)  # machine code cannot say why, Python can
        if status < 0:
            raise self._failure(status, callback.error if callback else None)
        self._count = status
        self._check_log()
        # Every pod that was placed has left again.
        if self._nodes.tobytes() != self._case.cluster.nodes.tobytes():
            raise PolicyError(
                "the policy changed the state of the cluster", where=self._policy.name,
                hint="a policy only reads the pod and the node it is given",
            )  # fmt: skip

    def _check_log(self) -> None:
        """Refuses a log in which a node gives more than it has, whoever wrote it."""
        log, events, count = self._log, self._events, self._count
        kind, node, pod = log.kind[:count], log.node[:count], log.pod[:count]
        is_move = (kind == events.CREATED) | (kind == events.DELETED)
        order = np.flatnonzero(is_move)[np.argsort(node[is_move], kind="stable")]
        sign = np.where(kind[order] == events.CREATED, 1, -1)
        first = np.searchsorted(node[order], np.arange(len(self._nodes)))
        for asked, total in (("cpu_milli", "cpu_milli_total"), ("memory_mib", "memory_mib_total"),
                             ("gpu_count", "gpu_count")):  # fmt: skip
            used = np.cumsum(np.concatenate([[0], sign * self._pods[asked][pod[order]]]))
            most = self._case.cluster.nodes[total][node[order]]
            if (used[1:] - used[first[node[order]]] > most).any():
                raise PolicyError(f"impossible: a node gives more {asked} than it has")

    def native(self) -> tuple[Native, PairCallback | ClusterCallback | None]:
        """Returns what the events call: machine code, or Python where there is none."""
        if isinstance(self._policy, ClusterPolicy):
            return self.plain()
        slots = self._nodes.dtype["gpu_milli_left"].shape[0]
        try:
            return self._policy.native(self._table.ndim, slots), None
        except PolicyError:
            return self.plain()

    def plain(self) -> tuple[Native, PairCallback | ClusterCallback]:
        """Returns what the events call, in plain Python."""
        from podium.policies.abi import python_callback
        from podium.sim.callback import ClusterCallback, PairCallback

        policy, nodes, pods = self._policy, self._nodes, self._pods
        callback: PairCallback | ClusterCallback
        if isinstance(policy, ClusterPolicy):
            callback = ClusterCallback(policy.chooser(0), nodes, pods, self._feasible)
        else:
            callback = PairCallback(policy, nodes, pods, self._table)
        return python_callback(callback), callback

    def _play(self, address: int) -> int:
        pods, nodes, table = self._pods, self._nodes, self._table
        policy, events = self._policy, self._events
        arrival_s, duration_s = times_of(self._case.workload)
        asked = [
            pods[name].astype(np.int64)
            for name in ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
        ]
        left = [
            nodes[name]
            for name in ("cpu_milli_left", "memory_mib_left", "gpu_count", "gpu_classes",
                         "gpu_milli_left")
        ]  # fmt: skip
        takes_gpu = isinstance(policy, PairPolicy) and policy.takes_gpu
        call = events.Call(
            address, isinstance(policy, ClusterPolicy), takes_gpu, table.ctypes.data, len(table),
            table.shape[1] if table.ndim == 2 else 1, self._feasible,
        )  # fmt: skip
        running = np.zeros((len(nodes), nodes["gpu_milli_left"].shape[1] + 1), np.int64)
        count: int = events.play(
            call,
            events.PodColumns(
                pods.ctypes.data, pods.itemsize, *asked, arrival_s.astype(np.float64),
                duration_s.astype(np.float64), _ranks(self._case.workload.names),
            ),
            events.NodeColumns(
                nodes.ctypes.data, nodes.itemsize, *left, nodes["gpu_count"].astype(np.int64),
                running,
            ),
            self._places, self._log,
        )  # fmt: skip
        return count

    def _failure(self, status: int, error: BaseException | None) -> BaseException:
        events, case = self._events, self._case
        if isinstance(error, PodiumError | KeyboardInterrupt | SystemExit):
            return error
        if status == events.TOO_MANY:
            return PolicyError(
                f"pods failed to find a node more than {MOST_EVENTS - 2} times each on average",
                where=self._policy.name,
                hint="place pods where they fit instead of holding them",
            )
        pod = case.workload.names[int(self._log.pod[0])]
        node = case.cluster.names[events.REFUSED - status]
        if isinstance(self._policy, ClusterPolicy):
            told, place = "the policy chose what is not a node that fits", f'pod "{pod}"'
        else:
            told, place = "the score is NaN or infinite", f'pod "{pod}" on node "{node}"'
        failure = PolicyError(
            told if error is None else f"{type(error).__name__}: {error}",
            where=f"{self._policy.name}, {place}",
            hint="" if error is not None else "return a finite number, or HOLD",
        )
        failure.__cause__ = error
        return failure

    def log(self) -> Log:
        """Returns what happened."""
        log, n = self._log, self._count
        return self._events.Log(
            log.time_s[:n], log.pod[:n], log.kind[:n], log.node[:n], log.lost_milli[:n]
        )

    def measured(self) -> FunsearchResult:
        """Measures what happened."""
        meter = Meter.of(self._case.cluster, len(self._pods))
        if self._count:
            self._fill(meter, self.log())
        return meter.result()

    def _fill(self, meter: Meter, log: Log) -> None:
        """Fills a meter as if it had counted event by event, to the last digit."""
        events, workload = self._events, self._case.workload
        is_failed = (log.kind == events.FAILED) | (log.kind == events.HELD)
        is_created = log.kind == events.CREATED
        sign = np.where(is_created, 1, np.where(is_failed, 0, -1))
        used = np.cumsum(sign[:, None] * self._case.asked[log.pod], axis=0)
        arrival_s, _ = times_of(workload)
        total = max(1, meter.total.gpu_milli)
        meter.events, meter.held = len(sign), int((log.kind == events.HELD).sum())
        meter.snapshots = _snapshots(used, meter.pods)
        meter.served_snapshots = _snapshots(used[~is_failed], meter.pods)
        meter.fragmentation = (log.lost_milli[is_failed] / total).tolist()
        placed = log.pod[is_created]
        meter.waits_s = (log.time_s[is_created] - arrival_s[placed]).tolist()
        meter.first_s, meter.last_s = float(log.time_s[0]), float(log.time_s[-1])
        passed_s = np.diff(log.time_s)
        meter.cpu_milli_s = sum((used[:-1, 0] * passed_s).tolist())
        meter.gpu_s = sum((used[:-1, 2] * passed_s).tolist())


def _snapshots(used: npt.NDArray[np.int64], pods: int) -> list[Amounts]:
    """Takes what is in use whenever events pass another share of the number of pods."""
    found: list[Amounts] = []
    threshold, done = SNAPSHOT_STEP, 0
    while True:
        done = max(done + 1, math.floor(threshold * pods))
        while done <= len(used) and done / pods < threshold:
            done += 1
        if done > len(used):
            return found
        found.append(Amounts(*used[done - 1].tolist()))
        threshold += SNAPSHOT_STEP


def _asked(workload: Workload) -> npt.NDArray[np.int64]:
    pods = workload.pods
    gpu_milli = pods["gpu_count"].astype(np.int64) * pods["gpu_milli"]
    columns = (pods["cpu_milli"], pods["memory_mib"], pods["gpu_count"], gpu_milli)
    return np.stack(columns, axis=1).astype(np.int64)


def _records(workload: Workload) -> npt.NDArray[Any]:
    pods = workload.pods.copy()
    pods["gpu_models"] = ANY_MODEL  # the original reads what pods accept, and never asks
    return pods


def _table(policy: Policy, workload: Workload) -> npt.NDArray[np.float64]:
    return policy.table(workload.shapes()) if isinstance(policy, PairPolicy) else np.zeros(1)


def _ranks(names: tuple[str, ...]) -> npt.NDArray[np.int64]:
    order = sorted(range(len(names)), key=names.__getitem__)
    ranks = np.empty(len(names), np.int64)
    ranks[order] = np.arange(len(names))
    return ranks
