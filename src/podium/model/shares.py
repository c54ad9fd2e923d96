"""Works out which share of a GPU a request is on each kind of GPU that a cluster has.

One request means different things on different nodes: 8 GiB of GPU memory are half of a T4 and a
tenth of an A100, and one `nvidia.com/gpu` is a quarter of a card that is advertised four times.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.cluster import GpuKind
from podium.model.fit import fitting_nodes
from podium.model.records import ANY_MODEL, GPU_MILLI

MOST_GPUS = 16
"""Of a node."""

IMPOSSIBLE = -1
"""The count of a request that no GPU of a kind can serve."""

Shares = npt.NDArray[np.int32]


def share_on(count: int, milli: int, memory_mib: int, kind: GpuKind) -> tuple[int, int]:
    """Gives GPUs and milli of each that a request takes on a kind of GPU.

    >>> share_on(1, 1, 8192, GpuKind("T4", 16384)), share_on(3, 1000, 0, GpuKind("T4", 0, 4))
    ((1, 500), (1, 750))
    """
    if count == 0:
        return 0, 0
    if memory_mib:
        if memory_mib > kind.memory_mib:
            return IMPOSSIBLE, 0
        return count, max(milli, _milli_of_memory(memory_mib, kind.memory_mib))
    if milli < GPU_MILLI or kind.replicas == 1:
        return count, milli
    cards = -(-count // kind.replicas)
    return cards, _milli_of(count, cards, kind)


def _milli_of_memory(memory_mib: int, of_mib: int) -> int:
    """Rounds up, so that no MiB is given twice; but as many as fit a card fit: three thirds do."""
    return min(-(-GPU_MILLI * memory_mib // of_mib), GPU_MILLI // (of_mib // memory_mib) or 1)


def spreads_on(
    count: int, milli: int, memory_mib: int, kind: GpuKind, most: int = MOST_GPUS
) -> list[tuple[int, int]]:
    """Lists how devices may lie on more cards than `share_on` says, where those have no room.

    A device plugin hands out any devices that are free. A record has the same of each of its
    GPUs, so devices are split evenly, those ways first that give whole ones. Over all cards of a
    node they may lie however many are left on each: kube-scheduler counts devices, not cards.
    Where there is no other way, the usual one stands for itself.

    >>> kind = GpuKind("T4", 0, 4)
    >>> spreads_on(2, 1000, 0, kind, 2), spreads_on(3, 1000, 0, kind, 3)
    ([(2, 250)], [(3, 250), (2, 375)])
    """
    is_shared = kind.replicas > 1 and milli == GPU_MILLI
    if memory_mib or not count or not (is_shared or kind.has_partitions):
        return []
    if not is_shared:
        cards = [each for each in range(1, most + 1) if GPU_MILLI * each >= count * milli]
        others = [(each, count * milli // each) for each in cards if each != count]
        return others or [(count, milli)]
    fewest = -(-count // kind.replicas)
    order = sorted(range(fewest + 1, most + 1), key=lambda each: count % each != 0)
    return [(each, _milli_of(count, each, kind)) for each in order or [fewest]]


def _milli_of(devices: int, cards: int, kind: GpuKind) -> int:
    """Gives the part of each of some cards that some devices are; three thirds are the card."""
    return GPU_MILLI * devices // (kind.replicas * cards)


def gpu_shares(
    pods: npt.NDArray[Any], memory_mib: npt.NDArray[np.int32], kinds: tuple[GpuKind, ...]
) -> Shares:
    """Works the shares out for every pod and kind: (num_pods, num_kinds, 2) of count and milli."""
    distinct, index = _distinct(pods, memory_mib)
    rows = [[share_on(*asked, kind) for kind in kinds] for asked in distinct]
    table = np.array(rows, np.int32).reshape(len(distinct), len(kinds), 2)
    shares: Shares = table[index]
    return shares


def gpu_spreads(
    pods: npt.NDArray[Any], memory_mib: npt.NDArray[np.int32], kinds: tuple[GpuKind, ...],
    most_gpus: int,
) -> Shares | None:  # fmt: skip
    """Works the other ways out: (num_pods, num_kinds, num_ways, 2); None where there are none."""
    distinct, index = _distinct(pods, memory_mib)
    rows = [[spreads_on(*asked, kind, most_gpus) for kind in kinds] for asked in distinct]
    most = max((len(ways) for row in rows for ways in row), default=0)
    if not most:
        return None
    table = np.full((len(distinct), len(kinds), most, 2), IMPOSSIBLE, np.int32)
    for at, row in enumerate(rows):
        for kind, ways in enumerate(row):
            table[at, kind, : len(ways)] = np.array(ways, np.int32).reshape(-1, 2)
    spreads: Shares = table[index]
    return spreads


def _distinct(
    pods: npt.NDArray[Any], memory_mib: npt.NDArray[np.int32]
) -> tuple[list[tuple[int, int, int]], npt.NDArray[np.int64]]:
    asked = np.stack([pods["gpu_count"], pods["gpu_milli"], memory_mib], axis=1)
    distinct, index = np.unique(asked, axis=0, return_inverse=True)
    return [(count, milli, memory) for count, milli, memory in distinct.tolist()], index.ravel()


def gpus_by_kind(nodes: npt.NDArray[Any], num_kinds: int) -> npt.NDArray[np.int64]:
    """Counts the GPUs of each kind."""
    has_gpus = nodes["gpu_model"] >= 0
    models, counts = nodes["gpu_model"][has_gpus], nodes["gpu_count"][has_gpus]
    return np.bincount(models, counts, num_kinds).astype(np.int64)


def usual_share(
    pods: npt.NDArray[Any], shares: Shares, gpus: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Gives the share of each pod on the kind that most GPUs it may use are of.

    That is what policies are told of a pod before anybody knows where it runs.
    The GPUs of each kind are the same for all pods, or a row for each.
    """
    masks = pods["gpu_models"][:, np.newaxis]
    is_allowed = (masks == ANY_MODEL) | (masks >> np.arange(shares.shape[1]) & 1 == 1)
    weight = np.where(is_allowed & (shares[:, :, 0] != IMPOSSIBLE), gpus + 1, 0)
    best = weight.argmax(axis=1)
    usual = shares[np.arange(len(pods)), best]
    is_usable = weight.max(axis=1) > 0
    return (
        np.where(is_usable, usual[:, 0], pods["gpu_count"]),
        np.where(is_usable, usual[:, 1], pods["gpu_milli"]),
    )


