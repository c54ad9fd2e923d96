"""Replays a workload by the events of the FunSearch simulator; what they mean is in the package."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from podium.errors import InputError, PolicyError
from podium.model.cluster import Cluster
from podium.model.records import Pod, pod_view
from podium.model.workload import Workload
from podium.sim.funsearch.metrics import FunsearchResult, Meter
from podium.sim.funsearch.scores import FunsearchNode, Score, fits

Times = npt.NDArray[np.float64]


def run_funsearch(cluster: Cluster, workload: Workload, score: Score) -> FunsearchResult:
    """Replays a workload under the original's event model and measures it with its metrics."""
    run = _Run.of(cluster, workload)
    while run.events:
        event = heapq.heappop(run.events)
        run.meter.advance(event.time_s)
        if event.is_deletion:
            run.delete(event.pod)
        else:
            run.create(event, score)
    return run.meter.result()


class _Event(NamedTuple):
    """Sorts by time, then pod name: at equal times a deletion may come after a creation."""

    time_s: float
    name: str
    pod: int
    is_deletion: bool


@dataclass(slots=True)
class _Run:
    """Holds the state of a run: the heap, the nodes, who waits and who runs where."""

    node_names: tuple[str, ...]
    pods: list[Pod]
    arrival_s: list[float]
    duration_s: list[float]
    nodes: list[FunsearchNode]
    events: list[_Event]
    meter: Meter
    waiting_gpu_milli: dict[int, int] = field(default_factory=dict)  # by pod, GPU pods only
    places: dict[int, tuple[int, tuple[int, ...]]] = field(default_factory=dict)  # node, slots

    @classmethod
    def of(cls, cluster: Cluster, workload: Workload) -> _Run:
        """Starts with empty nodes and a heap of creations, pushed in the workload's order."""
        arrival_s, duration_s = (times.tolist() for times in times_of(workload))
        events: list[_Event] = []
        for pod, (time_s, name) in enumerate(zip(arrival_s, workload.names, strict=True)):
            heapq.heappush(events, _Event(time_s, name, pod, is_deletion=False))
        return cls(
            node_names=cluster.names,
            pods=[pod_view(record) for record in workload.pods],
            arrival_s=arrival_s,
            duration_s=duration_s,
            nodes=[FunsearchNode.of(spec) for spec in cluster.specs()],
            events=events,
            meter=Meter.of(cluster, len(workload)),
        )

    def create(self, event: _Event, score: Score) -> None:
        """Places the pod on the first of the best nodes, or lets it fail."""
        pod = self.pods[event.pod]
        best, best_score = -1, 0.0
        for index, node in enumerate(self.nodes):
            node_score = score(pod, node)
            if node_score > best_score:
                best, best_score = index, node_score
        if best < 0:
            self._fail(event)
        elif fits(pod, self.nodes[best]):
            self._place(event, best)
        else:
            raise PolicyError(
                f'pod "{event.name}" does not fit the node "{self.node_names[best]}" '
                f"that got the highest score, {best_score}",
                where=f"at {event.time_s:.0f} s",
                hint="return 0 for a node that cannot take the pod",
            )

    def delete(self, pod: int) -> None:
        """Returns what the pod holds."""
        node, slots = self.places[pod]
        self._move(pod, node, slots, -1)
        self.meter.count_event()

    def _place(self, event: _Event, node: int) -> None:
        pod, slots = event.pod, _tightest(self.pods[event.pod], self.nodes[node])
        self._move(pod, node, slots, +1)
        self.places[pod] = node, slots
        self.waiting_gpu_milli.pop(pod, None)
        self.meter.waits_s.append(event.time_s - self.arrival_s[pod])
        end_s = event.time_s + self.duration_s[pod]
        heapq.heappush(self.events, event._replace(time_s=end_s, is_deletion=True))
        self.meter.count_event()

    def _fail(self, event: _Event) -> None:
        pod = self.pods[event.pod]
        self.meter.held += any(fits(pod, node) for node in self.nodes)
        if pod.gpu_count:
            self.waiting_gpu_milli[event.pod] = pod.gpu_milli
        self.meter.count_failure(self._fragmentation())
        # The array order of the heap, not the order in time.
        deletion = next((other for other in self.events if other.is_deletion), None)
        if deletion is not None:
            heapq.heappush(self.events, event._replace(time_s=deletion.time_s + 1))

    def _fragmentation(self) -> float:
        smallest = min(self.waiting_gpu_milli.values(), default=0)
        stranded = sum(r for node in self.nodes for r in node.gpu_milli_left if r < smallest)
        return stranded / max(1, self.meter.total.gpu_milli)

    def _move(self, pod: int, node: int, slots: tuple[int, ...], sign: int) -> None:
        """Takes the pod's resources from the node, or returns them (sign -1)."""
        taken, state = self.pods[pod], self.nodes[node]
        free = list(state.gpu_milli_left)
        for slot in slots:
            free[slot] -= sign * taken.gpu_milli
        self.nodes[node] = state._replace(
            cpu_milli_left=state.cpu_milli_left - sign * taken.cpu_milli,
            memory_mib_left=state.memory_mib_left - sign * taken.memory_mib,
            gpus_left=state.gpus_left - sign * taken.gpu_count,
            gpu_milli_left=tuple(free),
        )
        self.meter.add(taken, sign)


def times_of(workload: Workload) -> tuple[Times, Times]:
    """Returns when pods arrive and how long they run.

    Raises:
        InputError: the workload has no times.
    """
    if workload.arrival_s is None or workload.duration_s is None:
        raise InputError(
            "the pods have no arrival and run times",
            where=workload.name,
            hint="give a trace with creation and deletion times, such as openb:default",
        )
    return workload.arrival_s, workload.duration_s


def _tightest(pod: Pod, node: FunsearchNode) -> tuple[int, ...]:
    fitting = [slot for slot, free in enumerate(node.gpu_milli_left) if free >= pod.gpu_milli]
    return tuple(sorted(fitting, key=node.gpu_milli_left.__getitem__)[: pod.gpu_count])
