"""Tells the pods of a run apart as the core does: by record, constraint class and GPU shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model import Workload
from podium.model.shares import IMPOSSIBLE

Records = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class CoreShapes:
    """Lists the distinct pods of a run; behind them, what they are on other kinds of GPU."""

    records: Records  # (num_shapes + variants,) of POD
    shape_of: npt.NDArray[np.int64]  # (num_pods,)
    num_shapes: int
    class_of: npt.NDArray[np.int32]  # (num_shapes,) constraint classes
    shares: npt.NDArray[np.int32]  # (num_shapes, num_kinds) indices into records, -1 = impossible


def core_shapes(workload: Workload) -> CoreShapes:
    """Numbers the shapes in order of first appearance."""
    shapes = workload.shapes().pods
    if workload.class_of is None and workload.gpu_shares is None:
        none = np.zeros((len(shapes), 0), np.int32)
        return CoreShapes(
            shapes, workload.shape_of(), len(shapes), np.zeros(len(shapes), np.int32), none
        )
    shape_of, first = _numbered(workload)
    class_of = np.zeros(len(first), np.int32)
    if workload.class_of is not None:
        class_of = workload.class_of[first]
    records = workload.pods[first]
    variants, shares = _variants(records, workload, first)
    return CoreShapes(np.append(records, variants), shape_of, len(first), class_of, shares)


def _numbered(workload: Workload) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    columns = [workload.shape_of()[:, np.newaxis]]
    if workload.class_of is not None:
        columns.append(workload.class_of[:, np.newaxis].astype(np.int64))
    if workload.gpu_shares is not None:
        columns.append(workload.gpu_shares.reshape(len(workload), -1).astype(np.int64))
    _, first, index = np.unique(
        np.concatenate(columns, axis=1), axis=0, return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    number = np.empty(len(first), np.int64)
    number[order] = np.arange(len(first))
    return number[index.ravel()], first[order].astype(np.int64)


def _variants(
    records: Records, workload: Workload, first: npt.NDArray[np.int64]
) -> tuple[Records, npt.NDArray[np.int32]]:
    if workload.gpu_shares is None:
        return records[:0], np.zeros((len(records), 0), np.int32)
    asked = workload.gpu_shares[first]  # (num_shapes, num_kinds, 2)
    num_kinds = asked.shape[1]
    variants = np.repeat(records, num_kinds)
    variants["gpu_count"] = asked[:, :, 0].ravel()
    variants["gpu_milli"] = asked[:, :, 1].ravel()
    numbers = len(records) + np.arange(len(variants)).reshape(-1, num_kinds)
    return variants, np.where(asked[:, :, 0] == IMPOSSIBLE, -1, numbers).astype(np.int32)
