"""Tells the pods of a run apart as the core does: by record and GPU shares, and by constraints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model import Workload
from podium.model.shares import IMPOSSIBLE

NO_WAY, END = -1, -2
"""What follows a share: nothing, as it is the only way, or nothing more."""

Records = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class CoreShapes:
    """Lists the distinct pods of a run; behind them, what they are on other kinds of GPU.

    Pods of one shape score alike. Those of one line, which are of one constraint class as well,
    also fit alike: they wait in one FIFO.
    """

    records: Records  # (num_shapes + variants,) of POD
    shape_of: Numbers  # (num_pods,)
    line_of: Numbers  # (num_pods,)
    num_shapes: int
    line_shape: Numbers  # (num_lines,)
    shares: npt.NDArray[np.int32]  # (num_shapes, num_kinds) indices into records, -1 = impossible
    spreads: npt.NDArray[np.int32]  # (num_shapes + variants,) the same over others, or END, NO_WAY


def core_shapes(workload: Workload) -> CoreShapes:
    """Numbers shapes and lines in order of first appearance, once for a workload."""
    shapes: CoreShapes = workload.derive("core shapes", lambda: _core_shapes(workload))
    return shapes


def preempting_shapes(workload: Workload) -> CoreShapes:
    """Does the same for runs with preemption: who may evict others, and who may not, wait apart."""
    if not workload.never_preempts:
        return core_shapes(workload)
    shapes: CoreShapes = workload.derive("preempting shapes", lambda: _parted(workload))
    return shapes


def _parted(workload: Workload) -> CoreShapes:
    shapes = core_shapes(workload)
    never = np.array(workload.never_preempts, np.int64)
    line_of, first = _numbered((2 * shapes.line_of + never)[:, np.newaxis])
    return replace(shapes, line_of=line_of, line_shape=shapes.shape_of[first])


def _core_shapes(workload: Workload) -> CoreShapes:
    records, shape_of = workload.shapes().pods, workload.shape_of()
    variants, shares = records[:0], np.zeros((len(records), 0), np.int32)
    spreads = np.zeros(1, np.int32)
    if workload.gpu_shares is not None:
        ways = _ways(workload)
        by_kind = ways.reshape(len(workload), -1).astype(np.int64)
        shape_of, first = _numbered(np.column_stack([shape_of, by_kind]))
        records = workload.pods[first]
        variants, shares, spreads = _variants(records, ways[first])
    line_of, line_shape = shape_of, np.arange(len(records))
    if workload.class_of is not None:
        # One number for both is told apart much faster than two.
        both = shape_of * (int(workload.class_of.max(initial=0)) + 1) + workload.class_of
        line_of, first = _numbered(both[:, np.newaxis])
        line_shape = shape_of[first]
    listed = np.append(records, variants)
    return CoreShapes(listed, shape_of, line_of, len(records), line_shape, shares, spreads)


def _ways(workload: Workload) -> npt.NDArray[np.int32]:
    """Gives shares with the ways to spread them: (num_pods, num_kinds, 1 + num_ways, 2)."""
    shares, spreads = workload.gpu_shares, workload.gpu_spreads
    assert shares is not None
    usual = shares[:, :, np.newaxis]
    return usual if spreads is None else np.concatenate([usual, spreads], axis=2)


def _numbered(keys: Numbers) -> tuple[Numbers, Numbers]:
    """Numbers equal rows alike; gives the numbers, and where each appears first."""
    flat = keys.ravel() if keys.shape[1] == 1 else keys
    axis = None if keys.shape[1] == 1 else 0
    _, first, index = np.unique(flat, axis=axis, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[index.ravel()], first[order].astype(np.int64)


def _variants(
    records: Records, ways: npt.NDArray[np.int32]
) -> tuple[Records, npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    num_kinds, num_ways = ways.shape[1:3]
    variants = np.repeat(records, num_kinds * num_ways)
    variants["gpu_count"] = ways[..., 0].ravel()
    variants["gpu_milli"] = ways[..., 1].ravel()
    numbers = len(records) + np.arange(len(variants)).reshape(-1, num_kinds, num_ways)
    numbers = np.where(ways[..., 0] == IMPOSSIBLE, -1, numbers).astype(np.int32)
    following = np.full(len(records) + len(variants), -1, np.int32)
    following[len(records) :].reshape(numbers.shape)[:, :, :-1] = numbers[:, :, 1:]
    has_ways = np.zeros(len(following), bool)
    has_ways[len(records) :] = np.repeat((numbers[:, :, 1:] >= 0).any(axis=2).ravel(), num_ways)
    following[has_ways & (following < 0)] = END
    return variants, np.ascontiguousarray(numbers[:, :, 0]), following
