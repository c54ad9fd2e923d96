"""Words what a pod asks for: GPUs, parts of them, or devices that are less than a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podium.model import Cluster, Workload
    from podium.model.cluster import GpuKind


def asked_gpus(arrivals: Workload, pod: int) -> tuple[int, int]:
    """Gives the GPUs that a pod asks for and the milli of each, as it was written."""
    from podium.model.records import GPU_MILLI

    record = arrivals.pods[pod]
    count, milli = (record["gpu_count"], record["gpu_milli"])
    if arrivals.gpu_asked is not None:
        count, milli = arrivals.gpu_asked[pod]
    count = max(count, _devices(arrivals, pod)) if milli == GPU_MILLI else count
    return int(count), int(milli)


def _devices(arrivals: Workload, pod: int) -> int:
    """Counts the devices that a pod asks for, also where a record cannot hold so many GPUs."""
    from podium.traces.kubernetes.devices.plugins import is_counted

    asked = arrivals.constraints[pod].extended if arrivals.constraints else ()
    return max((amount for name, amount in asked if is_counted(name, {})), default=0)


def _partitions(arrivals: Workload, pod: int) -> Iterator[str]:
    """Names what a pod asks for that is no number of GPUs: MIG devices, TPUs and the like."""
    from podium.traces.kubernetes.devices.partitions import partition_share
    from podium.traces.kubernetes.keys import ACCELERATORS

    for name, amount in arrivals.constraints[pod].extended if arrivals.constraints else ():
        if partition_share(name) or ACCELERATORS.fullmatch(name):
            yield f"{amount:,} x {name.partition('/')[2]}"


def asked_words(cluster: Cluster, arrivals: Workload, pod: int, node: int = -1) -> str:
    """Says what a pod asks for where that is no number of GPUs: MiB, or replicas of a GPU.

    Replicas of what it says depends on the node that it is on; negative: on those it could be on.
    """
    from podium.model.records import GPU_MILLI

    count, milli = asked_gpus(arrivals, pod)
    memory = 0 if arrivals.gpu_memory_mib is None else int(arrivals.gpu_memory_mib[pod])
    if memory:
        return f"{count} x {memory:,} MiB" if count > 1 else f"{memory:,} MiB"
    partitions = ", ".join(_partitions(arrivals, pod))
    if partitions or milli < GPU_MILLI or not cluster.gpu_replicas:
        return partitions
    kinds = _kinds(cluster, arrivals, pod, node)
    if any(kind.replicas == 1 for kind in kinds):
        return ""
    noun = "MIG device" if all("-MIG-" in kind.model for kind in kinds) else "replica"
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _kinds(cluster: Cluster, arrivals: Workload, pod: int, node: int) -> list[GpuKind]:
    """Lists the kinds of GPU that a pod has, or could have if nodes were empty."""
    nodes = cluster.nodes
    if node >= 0:
        nodes = nodes[[node]]
    elif arrivals.tables is not None and arrivals.class_of is not None:
        found = arrivals.tables.classes[arrivals.class_of[pod]]
        nodes = nodes[arrivals.tables.could_take(found.node_filter, found.needs)]
    models = set(nodes["gpu_model"][nodes["gpu_count"] > 0].tolist())
    return [cluster.gpu_kinds[model] for model in sorted(models)] or list(cluster.gpu_kinds)
