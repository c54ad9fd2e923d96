"""Generates random states in which a pod fits a node, including awkward ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.fit import fitting_slots
from podium.model.records import (
    ANY_MODEL,
    GPU_MILLI,
    NODE_8,
    NODE_16,
    POD,
    Node,
    Pod,
    node_view,
    pod_view,
)
from podium.model.workload import Shapes

GPU_COUNTS = (0, 1, 2, 4, 8, 16)
MODELS = 5
NUM_SHAPES = 30


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Pods, nodes and GPU slots, row by row: state i is pod i on node i."""

    pods: npt.NDArray[Any]  # (num_states,) of POD
    nodes: npt.NDArray[Any]  # (num_states,) of NODE_8 or NODE_16
    gpus: npt.NDArray[np.int64]  # (num_states,) a slot that fits a share pod, -1 for others

    def __len__(self) -> int:
        return len(self.pods)

    @property
    def gpu_slots(self) -> int:
        """Counts the GPU slots that a node record has room for."""
        return int(self.nodes["gpu_milli_left"].shape[1])

    def views(self) -> list[tuple[Pod, Node, int]]:
        """Shows the states as plain Python policies see them."""
        return [
            (pod_view(pod), node_view(node), int(gpu))
            for pod, node, gpu in zip(self.pods, self.nodes, self.gpus, strict=True)
        ]

    def with_slots(self, gpu_slots: int) -> States:
        """Copies the states whose nodes fit into records of another size."""
        fitting = self.nodes["gpu_count"] <= gpu_slots
        nodes = np.zeros(int(fitting.sum()), NODE_8 if gpu_slots == 8 else NODE_16)
        for name in nodes.dtype.names or ():
            source = self.nodes[name][fitting]
            if name == "gpu_milli_left":
                width = min(gpu_slots, self.gpu_slots)
                nodes[name][:, :width] = source[:, :width]
            else:
                nodes[name] = source
        return States(self.pods[fitting], nodes, self.gpus[fitting])

    def shapes(self) -> Shapes:
        """Returns some of the pods as a workload, so that a policy can prepare its table."""
        pods = self.pods[:NUM_SHAPES]
        return Shapes(pods, ("",) * len(pods), np.arange(1.0, len(pods) + 1))


def random_states(count: int, seed: int) -> States:
    """Draws states on nodes without GPUs and with 1 to 16 of them, in records of 16 slots."""
    random = np.random.default_rng(seed)
    nodes = np.zeros(count, NODE_16)
    pods = np.zeros(count, POD)
    gpus = np.full(count, -1)
    for i in range(count):
        _fill_node(nodes[i], random)
        _fill_pod(pods[i], nodes[i], random)
        if 0 < pods[i]["gpu_milli"] < GPU_MILLI:
            gpus[i] = random.choice(fitting_slots(pods[i], nodes[i]))
    return States(pods, nodes, gpus)


def _fill_node(node: Any, random: np.random.Generator) -> None:
    count = int(random.choice(GPU_COUNTS))
    node["cpu_milli_total"] = 1000 * random.integers(1, 129)
    node["memory_mib_total"] = 1024 * random.integers(1, 1025)
    node["gpu_count"] = count
    node["gpu_model"] = random.integers(MODELS) if count else -1
    node["rack"] = random.integers(-1, 4)
    for name in ("cpu_milli", "memory_mib"):
        total = int(node[f"{name}_total"])
        node[f"{name}_left"] = _part(total, random)
    for slot in range(count):
        node["gpu_milli_left"][slot] = _part(GPU_MILLI, random)
    if (node["gpu_milli_left"][:count] < GPU_MILLI).any():
        node["gpu_classes"] = random.integers(1, 1 << (count + 1))


def _part(total: int, random: np.random.Generator) -> int:
    # Empty and full are as likely as all that lies between.
    return int(random.choice(np.array([0, total, random.integers(total + 1)])))


def _fill_pod(pod: Any, node: Any, random: np.random.Generator) -> None:
    pod["cpu_milli"] = _part(int(node["cpu_milli_left"]), random)
    pod["memory_mib"] = _part(int(node["memory_mib_left"]), random)
    pod["priority"] = random.integers(-2, 3)
    pod["gang"] = random.integers(3)
    pod["gpu_models"] = ANY_MODEL
    left = node["gpu_milli_left"][: node["gpu_count"]]
    free = int((left == GPU_MILLI).sum())
    kind = random.integers(3)
    if kind == 1 and left.max(initial=0) > 0:
        pod["gpu_count"] = 1
        pod["gpu_milli"] = min(GPU_MILLI - 1, random.integers(1, left.max() + 1))
    elif kind == 2 and free > 0:
        pod["gpu_count"] = random.integers(1, free + 1)
        pod["gpu_milli"] = GPU_MILLI
    if pod["gpu_count"] and random.integers(2):
        pod["gpu_models"] = random.integers(1 << MODELS) | 1 << int(node["gpu_model"])
