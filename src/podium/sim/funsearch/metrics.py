"""Measures a run as the FunSearch simulator does, and as it does not.

Why the first kind of figure misleads is said in `podium.sim.funsearch`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from podium.model.cluster import Cluster
from podium.model.records import Pod

SNAPSHOT_STEP = 0.05
"""A snapshot is taken each time the events pass another such share of the number of pods."""

FRAGMENTATION_CAP = 0.1
"""The most that fragmentation can cost in the score."""


@dataclass(frozen=True, slots=True)
class FunsearchResult:
    """Holds the original's figures of one run, then those that it does not report.

    Attributes:
        cpu: Share of CPU in use, a plain mean over the snapshots.
        memory: The same of memory.
        gpu_count: The same of GPUs, where a pod with a part of one counts as a whole.
        gpu_milli: The same of GPU milli.
        fragmentation: Share of GPU milli too small for any waiting pod, mean over failures.
        score: Mean of the four shares less fragmentation; 0 if a pod was dropped.
        failed_attempts: Creations that found no node; each retry counts again.
        held: Of these, those in which a node had room and the policy scored none above 0.
        snapshots: How many were taken.
        events: Creations, deletions and failed attempts together.
        placed: Pods that got a node; the others were dropped.
        time_weighted_gpu_count: Share of GPUs in use from the first event to the last.
        time_weighted_cpu: The same of CPU.
        wait_mean_s: Start less original arrival, mean over placed pods.
        waited: Placed pods that did not start on arrival.
        wait_max_s: The longest wait of a placed pod.
        makespan_s: Time from the first event to the last.
        score_without_retries: The score, had failed attempts not counted as events.
    """

    cpu: float
    memory: float
    gpu_count: float
    gpu_milli: float
    fragmentation: float
    score: float
    failed_attempts: int
    held: int
    snapshots: int
    events: int
    placed: int
    time_weighted_gpu_count: float
    time_weighted_cpu: float
    wait_mean_s: float
    waited: int
    wait_max_s: float
    makespan_s: float
    score_without_retries: float


class Amounts(NamedTuple):
    """Counts resources over the whole cluster."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int


NOTHING = Amounts(0, 0, 0, 0)
"""What an empty cluster has in use."""


@dataclass(slots=True)
class Meter:
    """Counts events, takes snapshots, weighs use by time and keeps waits."""

    total: Amounts
    pods: int
    used: Amounts = NOTHING
    events: int = 0
    threshold: float = SNAPSHOT_STEP
    snapshots: list[Amounts] = field(default_factory=list)
    served: int = 0  # events that are no failed attempts
    served_threshold: float = SNAPSHOT_STEP
    served_snapshots: list[Amounts] = field(default_factory=list)
    fragmentation: list[float] = field(default_factory=list)  # one a failed attempt
    waits_s: list[float] = field(default_factory=list)  # one a placed pod
    held: int = 0
    first_s: float | None = None
    last_s: float = 0.0
    cpu_milli_s: float = 0.0
    gpu_s: float = 0.0

    @classmethod
    def of(cls, cluster: Cluster, pods: int) -> Meter:
        """Starts with nothing in use."""
        total = Amounts(
            cluster.cpu_milli_total,
            cluster.memory_mib_total,
            cluster.gpu_total,
            cluster.gpu_milli_total,
        )
        return cls(total, pods)

    def advance(self, time_s: float) -> None:
        """Weighs the use since the last event by the time that has passed."""
        if self.first_s is None:
            self.first_s = self.last_s = time_s
        passed_s = time_s - self.last_s
        self.cpu_milli_s += self.used.cpu_milli * passed_s
        self.gpu_s += self.used.gpus * passed_s
        self.last_s = time_s

    def count_event(self) -> None:
        """Counts a creation or deletion that succeeded, and takes the snapshots that are due."""
        self._count()
        self.served += 1
        if self.served / self.pods >= self.served_threshold:
            self.served_snapshots.append(self.used)
            self.served_threshold += SNAPSHOT_STEP

    def count_failure(self, fragmentation: float) -> None:
        """Counts a failed attempt, which is an event like any other to the original alone."""
        self.fragmentation.append(fragmentation)
        self._count()

    def _count(self) -> None:
        self.events += 1
        if self.events / self.pods >= self.threshold:
            self.snapshots.append(self.used)
            self.threshold += SNAPSHOT_STEP

    def add(self, pod: Pod, sign: int) -> None:
        """Adds a pod to what is in use, or takes it away (sign -1)."""
        used = self.used
        self.used = Amounts(
            used.cpu_milli + sign * pod.cpu_milli,
            used.memory_mib + sign * pod.memory_mib,
            used.gpus + sign * pod.gpu_count,
            used.gpu_milli + sign * pod.gpu_count * pod.gpu_milli,
        )

    def result(self) -> FunsearchResult:
        """Sums up the run."""
        total = self.total
        cpu, memory, gpu_count, gpu_milli = self._shares(self.snapshots)
        makespan_s = self.last_s - (self.first_s or 0.0)
        return FunsearchResult(
            cpu=cpu,
            memory=memory,
            gpu_count=gpu_count,
            gpu_milli=gpu_milli,
            fragmentation=_mean(self.fragmentation),
            score=self._score(self.snapshots),
            failed_attempts=len(self.fragmentation),
            held=self.held,
            snapshots=len(self.snapshots),
            events=self.events,
            placed=len(self.waits_s),
            time_weighted_gpu_count=_share(self.gpu_s, total.gpus * makespan_s),
            time_weighted_cpu=_share(self.cpu_milli_s, total.cpu_milli * makespan_s),
            wait_mean_s=_mean(self.waits_s),
            waited=sum(wait_s > 0 for wait_s in self.waits_s),
            wait_max_s=max(self.waits_s, default=0.0),
            makespan_s=makespan_s,
            score_without_retries=self._score(self.served_snapshots),
        )

    def _shares(self, snapshots: list[Amounts]) -> list[float]:
        return [
            _mean([_share(snapshot[kind], whole) for snapshot in snapshots])
            for kind, whole in enumerate(self.total)
        ]

    def _score(self, snapshots: list[Amounts]) -> float:
        if len(self.waits_s) < self.pods:
            return 0.0
        lost = min(FRAGMENTATION_CAP, _mean(self.fragmentation))
        return min(1.0, max(0.0, _mean(self._shares(snapshots)) - lost))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
