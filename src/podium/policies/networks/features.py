"""Describes nodes and pods to a network, in numbers from about 0 to 1.

There is one arithmetic, for whoever trains and whoever serves: plain functions that read records
and views alike, and compile. A row is anything that takes numbers by index: an array, or the
address of one in compiled code. No number depends on how many nodes there are, or in which order.
"""

from __future__ import annotations

from typing import Any

from podium.model.records import ANY_MODEL, GPU_MILLI

MOST_GPUS = 8.0
CPU_MILLI = 128_000.0
MEMORY_MIB = 1_048_576.0
"""What numbers of GPUs, CPU and memory are divided by: a large node."""

USUAL_CPU_MILLI = 12_000.0
"""CPU beside a GPU on a usual node: 96 cores beside 8 GPUs."""

NODE_STATE = (
    "is_present",
    "cpu_left",  # share of the node's own
    "memory_left",  # share of the node's own
    "gpu_left",  # share of the node's own
    "gpus_left",  # GPUs / 8, parts counted
    "whole_gpus_left",  # GPUs / 8
    "parts_left",  # of GPUs in use, GPUs / 8
    "largest_part_left",  # of a GPU in use
    "cpu_beside_gpus_left",  # CPU / (CPU + 12 cores for each GPU that is left)
    "cpu_total",  # / 128 cores
    "memory_total",  # / 1 TiB
    "gpus_total",  # GPUs / 8
    "model_share",  # of the cluster's GPUs, those of the same model
    "runs_shares",  # pods with a part of a GPU run here
    "runs_whole",  # pods with whole GPUs run here
)
"""What a node is, whatever pod is offered."""

NODE_PAIR = (
    "fits",
    "cpu_after",  # share of the node's own
    "memory_after",  # share of the node's own
    "gpus_after",  # GPUs / 8, parts counted
    "whole_gpus_after",  # GPUs / 8
    "slot_after",  # left of the GPU that a share pod gets, the tightest that fits
    "opens_gpu",  # a share pod gets a GPU that nobody used
    "cpu_beside_gpus_after",
    "is_full_after",  # no part of a GPU is left
)
"""What would be left with the offered pod on the node; all 0 where it does not fit."""

NODE_NAMES = (*NODE_STATE, *NODE_PAIR)
NODE_FEATURES = len(NODE_NAMES)
FIRST_PAIR = len(NODE_STATE)

POD_NAMES = (
    "is_present",
    "cpu",  # / 128 cores
    "memory",  # / 1 TiB
    "gpus",  # GPUs / 8, a part counted as a part
    "whole_gpus",  # GPUs / 8, of a pod with whole GPUs
    "part",  # of one GPU, of a pod with a part
    "cpu_beside_gpus",  # as of a node
    "is_choosy",  # names GPU models
    "held",  # h / (1 + h) for a pod that was held h times
)
POD_FEATURES = len(POD_NAMES)

CLUSTER_NAMES = ("gpu_left", "cpu_left", "memory_left", "whole_gpus_left", "feasible_nodes")
"""What the nodes alone tell about the cluster: shares of all there is."""

QUEUE_NAMES = (
    "may_hold",
    "demand",  # GPUs asked for by all that arrived, as a share of the cluster's
    "waiting",  # pods in the queue, as a share of all
    "to_come",  # pods that have not arrived, as a share of all
    "rounds_left",  # share; 0 without rounds
)
"""What the queue tells."""

CONTEXT_NAMES = (*CLUSTER_NAMES, *QUEUE_NAMES)
CONTEXT_FEATURES = len(CONTEXT_NAMES)


