"""Defines the records of nodes and pods: one cache line a node, half of one a pod.

A policy reads these fields by name. The same names work on a NumPy record, in compiled
code, and on the read-only views that plain Python policies are given.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

GPU_MILLI = 1000
"""One whole GPU."""

ANY_MODEL = -1
"""All bits set: the pod accepts every GPU model."""

MAX_MODELS = 53
"""Bits of `gpu_models` that can name a model; the mask is exact in a double."""

SHARE_CLASS = 1
"""Bit 0 of `gpu_classes`: pods with a part of one GPU run on the node; bit k: k-GPU pods."""


def node_dtype(gpu_slots: int) -> np.dtype[np.void]:
    """Builds the node record with room for a number of GPU slots."""
    fields = [
        ("cpu_milli_left", np.int32),
        ("cpu_milli_total", np.int32),
        ("memory_mib_left", np.int32),
        ("memory_mib_total", np.int32),
        ("gpu_count", np.int32),
        ("gpu_model", np.int32),
        ("rack", np.int32),
        ("gpu_classes", np.int32),
        ("gpu_milli_left", np.int32, (gpu_slots,)),
    ]
    return np.dtype(fields)


NODE_8 = node_dtype(8)  # 64 bytes: one cache line
NODE_16 = node_dtype(16)  # 96 bytes, for clusters with more than 8 GPUs a node

POD = np.dtype(
    [
        ("cpu_milli", np.int32),
        ("memory_mib", np.int32),
        ("gpu_count", np.int32),
        ("gpu_milli", np.int32),
        ("gpu_models", np.int64),
        ("priority", np.int32),
        ("gang", np.int32),
    ]
)


class Node(NamedTuple):
    """Shows one node record to plain Python, read-only and in Python integers."""

    cpu_milli_left: int
    cpu_milli_total: int
    memory_mib_left: int
    memory_mib_total: int
    gpu_count: int
    gpu_model: int
    rack: int
    gpu_classes: int
    gpu_milli_left: tuple[int, ...]


class Pod(NamedTuple):
    """Shows one pod record to plain Python, read-only and in Python integers."""

    cpu_milli: int
    memory_mib: int
    gpu_count: int
    gpu_milli: int
    gpu_models: int
    priority: int
    gang: int


def node_view(record: np.void) -> Node:
    """Reads a node record into a view."""
    values: Any = record.item()
    slots = tuple(int(milli) for milli in values[-1])
    return Node._make((*values[:-1], slots))


def pod_view(record: np.void) -> Pod:
    """Reads a pod record into a view."""
    return Pod(*record.item())
