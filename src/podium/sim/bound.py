"""Puts pods that run already where they are, before a run begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.model import Cluster, Workload
from podium.model.fit import held_gpus, roomy_share


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Says where the first pods of a run are when it begins."""

    node: npt.NDArray[np.int32]  # (num_bound,) index into the cluster
    slots: npt.NDArray[np.int32]  # (num_bound,) bit mask of GPU slots
    gpu_milli: npt.NDArray[np.int64]  # (num_bound,) held on them together

    def __len__(self) -> int:
        return len(self.node)


NOBODY_BOUND = Bound(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64))


def is_bound(workload: Workload) -> npt.NDArray[np.bool_]:
    """Tells of each pod whether it runs already."""
    if not workload.bound_to:
        return np.zeros(len(workload), bool)
    return np.array([bool(name) for name in workload.bound_to], bool)


def bind_first(cluster: Cluster, arrivals: Workload, count: int) -> Bound:
    """Binds the first pods of a run."""
    return bind(cluster, arrivals.taken(np.arange(count))) if count else NOBODY_BOUND


def bind(cluster: Cluster, workload: Workload) -> Bound:
    """Finds nodes and GPUs of bound pods; GPUs that nothing names are the most likely ones."""
    node = _nodes(cluster, workload)
    named: Sequence[tuple[int, ...]] = workload.bound_slots or ((),) * len(workload)
    free = cluster.nodes.copy()
    slots = np.zeros(len(workload), np.int32)
    pods = placed_records(workload, node, slots, cluster)
    # Who is known to be on a GPU comes first; the others share what is left.
    for pod in sorted(range(len(workload)), key=lambda pod: not named[pod]):
        count, milli = int(pods["gpu_count"][pod]), int(pods["gpu_milli"][pod])
        if not count:
            continue
        record = free[int(node[pod])]
        left = record["gpu_milli_left"][: record["gpu_count"]]
        if workload.gpu_spreads is not None:
            ways = workload.gpu_spreads[pod, record["gpu_model"]].tolist()
            count, milli = roomy_share([(count, milli), *ways], left.tolist())
        held = held_gpus(count, milli, left.tolist(), named[pod])
        left[list(held.slots)] -= held.gpu_milli
        slots[pod] = held.mask
    held_milli = placed_records(workload, node, slots, cluster)["gpu_milli"].astype(np.int64)
    return Bound(node, slots, np.bitwise_count(slots) * held_milli)


def _nodes(cluster: Cluster, workload: Workload) -> npt.NDArray[np.int32]:
    index = {name: number for number, name in enumerate(cluster.names)}
    for pod, name in zip(workload.names, workload.bound_to, strict=True):
        if name not in index:
            raise InputError(f'pod "{pod}" runs on node "{name}", which the cluster does not have')
    return np.array([index[name] for name in workload.bound_to], np.int32)


def placed_records(
    workload: Workload, node: npt.NDArray[Any], slots: npt.NDArray[Any], cluster: Cluster
) -> npt.NDArray[Any]:
    """Gives the records of pods as they are on the GPUs of the nodes that they run on."""
    if workload.gpu_shares is None:
        return workload.pods
    pods = workload.pods.copy()
    model = cluster.nodes["gpu_model"][np.maximum(node, 0)]
    share = workload.gpu_shares[np.arange(len(pods)), np.maximum(model, 0)]
    if workload.gpu_spreads is not None:
        count = np.bitwise_count(slots)
        for way in range(workload.gpu_spreads.shape[2]):
            other = workload.gpu_spreads[np.arange(len(pods)), np.maximum(model, 0), way]
            share = np.where((other[:, 0] == count)[:, np.newaxis], other, share)
    is_there = (node >= 0) & (model >= 0) & (share[:, 0] >= 0)
    pods["gpu_count"] = np.where(is_there, share[:, 0], pods["gpu_count"])
    pods["gpu_milli"] = np.where(is_there, share[:, 1], pods["gpu_milli"])
    return pods
