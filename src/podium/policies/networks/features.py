"""Describes nodes, pods and the queue as numbers for networks: one arithmetic to train and to serve.

All numbers are of the order of one and none depends on how many nodes there are, so that what was
trained on 16 nodes runs on a thousand. Importing this imports Numba.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from podium.model.records import ANY_MODEL, GPU_MILLI

NODE_NAMES = (
    "present", "fits", "gpu_total", "gpu_free", "whole_free", "largest_free", "parts_free",
    "cpu_free", "cpu_free_share", "memory_free_share", "cpu_per_gpu_total", "idle",
    # Once the pod is here; 0 where it does not fit.
    "gpu_after", "whole_after", "left_on_gpu", "small_rest", "opens_gpu", "cpu_after",
    "cpu_after_share", "memory_after_share", "cpu_per_gpu_after", "fills",
    "starved_more_low", "starved_more", "starved_more_high", "starved_after",
)  # fmt: skip
POD_NAMES = (
    "present", "gpu_count", "gpu_milli", "gpu_demand", "is_cpu_only", "is_part", "is_one",
    "is_several", "is_eight", "cpu", "memory", "cpu_per_gpu", "names_models",
)  # fmt: skip
CONTEXT_NAMES = (
    "round", "is_last_round", "holds", "may_hold", "gpu_free", "whole_free", "cpu_free",
    "demand", "demand_part", "demand_one", "demand_several", "demand_eight", "demand_cpu",
)  # fmt: skip
NODE_FEATURES, POD_FEATURES, CONTEXT_FEATURES = len(NODE_NAMES), len(POD_NAMES), len(CONTEXT_NAMES)

CLASSES = 4
"""Classes of GPU demand: a part of one GPU, one, several, and eight or more."""

DEMANDS = CLASSES + 1
"""Demand of a queue: GPU milli by class, then CPU milli."""

SMALL_GPU_MILLI = 200
"""A free part below this is of little use to others: few pods of OpenB ask for less."""

_GPUS = 1.0 / 8000.0
_CPU = 1.0 / 96_000.0
_LOW, _USUAL, _HIGH = 8.0, 13.0, 24.0  # CPU milli that pods take beside one GPU milli


@numba.njit(nogil=True, error_model="numpy", inline="always")
def _bounded(ratio):
    """Maps a ratio from 0 to infinity to 0 to 1; 1 becomes a half."""
    return ratio / (1.0 + ratio)


@numba.njit(nogil=True, error_model="numpy")
def demand_class(gpu_count, gpu_milli):
    """Gives the class of GPU demand, -1 for a pod without GPUs."""
    if gpu_count == 0 or gpu_milli == 0:
        return -1
    if gpu_milli < GPU_MILLI and gpu_count == 1:
        return 0
    if gpu_count == 1:
        return 1
    return 2 if gpu_count < 8 else 3


@numba.njit(nogil=True, error_model="numpy")
def write_node(out, i, node, pod, fits):
    """Writes row i of `out` (num_nodes, NODE_FEATURES): a node, and what a pod would leave there."""
    row = out[i]
    row[:] = 0.0
    free = largest = whole = 0
    tightest = GPU_MILLI + 1
    for slot in range(node.gpu_count):
        left = node.gpu_milli_left[slot]
        free += left
        largest = max(largest, left)
        if left == GPU_MILLI:
            whole += 1
        if left >= pod.gpu_milli:
            tightest = min(tightest, left)
    cpu = node.cpu_milli_left
    gpu_total = GPU_MILLI * node.gpu_count
    row[0] = 1.0
    row[2] = gpu_total * _GPUS
    row[3] = free * _GPUS
    row[4] = whole * 0.125
    row[5] = largest * 0.001
    row[6] = (free - GPU_MILLI * whole) * 0.001
    row[7] = cpu * _CPU
    row[8] = cpu / max(1, node.cpu_milli_total)
    row[9] = node.memory_mib_left / max(1, node.memory_mib_total)
    row[10] = _bounded(node.cpu_milli_total / (12.0 * max(1, gpu_total)))
    row[11] = 1.0 if free == gpu_total and cpu == node.cpu_milli_total else 0.0
    if not fits:
        return
    is_part = 0 < pod.gpu_milli < GPU_MILLI and pod.gpu_count == 1
    wanted = pod.gpu_count * pod.gpu_milli
    after, cpu_after = free - wanted, cpu - pod.cpu_milli
    row[1] = 1.0
    row[12] = after * _GPUS
    opened = pod.gpu_count
    if is_part:
        opened = 1 if tightest == GPU_MILLI else 0
        rest = tightest - pod.gpu_milli
        row[14] = rest * 0.001
        row[15] = rest * 0.005 if rest < SMALL_GPU_MILLI else 0.0
        row[16] = 1.0 if tightest == GPU_MILLI else 0.0
    row[13] = (whole - opened) * 0.125
    row[17] = cpu_after * _CPU
    row[18] = cpu_after / max(1, node.cpu_milli_total)
    row[19] = (node.memory_mib_left - pod.memory_mib) / max(1, node.memory_mib_total)
    row[20] = _bounded(cpu_after / (12.0 * max(1, after)))
    row[21] = 1.0 if after == 0 and gpu_total > 0 else 0.0
    row[22] = _starved_more(free, after, cpu, cpu_after, _LOW)
    row[23] = _starved_more(free, after, cpu, cpu_after, _USUAL)
    row[24] = _starved_more(free, after, cpu, cpu_after, _HIGH)
    row[25] = max(0.0, after - cpu_after / _USUAL) * 0.001


@numba.njit(nogil=True, error_model="numpy", inline="always")
def _starved_more(free, after, cpu, cpu_after, cpu_per_gpu):
    """Gives the GPUs that lose their CPU to a pod, less those without CPU that it takes."""
    before = max(0.0, free - cpu / cpu_per_gpu)
    return (max(0.0, after - cpu_after / cpu_per_gpu) - before) * 0.001


@numba.njit(nogil=True, error_model="numpy")
def write_pod(out, i, pod):
    """Writes row i of `out` (num_pods, POD_FEATURES)."""
    row = out[i]
    row[:] = 0.0
    wanted = pod.gpu_count * pod.gpu_milli
    kind = demand_class(pod.gpu_count, pod.gpu_milli)
    row[0] = 1.0
    row[1] = pod.gpu_count * 0.125
    row[2] = pod.gpu_milli * 0.001
    row[3] = wanted * _GPUS
    row[5 + kind] = 1.0  # CPU-only pods stand before the classes
    row[9] = _bounded(pod.cpu_milli / 8000.0)
    row[10] = _bounded(pod.memory_mib / 32_768.0)
    row[11] = _bounded(pod.cpu_milli / (12.0 * wanted)) if wanted > 0 else 1.0
    row[12] = 0.0 if pod.gpu_models == ANY_MODEL else 1.0


@numba.njit(nogil=True, error_model="numpy")
def write_context(out, nodes, demand, round_number, max_rounds, holds, max_holds, may_hold):
    """Writes `out` (CONTEXT_FEATURES,): where the run stands, what is free and what is asked for.

    `demand` (DEMANDS,) is what all pods without a node ask for, the offered one included. A run
    without rounds has max_rounds 0.
    """
    gpu, gpu_free, whole, cpu, cpu_free = 0, 0, 0, 0, 0
    for i in range(len(nodes)):
        node = nodes[i]
        gpu += GPU_MILLI * node.gpu_count
        cpu += node.cpu_milli_total
        cpu_free += node.cpu_milli_left
        for slot in range(node.gpu_count):
            left = node.gpu_milli_left[slot]
            gpu_free += left
            if left == GPU_MILLI:
                whole += GPU_MILLI
    asked = 0.0
    for kind in range(CLASSES):
        asked += demand[kind]
        out[8 + kind] = _bounded(demand[kind] / max(1, gpu_free))
    out[0] = round_number / max_rounds if max_rounds > 0 else 0.0
    out[1] = 1.0 if max_rounds > 0 and round_number >= max_rounds - 1 else 0.0
    out[2] = holds / max(1, max_holds)
    out[3] = 1.0 if may_hold else 0.0
    out[4] = gpu_free / max(1, gpu)
    out[5] = whole / max(1, gpu)
    out[6] = cpu_free / max(1, cpu)
    out[7] = _bounded(asked / max(1, gpu_free))
    out[12] = _bounded(demand[CLASSES] / max(1, cpu_free))


@numba.njit(nogil=True, error_model="numpy")
def write_nodes(out, nodes, pods, feasible):
    """Writes all rows of `out` (num_nodes, NODE_FEATURES) for the pod `pods[0]`."""
    for i in range(len(nodes)):
        write_node(out, i, nodes[i], pods[0], feasible[i])


def demand_of(pods: Any) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Sums what pods ask for: GPU milli by class, then CPU milli."""
    found = np.zeros(DEMANDS)
    for pod in pods:
        kind = demand_class(pod["gpu_count"], pod["gpu_milli"])
        if kind >= 0:
            found[kind] += int(pod["gpu_count"]) * int(pod["gpu_milli"])
        found[CLASSES] += int(pod["cpu_milli"])
    return found
