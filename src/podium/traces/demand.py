"""Measures what pods ask for against what nodes have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.cluster import Cluster
from podium.model.records import GPU_MILLI
from podium.model.workload import Workload

RESOURCES = ("gpu", "cpu", "memory")


def asked(workload: Workload) -> dict[str, npt.NDArray[np.int64]]:
    """Gives each pod's demand per resource, in milli-GPU, milli-CPU and MiB."""
    pods = workload.pods
    return {
        "gpu": workload.gpu_weight_milli,
        "cpu": pods["cpu_milli"].astype(np.int64),
        "memory": pods["memory_mib"].astype(np.int64),
    }


def offered(cluster: Cluster) -> dict[str, int]:
    """Gives the capacity of a cluster per resource, in the same units."""
    return {
        "gpu": cluster.gpu_milli_total,
        "cpu": cluster.cpu_milli_total,
        "memory": cluster.memory_mib_total,
    }


def peak(workload: Workload, amounts: npt.NDArray[np.int64]) -> int:
    """Finds the most that is asked for at one time if every pod starts when it arrives."""
    if workload.arrival_s is None or workload.duration_s is None:
        return int(amounts.sum())
    times = np.concatenate([workload.arrival_s, workload.arrival_s + workload.duration_s])
    changes = np.concatenate([amounts, -amounts])
    # What ends at a time is gone before what arrives at it.
    order = np.lexsort((changes, times))
    return max(0, int(np.cumsum(changes[order]).max()))


def shares(amounts: Mapping[str, int], capacity: Mapping[str, int]) -> dict[str, float | None]:
    """Divides by capacity; None where there is none."""
    return {key: amounts[key] / capacity[key] if capacity[key] else None for key in RESOURCES}


def pod_classes(pods: npt.NDArray[Any]) -> dict[str, npt.NDArray[np.bool_]]:
    """Sorts pods by what they ask of GPUs: none, a part of one, or a number of whole ones."""
    counts = pods["gpu_count"]
    is_share = (counts == 1) & (pods["gpu_milli"] < GPU_MILLI)
    classes = {"cpu-only": counts == 0, "share": is_share}
    for count in sorted(set(counts[~is_share & (counts > 0)].tolist())):
        classes[f"{count}-gpu"] = (counts == count) & ~is_share
    return classes
