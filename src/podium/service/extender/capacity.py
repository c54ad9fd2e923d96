"""Measures what nodes have, hold and could still take, in GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.waste import MedianPod, lost_milli
from podium.model.cluster import NodeSpec
from podium.model.records import ANY_MODEL, GPU_MILLI, POD
from podium.service.extender.admission import Flags
from podium.service.extender.gangs import room_for

SIZES = (1, 2, 4, 8)
"""Whole GPUs of the pods that are tried for room."""

_OWN_TAINTS = "node.kubernetes.io/"
"""Begins the keys of taints that Kubernetes sets by itself: cordoned, not ready, out of disk."""

Nodes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Demand:
    """Is what recent pods ask for: by it, room is judged."""

    median_pod: MedianPod
    cpu_milli_per_gpu: int  # medians of the pods with whole GPUs
    memory_mib_per_gpu: int

    @classmethod
    def of(cls, pods: npt.NDArray[Any]) -> Demand:
        """Reads the records of pods."""
        whole = pods[(pods["gpu_count"] > 0) & (pods["gpu_milli"] == GPU_MILLI)]
        if not len(whole):
            return cls(MedianPod.of(pods), 0, 0)
        cpu_milli, memory_mib = (
            int(np.median(whole[name] / whole["gpu_count"])) for name in ("cpu_milli", "memory_mib")
        )
        return cls(MedianPod.of(pods), cpu_milli, memory_mib)

    def pod(self, gpus: int) -> np.void:
        """Makes a pod with so many whole GPUs and the usual CPU and memory for each."""
        row = (
            gpus * self.cpu_milli_per_gpu, gpus * self.memory_mib_per_gpu, gpus, GPU_MILLI,
            ANY_MODEL, 0, 0,
        )  # fmt: skip
        record: np.void = np.array([row], POD)[0]
        return record


@dataclass(frozen=True, slots=True)
class Capacity:
    """Is what a cluster has, holds and could still take."""

    gpus: int
    gpus_allocated: float
    gpus_free: Mapping[str, float]  # by kind of loss; with those allocated, they are all
    largest_pod_gpus: int  # the most whole GPUs that one pod could get on one node
    fitting_pods: Mapping[int, int]  # by their whole GPUs: how many would find room


def measure_capacity(nodes: Nodes, is_open: Flags, demand: Demand) -> Capacity:
    """Measures nodes as their records are.

    A node that has given more than it has counts as full. Pods would go to open nodes alone.
    """
    free = np.maximum(nodes["gpu_milli_left"], 0)
    gpus = int(nodes["gpu_count"].sum())
    lost = lost_milli(free, nodes["cpu_milli_left"], nodes["memory_mib_left"], demand.median_pod)
    open_nodes = nodes[is_open & (nodes["gpu_count"] > 0)]
    room = {size: room_for(demand.pod(size), open_nodes) for size in SIZES}
    return Capacity(
        gpus=gpus,
        gpus_allocated=gpus - float(free.sum()) / GPU_MILLI,
        gpus_free={kind: milli / GPU_MILLI for kind, milli in lost.items()},
        largest_pod_gpus=int(room[1].max(initial=0)),
        fitting_pods={size: int(found.sum()) for size, found in room.items()},
    )


def open_nodes(specs: Sequence[NodeSpec | None]) -> Flags:
    """Tells for each node whether it takes pods: Kubernetes itself has set no taint against it.

    Taints of people are tolerated by those pods that the nodes are meant for.
    """
    return np.array([spec is not None and not _is_closed(spec) for spec in specs], bool)


def _is_closed(spec: NodeSpec) -> bool:
    return bool(spec.taints) and any(
        taint.key.startswith(_OWN_TAINTS) and taint.effect in ("NoSchedule", "NoExecute")
        for taint in spec.taints
    )
