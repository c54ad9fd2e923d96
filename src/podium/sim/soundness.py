"""Checks what a file claims to be a result: records in range, indices that point to something.

A file from elsewhere may hold anything. What passes here can be recounted, which says whether a
run can have come to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.records import ANY_MODEL, GPU_MILLI, MAX_MODELS
from podium.sim.result import PLACED

Arrays = Mapping[str, npt.NDArray[Any]]

WORKLOADS = ("trace", "arrivals")
TIMES = ("arrival_s", "duration_s")
GPU_MEMORY = "gpu_memory_mib"


def is_sound(header: Mapping[str, Any], arrays: Arrays, decided: Iterable[str]) -> bool:
    """Tells whether records are in range and every index points to what is there."""
    title = "arrivals" if header["arrivals"] is not None else "trace"
    return (
        _is_cluster(header["cluster"], arrays)
        and all(
            _is_workload(each, header, arrays) for each in WORKLOADS if header[each] is not None
        )
        and _are_decisions(title, header, arrays, decided)
        and _is_within(arrays.get("order", arrays["changes"][:0]), 0, len(arrays["trace pods"]) - 1)
        and len(arrays.get("ranks", ())) in (0, len(arrays["nodes"]))
        and _is_gang_order(title, header, arrays)
    )


def _is_cluster(given: Mapping[str, Any], arrays: Arrays) -> bool:
    nodes = arrays["nodes"]
    return (
        len(nodes) == len(given["names"])
        and len(given["labels"]) in (0, len(nodes))
        and sorted(arrays["rank_order"].tolist()) == list(range(len(nodes)))
        and _is_within(nodes["gpu_count"], 0, given["gpu_slots"])
        and _is_within(nodes["gpu_model"], -1, len(given["gpu_models"]) - 1)
        and _is_within(nodes["rack"], -1, len(given["racks"]) - 1)
        and all(_is_left(nodes, resource) for resource in ("cpu_milli", "memory_mib"))
        and _are_gpus(nodes)
    )


def _is_left(nodes: npt.NDArray[Any], resource: str) -> bool:
    left = nodes[f"{resource}_left"]
    return bool(((left >= 0) & (left <= nodes[f"{resource}_total"])).all())


def _are_gpus(nodes: npt.NDArray[Any]) -> bool:
    """Tells whether nodes have no more GPU than they have GPUs."""
    left = nodes["gpu_milli_left"]
    is_there = np.arange(left.shape[1]) < nodes["gpu_count"][:, np.newaxis]
    return bool(((left >= 0) & (left <= GPU_MILLI * is_there)).all())


def _is_workload(title: str, header: Mapping[str, Any], arrays: Arrays) -> bool:
    given, pods = header[title], arrays[f"{title} pods"]
    times = [arrays[key] for name in TIMES if (key := f"{title} {name}") in arrays]
    return (
        all(len(each) == len(pods) for each in (given["names"], given["gpu_specs"], *times))
        and all(bool(((each >= 0) & (each < np.inf)).all()) for each in times)
        and len(given["job_types"]) in (0, len(pods))
        and _is_within(pods["gpu_count"], 0, 16)
        and _is_within(pods["gang"], 0, len(given["gangs"]))
        and _are_requests(pods)
        and _is_gpu_memory(pods, arrays.get(f"{title} {GPU_MEMORY}"))
    )


def _are_requests(pods: npt.NDArray[Any]) -> bool:
    """Tells whether pods ask for what a pod can ask for, as `pod_problem` does of one."""
    count, milli, models = (pods[field] for field in ("gpu_count", "gpu_milli", "gpu_models"))
    least = np.minimum(count, 1)
    is_right = (pods["cpu_milli"] >= 0) & (pods["memory_mib"] >= 0)
    is_right &= (milli >= least) & (milli <= GPU_MILLI * np.minimum(count, 1))
    is_right &= (models >= ANY_MODEL) & (models < 1 << MAX_MODELS)
    return bool(is_right.all())


def _is_gpu_memory(pods: npt.NDArray[Any], memory: npt.NDArray[Any] | None) -> bool:
    """Tells whether pods ask for memory of GPUs, and only of GPUs that they ask for."""
    if memory is None:
        return True
    if len(memory) != len(pods):
        return False
    return bool(((memory >= 0) & ((memory == 0) | (pods["gpu_count"] > 0))).all())


def _is_gang_order(title: str, header: Mapping[str, Any], arrays: Arrays) -> bool:
    """Tells whether every arrival is known to be some pod of the trace, where there are gangs."""
    has_rules = bool(header[title].get("gang_rules"))
    if "gang order" not in arrays:
        return not has_rules or not arrays[f"{title} pods"]["gang"].any()
    order = arrays["gang order"]
    is_complete = len(order) == len(arrays[f"{title} pods"])
    return has_rules and is_complete and _is_within(order, 0, len(arrays["trace pods"]) - 1)


def _are_decisions(
    title: str, header: Mapping[str, Any], arrays: Arrays, decided: Iterable[str]
) -> bool:
    nodes, pods = len(arrays["nodes"]), len(arrays[f"{title} pods"])
    changes = np.abs(arrays["changes"].astype(np.int64))
    return (
        all(len(arrays[name]) == pods for name in decided if not name.startswith("changes"))
        and len(arrays["changes_after"]) in (0, pods)
        and _is_within(arrays["changes_after"], 0, len(changes))
        and _is_within(arrays["node"], -1, nodes - 1)
        and _is_within(arrays["status"], 0, 2)
        and _is_within(arrays["slots"], 0, 2 ** header["cluster"]["gpu_slots"] - 1)
        and _is_within(changes, 1, pods)
        and bool((arrays["node"][arrays["status"] == PLACED] >= 0).all())
        and ("evicted at" not in arrays or _are_evictions(header, arrays, pods))
    )


def _are_evictions(header: Mapping[str, Any], arrays: Arrays, pods: int) -> bool:
    """Tells whether evictions are releases, in order, from nodes that there are."""
    at, changes = arrays["evicted at"], arrays["changes"]
    columns = [array for name, array in arrays.items() if name.startswith("evicted ")]
    return (
        all(len(column) == len(at) for column in columns)
        and _is_within(at, 0, len(changes) - 1)
        and bool((np.diff(at) > 0).all())
        and bool((changes[at] < 0).all())
        and _is_within(arrays["evicted node"], 0, len(arrays["nodes"]) - 1)
        and _is_within(arrays["evicted slots"], 0, 2 ** header["cluster"]["gpu_slots"] - 1)
        and _is_within(arrays["evicted preemptor"], 0, pods - 1)
        and all(np.isfinite(arrays[f"evicted {name}"]).all() for name in ("start_s", "end_s"))
    )


def _is_within(values: npt.NDArray[Any], low: int, high: int) -> bool:
    return not len(values) or (int(values.min()) >= low and int(values.max()) <= high)