def write_state(row: Any, node: Any, free: Any, slots: int, model_share: float) -> None:
    """Writes what a node is; `free` are the milli left of its GPU slots."""
    whole, parts, largest = 0, 0, 0
    for slot in range(slots):
        milli = free[slot]
        if milli == GPU_MILLI:
            whole += 1
        else:
            parts += milli
            largest = max(largest, milli)
    gpu = whole * GPU_MILLI + parts
    row[0] = 1.0
    row[1] = node.cpu_milli_left / max(1, node.cpu_milli_total)
    row[2] = node.memory_mib_left / max(1, node.memory_mib_total)
    row[3] = gpu / (GPU_MILLI * max(1, node.gpu_count))
    row[4] = gpu / (GPU_MILLI * MOST_GPUS)
    row[5] = whole / MOST_GPUS
    row[6] = parts / (GPU_MILLI * MOST_GPUS)
    row[7] = largest / GPU_MILLI
    row[8] = beside(node.cpu_milli_left, gpu / GPU_MILLI)
    row[9] = node.cpu_milli_total / CPU_MILLI
    row[10] = node.memory_mib_total / MEMORY_MIB
    row[11] = node.gpu_count / MOST_GPUS
    row[12] = model_share
    row[13] = 1.0 if node.gpu_classes & 1 else 0.0
    row[14] = 1.0 if node.gpu_classes > 1 else 0.0


def write_pair(row: Any, pod: Any, node: Any, free: Any, slots: int) -> None:
    """Writes what would be left with a pod on a node that it fits, behind the node's state."""
    cpu = node.cpu_milli_left - pod.cpu_milli
    gpus = row[4] * MOST_GPUS - pod.gpu_count * pod.gpu_milli / GPU_MILLI
    whole, slot_after, opens = row[5], 0.0, 0.0
    if pod.gpu_milli >= GPU_MILLI:
        whole -= pod.gpu_count / MOST_GPUS
    elif pod.gpu_count > 0:
        tightest = tightest_slot(free, slots, pod.gpu_milli)
        slot_after = (tightest - pod.gpu_milli) / GPU_MILLI
        if tightest == GPU_MILLI:
            opens = 1.0
            whole -= pod.gpu_count / MOST_GPUS
    row[15] = 1.0
    row[16] = cpu / max(1, node.cpu_milli_total)
    row[17] = (node.memory_mib_left - pod.memory_mib) / max(1, node.memory_mib_total)
    row[18] = gpus / MOST_GPUS
    row[19] = whole
    row[20] = slot_after
    row[21] = opens
    row[22] = beside(cpu, gpus)
    row[23] = 1.0 if gpus < 0.0005 and node.gpu_count > 0 else 0.0


def clear_pair(row: Any) -> None:
    """Writes that the offered pod does not fit the node."""
    for i in range(FIRST_PAIR, NODE_FEATURES):
        row[i] = 0.0


def write_pod(row: Any, pod: Any, held: int) -> None:
    """Writes what a pod asks for, and how often it was held."""
    gpus = pod.gpu_count * pod.gpu_milli / GPU_MILLI
    is_whole = pod.gpu_milli >= GPU_MILLI
    row[0] = 1.0
    row[1] = pod.cpu_milli / CPU_MILLI
    row[2] = pod.memory_mib / MEMORY_MIB
    row[3] = gpus / MOST_GPUS
    row[4] = gpus / MOST_GPUS if is_whole else 0.0
    row[5] = 0.0 if is_whole else pod.gpu_milli / GPU_MILLI
    row[6] = beside(pod.cpu_milli, gpus)
    row[7] = 1.0 if pod.gpu_count > 0 and pod.gpu_models != ANY_MODEL else 0.0
    row[8] = held / (1.0 + held)


def tightest_slot(free: Any, slots: int, need: int) -> int:
    """Gives the milli left of the GPU that a part fits the tightest."""
    tightest = GPU_MILLI
    for slot in range(slots):
        milli = free[slot]
        if need <= milli < tightest:
            tightest = milli
    return tightest


def beside(cpu_milli: float, gpus: float) -> float:
    """Compares CPU with GPUs: 1/2 where there are 12 cores for each, 1 where there is no GPU."""
    if cpu_milli <= 0:
        return 0.0
    return cpu_milli / (cpu_milli + USUAL_CPU_MILLI * max(0.0, gpus))
