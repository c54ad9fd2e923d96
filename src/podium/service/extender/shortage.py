"""Says what nodes lack for a pod, from their records alone, for all of them at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.kube.pod import Request
from podium.model.records import ANY_MODEL
from podium.model.shares import IMPOSSIBLE
from podium.reports.explanation import CPU_SHORT, GPU_SHORT, MEMORY_SHORT, WRONG_MODEL

GPU_MEMORY_SHORT = "not enough GPU memory"
SHORTAGES = ("", WRONG_MODEL, GPU_MEMORY_SHORT, GPU_SHORT, CPU_SHORT, MEMORY_SHORT)
"""What a node may lack, the first that applies; a node that lacks nothing could take the pod."""

Nodes = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


def shortages(request: Request, nodes: Nodes) -> npt.NDArray[np.int64]:
    """Gives for each node the index of what it lacks in SHORTAGES, 0: nothing."""
    pod = request.record
    short = {
        CPU_SHORT: np.maximum(nodes["cpu_milli_left"], 0) < pod["cpu_milli"],
        MEMORY_SHORT: np.maximum(nodes["memory_mib_left"], 0) < pod["memory_mib"],
    }
    if request.spec.gpu_count > 0:
        short |= _gpu_shortages(request, nodes)
    found = np.zeros(len(nodes), np.int64)
    for number in range(len(SHORTAGES) - 1, 0, -1):
        if SHORTAGES[number] in short:
            found[short[SHORTAGES[number]]] = number
    return found


def _gpu_shortages(request: Request, nodes: Nodes) -> dict[str, Flags]:
    pod, models = request.record, nodes["gpu_model"].astype(np.int64)
    count, milli = (np.full(len(nodes), int(pod[key])) for key in ("gpu_count", "gpu_milli"))
    if request.shares is not None:
        has_gpus = models >= 0
        count[has_gpus], milli[has_gpus] = request.shares[models[has_gpus]].T
    is_impossible = count == IMPOSSIBLE
    free = nodes["gpu_milli_left"] >= np.maximum(milli, 1)[:, np.newaxis]
    short = {
        GPU_MEMORY_SHORT: is_impossible,
        GPU_SHORT: (free.sum(axis=1) < count) & ~is_impossible,
    }
    if pod["gpu_models"] != ANY_MODEL:
        allowed = np.int64(pod["gpu_models"]) >> np.maximum(models, 0) & 1
        short[WRONG_MODEL] = (models < 0) | (allowed == 0)
    return short
