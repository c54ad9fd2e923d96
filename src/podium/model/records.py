"""Defines the records of nodes and pods: one cache line a node, half of one a pod.

A policy reads these fields by name. The same names work on a NumPy record, in compiled
code, and on the read-only views that plain Python policies are given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError

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


def pod_record(given: np.void | Pod) -> np.void:
    """Takes a pod as its record, and makes the record of a view.

    Raises:
        UsageError: it is no pod.
    """
    if type(given) is np.void and given.dtype == POD:
        return given
    if isinstance(given, Pod):
        return _record(given, POD)
    raise UsageError(
        f"{_kind_of(given)} is not a pod", where="argument pod",
        hint="give a record such as workload.pods[0], or the pod of an offer",
    )  # fmt: skip


def node_records(
    given: npt.NDArray[Any] | Iterable[np.void | Node] | np.void | Node,
) -> npt.NDArray[Any]:
    """Takes nodes as their records, and makes the records of views, or of one node alone.

    Raises:
        UsageError: they are no nodes, or of both kinds of record.
    """
    if isinstance(given, np.ndarray):
        return _checked(given)
    some: Any = [given] if isinstance(given, Node | np.void) else given
    if not isinstance(some, Iterable):
        raise _no_nodes(given)
    records = [_node_record(each) for each in some]
    if len({each.dtype for each in records}) > 1:
        raise _no_nodes(given)
    return np.array(records, records[0].dtype if records else NODE_8)


def _checked(nodes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if nodes.ndim == 1 and nodes.dtype in (NODE_8, NODE_16):
        return nodes
    raise _no_nodes(nodes)


def _node_record(given: object) -> np.void:
    if isinstance(given, Node):
        kind = NODE_8 if len(given.gpu_milli_left) == NODE_8["gpu_milli_left"].shape[0] else NODE_16
        return _record(given, kind)
    if isinstance(given, np.void) and given.dtype in (NODE_8, NODE_16):
        return given
    raise _no_nodes(given)


def _record(view: Pod | Node, kind: np.dtype[np.void]) -> np.void:
    record: np.void = np.array([tuple(view)], kind)[0]
    return record


def _no_nodes(given: object) -> UsageError:
    return UsageError(
        f"{_kind_of(given)} is not an array of nodes", where="argument nodes",
        hint="give records such as cluster.nodes, or the nodes of an offer",
    )  # fmt: skip


def _kind_of(given: object) -> str:
    return "a record of another kind" if isinstance(given, np.void) else type(given).__name__