def least_milli(
    pods: npt.NDArray[Any], shares: Shares, nodes: npt.NDArray[Any],
    open_to: Sequence[npt.NDArray[np.bool_]], class_of: npt.NDArray[np.int32],
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Gives the fewest GPU milli that each pod takes on any node which fits it when empty.

    The nodes are those that are open to the pod's class. A pod that fits none keeps its share.
    """
    # Pods that run have the share of their node: it counts where like ones would fit none.
    names = ("cpu_milli", "memory_mib", "gpu_models", "gpu_count", "gpu_milli")
    own: list[npt.NDArray[Any]] = [pods[name].astype(np.int64) for name in names]
    asked = np.column_stack([*own, class_of, shares.reshape(len(pods), -1)])
    _, first, index = np.unique(asked, axis=0, return_index=True, return_inverse=True)
    found = [
        _least(pods[pod].copy(), shares[pod].astype(np.int64), nodes[open_to[class_of[pod]]])
        for pod in first.tolist()
    ]
    return np.array(found, np.int64)[index.ravel()]


def _least(pod: Any, shares: npt.NDArray[np.int64], nodes: npt.NDArray[Any]) -> int:
    usual = int(pod["gpu_count"]) * int(pod["gpu_milli"])
    milli = shares.prod(axis=1)
    for kind in np.argsort(milli, kind="stable").tolist():
        if shares[kind, 0] > 0:
            pod["gpu_count"], pod["gpu_milli"] = shares[kind]
            if fitting_nodes(pod, nodes[nodes["gpu_model"] == kind]).any():
                return int(milli[kind])
    return usual
