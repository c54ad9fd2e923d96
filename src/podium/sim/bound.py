"""Puts pods that run already where they are, before a run begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.model import Cluster, Workload
from podium.model.fit import Held, held_gpus, roomy_share
from podium.model.shares import IMPOSSIBLE


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Says where the first pods of a run are when it begins."""

    node: npt.NDArray[np.int32]  # (num_bound,) index into the cluster
    slots: npt.NDArray[np.int32]  # (num_bound,) bit mask of GPU slots

    def __len__(self) -> int:
        return len(self.node)


NOBODY_BOUND = Bound(np.zeros(0, np.int32), np.zeros(0, np.int32))


def is_bound(workload: Workload) -> npt.NDArray[np.bool_]:
    """Tells of each pod whether it runs already."""
    if not workload.bound_to:
        return np.zeros(len(workload), bool)
    return np.array([bool(name) for name in workload.bound_to], bool)


def bind_first(cluster: Cluster, arrivals: Workload, count: int) -> tuple[Bound, Workload]:
    """Binds the first pods of a run, and gives all of them as those hold their GPUs."""
    if not count:
        return NOBODY_BOUND, arrivals
    first = arrivals.taken(np.arange(count))
    bound, held = bind(cluster, first)
    if held is first:
        return bound, arrivals
    pods = np.append(held.pods, arrivals.pods[count:])
    shares, spreads, asked = arrivals.gpu_shares, arrivals.gpu_spreads, arrivals.gpu_asked
    if shares is not None and held.gpu_shares is not None:
        shares = np.concatenate([held.gpu_shares, shares[count:]])
    if spreads is not None and held.gpu_spreads is not None:
        spreads = np.concatenate([held.gpu_spreads, spreads[count:]])
    if asked is None:
        asked = np.stack([arrivals.pods["gpu_count"], arrivals.pods["gpu_milli"]], axis=1)
    held_so = replace(arrivals, pods=pods, gpu_shares=shares, gpu_spreads=spreads, gpu_asked=asked)
    return bound, held_so


def bind(cluster: Cluster, workload: Workload) -> tuple[Bound, Workload]:
    """Finds nodes and GPUs of bound pods; GPUs that nothing names are the most likely ones.

    A pod that holds more of a GPU than there is left holds that, in the workload given back.
    """
    node = _nodes(cluster, workload)
    named: Sequence[tuple[int, ...]] = workload.bound_slots or ((),) * len(workload)
    free = cluster.nodes.copy()
    slots = np.zeros(len(workload), np.int32)
    pods = placed_records(workload, node, slots, cluster).copy()
    is_clipped = False
    # Who is known to be on a GPU comes first; the others share what is left.
    for pod in sorted(range(len(workload)), key=lambda pod: not named[pod]):
        asked: Any = pods[pod]
        if not asked["gpu_count"]:
            continue
        record = free[int(node[pod])]
        left = record["gpu_milli_left"][: record["gpu_count"]]
        if workload.gpu_spreads is not None:
            ways = workload.gpu_spreads[pod, record["gpu_model"]].tolist()
            asked["gpu_count"], asked["gpu_milli"] = roomy_share(
                [(int(asked["gpu_count"]), int(asked["gpu_milli"])), *ways], left.tolist()
            )
        held = held_gpus(
            int(asked["gpu_count"]), int(asked["gpu_milli"]), left.tolist(), named[pod]
        )
        is_clipped |= _clip(asked, held)
        left[list(held.slots)] -= held.gpu_milli
        slots[pod] = held.mask
    return Bound(node, slots), _as_held(workload, pods) if is_clipped else workload


def _nodes(cluster: Cluster, workload: Workload) -> npt.NDArray[np.int32]:
    index = {name: number for number, name in enumerate(cluster.names)}
    for pod, name in zip(workload.names, workload.bound_to, strict=True):
        if name not in index:
            raise InputError(f'pod "{pod}" runs on node "{name}", which the cluster does not have')
    return np.array([index[name] for name in workload.bound_to], np.int32)


def _clip(asked: Any, held: Held) -> bool:
    """Lets a pod hold what its GPUs have left, if that is less than it asks for."""
    if (asked["gpu_count"], asked["gpu_milli"]) == (len(held.slots), held.gpu_milli):
        return False
    asked["gpu_count"], asked["gpu_milli"] = len(held.slots), held.gpu_milli
    return True


def _as_held(workload: Workload, pods: npt.NDArray[Any]) -> Workload:
    shares, spreads = workload.gpu_shares, workload.gpu_spreads
    if shares is not None:
        held = np.stack([pods["gpu_count"], pods["gpu_milli"]], axis=1)
        shares = np.broadcast_to(held[:, np.newaxis], shares.shape).astype(np.int32)
    if spreads is not None:
        spreads = np.full_like(spreads, IMPOSSIBLE)
    return replace(workload, pods=pods, gpu_shares=shares, gpu_spreads=spreads)


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
