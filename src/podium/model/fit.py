"""Decides whether a pod fits a node, and which GPUs it gets there.

This is the plain statement of the rules. The compiled core says the same in `podium.sim`;
property tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.model.records import ANY_MODEL, GPU_MILLI, SHARE_CLASS


def is_model_allowed(pod: Any, node: Any) -> bool:
    """Tells whether the pod accepts the node's GPU model."""
    if pod["gpu_models"] == ANY_MODEL:
        return True
    return node["gpu_model"] >= 0 and bool(int(pod["gpu_models"]) >> int(node["gpu_model"]) & 1)


def fits(pod: Any, node: Any) -> bool:
    """Tells whether the node has the CPU, memory, GPU model and GPUs that the pod asks for.

    What nobody asks for cannot be short, not even on a node that gave more than it has.
    """
    if pod["cpu_milli"] > max(node["cpu_milli_left"], 0):
        return False
    if pod["memory_mib"] > max(node["memory_mib_left"], 0):
        return False
    if pod["gpu_count"] == 0:
        return True
    return is_model_allowed(pod, node) and len(fitting_slots(pod, node)) >= pod["gpu_count"]


def fitting_nodes(pod: Any, nodes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tells for each node whether the pod fits, as `fits` does, for all of them at once."""
    fitting: npt.NDArray[np.bool_] = nodes["cpu_milli_left"] >= pod["cpu_milli"]
    if not pod["cpu_milli"]:
        fitting[:] = True
    if pod["memory_mib"]:
        fitting &= nodes["memory_mib_left"] >= pod["memory_mib"]
    if pod["gpu_count"] == 0:
        return fitting
    if pod["gpu_models"] != ANY_MODEL:
        models = nodes["gpu_model"].astype(np.int64)
        allowed = np.int64(pod["gpu_models"]) >> np.maximum(models, 0) & 1
        fitting &= (models >= 0) & (allowed == 1)
    # Slots that a node does not have are 0, and a pod asks for 1 milli at least.
    free = nodes["gpu_milli_left"] >= pod["gpu_milli"]
    fitting &= free.sum(axis=1, dtype=np.int64) >= pod["gpu_count"]
    return fitting


def fitting_slots(pod: Any, node: Any) -> npt.NDArray[np.int64]:
    """Lists the GPU slots with enough free milli for the pod."""
    free = node["gpu_milli_left"][: node["gpu_count"]]
    return np.flatnonzero(free >= pod["gpu_milli"])


def tightest_slots(pod: Any, node: Any) -> tuple[int, ...]:
    """Picks the tightest GPU that fits a share pod, the lowest free ones for whole GPUs."""
    slots = fitting_slots(pod, node)
    if pod["gpu_milli"] < GPU_MILLI:
        slots = slots[np.argsort(node["gpu_milli_left"][slots], kind="stable")]
    return tuple(int(slot) for slot in slots[: pod["gpu_count"]])


class Held(NamedTuple):
    """Says which GPUs of its node a pod holds, and how much of each."""

    slots: tuple[int, ...]
    gpu_milli: int

    @property
    def mask(self) -> int:
        """Gives the slots as bits."""
        return sum(1 << slot for slot in self.slots)


def held_gpus(count: int, milli: int, left: Sequence[int], named: tuple[int, ...] = ()) -> Held:
    """Finds the GPUs that a running pod holds: those that are named, else the most likely ones.

    A node may give more than it has, as after one of its GPUs failed: a part of a GPU then leaves
    less than nothing of it, and a pod of whole GPUs holds those that are left, fewer than it asks
    for. What it asks for stays the same. Two pods never hold one whole GPU, whatever is named.
    """
    known = tuple(dict.fromkeys(slot for slot in named if slot < len(left)))[:count]
    is_free = milli < GPU_MILLI or all(left[slot] > 0 for slot in known)
    chosen = known if len(known) == count and is_free else _likely(count, milli, left)
    if milli == GPU_MILLI:
        chosen = tuple(slot for slot in chosen if left[slot] > 0)
    return Held(chosen, milli)


def roomy_share(ways: Sequence[tuple[int, int]], left: Sequence[int]) -> tuple[int, int]:
    """Picks the first of several (count, milli) for which enough GPUs have room, else the first.

    Of several ways, the one over all GPUs needs only as much room as they have together.

    >>> roomy_share([(1, 500), (2, 250)], [300, 400])
    (2, 250)
    """
    for count, milli in ways:
        if count >= 0 and sum(free >= milli for free in left) >= count:
            return count, milli
        if count == len(left) and len(ways) > 1 and sum(left) >= count * milli:
            return count, milli
    return ways[0]


def _likely(count: int, milli: int, left: Sequence[int]) -> tuple[int, ...]:
    fitting = [slot for slot, free in enumerate(left) if free >= milli]
    if len(fitting) < count:
        # The node gives more than it has; its emptiest GPUs carry it.
        fitting = sorted(range(len(left)), key=lambda slot: -left[slot])
    elif milli < GPU_MILLI:
        fitting.sort(key=lambda slot: left[slot])
    return tuple(fitting[:count])


def pod_class(pod: Any) -> int:
    """Gives the bit of `gpu_classes` that the pod sets on its node; 0 for CPU-only pods."""
    if pod["gpu_count"] == 0:
        return 0
    return SHARE_CLASS if pod["gpu_milli"] < GPU_MILLI else 1 << int(pod["gpu_count"])
