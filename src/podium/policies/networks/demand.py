"""What a net knows of a workload: which parts of a GPU its pods can use, and what they want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.records import ANY_MODEL, GPU_MILLI, MAX_MODELS, POD
from podium.model.workload import Shapes, gpu_demand

Array = npt.NDArray[np.float64]

PARTS = GPU_MILLI + 1
NUM_COUNTS = 9  # 0 to 8 whole free GPUs
MODELS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What a net knows of a workload."""

    fitting: Array  # (PARTS,) part of the demand for shares of a GPU that fits a free part
    filled: Array  # (PARTS,) milli of a free part that shares would fill if they came at random
    exact: Array  # (PARTS,) part of the share pods that ask for just so much
    counted: Array  # (PARTS,) part of the share pods that fit
    several: Array  # (NUM_COUNTS,) part of GPU demand of pods that fit so many whole GPUs
    models: Array  # (MODELS,) part of GPU demand that names a model
    cpu_per_gpu: float  # cores beside a GPU that GPU pods ask for
    cpu_only_per_gpu: float  # cores that pods without a GPU ask for, per GPU asked for by others
    shares: float  # part of GPU demand of pods with a share of a GPU
    multiple: float  # part of GPU demand of pods with several GPUs


TYPICAL = "typical"
"""The array of the demand that a net was trained for: CPU, memory, GPUs, GPU milli, count."""

LEAST_PODS = 200
"""With fewer pods than this a demand is filled up with the one that the net was trained for."""


def demand_of(shapes: Shapes, typical: Array | None = None) -> Demand:
    """Derives what a net knows of a workload, once for each list of shapes.

    A live service has seen few pods at first; what it cannot know yet is taken to be typical.
    """
    lacking = LEAST_PODS - float(shapes.weights.sum())
    if typical is not None and lacking > 0:
        return _demand(*_filled_up(shapes, typical, lacking))
    if "mlp demand" not in shapes.derived:
        shapes.derived["mlp demand"] = _demand(shapes.pods, shapes.weights)
    found: Demand = shapes.derived["mlp demand"]
    return found


def _filled_up(shapes: Shapes, typical: Array, lacking: float) -> tuple[npt.NDArray[Any], Array]:
    pods = np.zeros(len(typical), POD)
    for column, name in enumerate(("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")):
        pods[name] = typical[:, column]
    pods["gpu_models"] = ANY_MODEL
    weights = lacking * typical[:, 4] / typical[:, 4].sum()
    return np.concatenate([shapes.pods, pods]), np.concatenate([shapes.weights, weights])


def _demand(pods: npt.NDArray[Any], weights: Array) -> Demand:
    gpu = gpu_demand(pods) * weights
    total = max(float(gpu.sum()), 1e-9)
    count, milli = pods["gpu_count"], pods["gpu_milli"]
    is_share = (count > 0) & (milli < GPU_MILLI)
    is_whole = (count > 0) & ~is_share
    asked = np.bincount(milli[is_share], weights[is_share], PARTS)[:PARTS]
    exact = asked / max(float(asked.sum()), 1e-9)
    sizes = exact * np.arange(PARTS)
    whole = np.bincount(np.minimum(count[is_whole], NUM_COUNTS - 1), gpu[is_whole], NUM_COUNTS)
    cpu = pods["cpu_milli"] * weights
    return Demand(
        fitting=np.cumsum(sizes) / max(float(sizes.sum()), 1e-9),
        filled=_filled(exact),
        exact=exact,
        counted=np.cumsum(exact),
        several=np.cumsum(whole) / total,
        models=_named_models(pods, gpu) / total,
        cpu_per_gpu=float(cpu[count > 0].sum()) / total,
        cpu_only_per_gpu=float(cpu[count == 0].sum()) / total,
        shares=float(gpu[is_share].sum()) / total,
        multiple=float(gpu[is_whole & (count > 1)].sum()) / total,
    )


def _filled(exact: Array) -> Array:
    """Expects how much of each free part is filled by share pods that come at random and fit."""
    asked = np.flatnonzero(exact)
    asked = asked[asked > 0]
    chances, filled = exact[asked], np.zeros(PARTS)
    # So many of the sizes fit into a part, and so likely are they together.
    fitting = np.searchsorted(asked, np.arange(PARTS), "right").tolist()
    total = [float(chances[:count].sum()) for count in range(len(asked) + 1)]
    for milli in range(int(asked[0]) if len(asked) else PARTS, PARTS):
        count = fitting[milli]
        sizes = asked[:count]
        filled[milli] = chances[:count] @ (sizes + filled[milli - sizes]) / total[count]
    return filled


def _named_models(pods: npt.NDArray[Any], gpu: npt.NDArray[Any]) -> Array:
    """Sums the GPU demand that names each model; a pod that accepts several is split among them."""
    named = np.zeros(MODELS)
    for mask in np.unique(pods["gpu_models"]):
        bits = [bit for bit in range(MAX_MODELS) if int(mask) >> bit & 1]
        if mask != ANY_MODEL and bits:
            named[bits] += gpu[pods["gpu_models"] == mask].sum() / len(bits)
    return named
