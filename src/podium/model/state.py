"""Keeps the nodes of a cluster as pods come and go: what is free, and what runs where."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.fit import pod_class
from podium.model.records import GPU_MILLI, SHARE_CLASS

CLASSES = 17
"""Bits of `gpu_classes`: parts of one GPU, and 1 to 16 whole GPUs."""


class ClusterState:
    """Owns node records and changes them only by whole pods, so that every field stays true.

    A record alone cannot tell when the last pod of a class leaves: the pods of each class are
    counted beside it. A class that a node has from the start never leaves it.
    """

    def __init__(self, nodes: npt.NDArray[Any]) -> None:
        self.nodes: npt.NDArray[Any] = nodes.copy()  # (num_nodes,) of NODE_8 or NODE_16
        bits = nodes["gpu_classes"][:, np.newaxis] >> np.arange(CLASSES) & 1
        self._pods_by_class = bits.astype(np.int64)  # (num_nodes, CLASSES)

    def allocate(self, pod: Any, node: int, slots: tuple[int, ...]) -> None:
        """Takes a pod's resources from a node, which must have them."""
        self._move(pod, node, slots, 1)

    def release(self, pod: Any, node: int, slots: tuple[int, ...]) -> None:
        """Returns a pod's resources to a node on which it was allocated."""
        self._move(pod, node, slots, -1)

    def _move(self, pod: Any, node: int, slots: tuple[int, ...], pods: int) -> None:
        record = self.nodes[node]
        record["cpu_milli_left"] -= pods * pod["cpu_milli"]
        record["memory_mib_left"] -= pods * pod["memory_mib"]
        for slot in slots:
            record["gpu_milli_left"][slot] -= pods * pod["gpu_milli"]
        mask = pod_class(pod)
        if mask:
            counts = self._pods_by_class[node]
            counts[mask.bit_length() - 1] += pods
            others = int(record["gpu_classes"]) & ~mask
            record["gpu_classes"] = others | (mask if counts[mask.bit_length() - 1] > 0 else 0)


def occupied(
    nodes: npt.NDArray[Any], pods: npt.NDArray[Any], at: npt.NDArray[Any], slots: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Copies nodes and lets pods run on them: pod i on node `at[i]`, on a bit mask of its GPUs.

    The same as allocating the pods one by one, and many times faster.
    """
    found = nodes.copy()
    every_slot = np.arange(nodes["gpu_milli_left"].shape[1], dtype=np.int32)
    is_taken = slots[:, np.newaxis] >> every_slot & 1
    is_share = pods["gpu_milli"] < GPU_MILLI
    classes = np.where(is_share, (pods["gpu_count"] > 0) * SHARE_CLASS, 1 << pods["gpu_count"])
    np.subtract.at(found["cpu_milli_left"], at, pods["cpu_milli"])
    np.subtract.at(found["memory_mib_left"], at, pods["memory_mib"])
    np.subtract.at(found["gpu_milli_left"], at, is_taken * pods["gpu_milli"][:, np.newaxis])
    np.bitwise_or.at(found["gpu_classes"], at, classes)
    return found
