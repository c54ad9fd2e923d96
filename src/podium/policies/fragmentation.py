"""Measures the GPU fragmentation of a node against the pods that are typical of a workload.

Weng et al., "Beware of Fragmentation", USENIX ATC 2023, section 3; the program behind its
figures is hkust-adsl/kubernetes-scheduler-simulator, pkg/utils/frag.go. The functions read
records and views alike, and compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.records import ANY_MODEL, GPU_MILLI
from podium.model.workload import Shapes, TypicalPods

CPU_MILLI, SLOT_MILLI, GPU_COUNT, SHARE, LOW_MODELS, HIGH_MODELS = range(6)
"""Columns of the table of typical pods; models are a bit mask in two exact halves."""

HALF = 32
"""Model bits in each half of the mask; a float holds them exactly."""

CLASSES = (
    "q1_lack_both", "q2_lack_gpu", "q4_lack_cpu", "xl_satisfied", "xr_lack_cpu", "no_access",
)  # fmt: skip
"""Why the idle GPU of a node is a fragment; the rest is q3_satisfied."""

FITS = 1 << 16
"""Stands for a slot that fits in a sum of smaller ones: 16 slots are at most 16,000 milli."""

DEFAULT_THRESHOLD, DEFAULT_STEP = 60, 10
"""The value that the published program uses for a threshold or a step of 0."""

_Key = tuple[int, int, int, str]


def fragmentation(
    node: Any, table: Any, cpu_milli: int = 0, slot: int = 0, gpu_milli: int = 0, gpu_count: int = 0
) -> float:
    """Sums the GPU milli of a node that typical pods cannot use, as expected of the next pod.

    With a demand, the node is taken as it would be without that CPU, without `gpu_milli` of one
    slot, and without `gpu_count` whole GPUs.
    """
    q1, q2, q4, xl, xr, no_access = fragments(node, table, cpu_milli, slot, gpu_milli, gpu_count)
    return q1 + q2 + q4 + xl + xr + no_access  # type: ignore[no-any-return]


def fragments(
    node: Any, table: Any, cpu_milli: int = 0, slot: int = 0, gpu_milli: int = 0, gpu_count: int = 0
) -> Any:
    """Splits the fragmentation of a node by CLASSES.

    One sum a class, in the order of the table, and the classes then added in their order: so
    does the published program, and the last bit decides between two whole scores.
    """
    q1 = q2 = q4 = xl = xr = no_access = 0.0
    idle = -gpu_milli - gpu_count * GPU_MILLI
    for index in range(len(node.gpu_milli_left)):
        idle += node.gpu_milli_left[index]
    cpu_left = node.cpu_milli_left - cpu_milli
    models = LOW_MODELS if node.gpu_model < HALF else HIGH_MODELS
    model = 1 << (node.gpu_model % HALF)
    for row in range(len(table) if idle > 0 else 0):
        share, need = table[row, SHARE], int(table[row, SLOT_MILLI])
        lost = share * idle
        is_short = cpu_left < table[row, CPU_MILLI]
        lost_to_cpu = lost if is_short else 0.0
        if need == 0:
            xl += 0.0 if is_short else lost
            xr += lost_to_cpu
        elif int(table[row, models]) & model == 0:
            no_access += lost
        else:
            slots = -gpu_count * FITS
            for index in range(len(node.gpu_milli_left)):
                left = node.gpu_milli_left[index] - (gpu_milli if index == slot else 0)
                slots += FITS if left >= need else left
            is_lacking = slots < table[row, GPU_COUNT] * FITS
            lost_to_gpu = lost if is_lacking else share * (slots % FITS)
            q2 += 0.0 if is_short else lost_to_gpu
            q1 += lost_to_cpu if is_lacking else 0.0
            q4 += 0.0 if is_lacking else lost_to_cpu
    return q1, q2, q4, xl, xr, no_access


def typical_pods(shapes: Shapes) -> npt.NDArray[np.float64]:
    """Lists the most frequent shapes, memory apart, and the share of pods each stands for."""
    if "typical pods" not in shapes.derived:
        shapes.derived["typical pods"] = _listed(shapes)
    table: npt.NDArray[np.float64] = shapes.derived["typical pods"]
    return table.copy()


def _listed(shapes: Shapes) -> npt.NDArray[np.float64]:
    counts, masks = _counted(shapes)
    ranked = sorted(counts, key=lambda key: (counts[key], key), reverse=True)
    total = sum(counts.values())
    taken, covered = _covering([counts[key] for key in ranked], total, shapes.typical)
    rows = [
        (*key[:3], (counts[key] / total) / (covered / total), *_halves(masks[key]))
        for key in ranked[:taken]
    ]
    return np.array(rows, np.float64).reshape(taken, 6)


def _counted(shapes: Shapes) -> tuple[dict[_Key, float], dict[_Key, int]]:
    counts: dict[_Key, float] = {}
    masks: dict[_Key, int] = {}
    weight = shapes.typical.gpu_res_weight
    for pod, spec, count in zip(shapes.pods, shapes.gpu_specs, shapes.weights, strict=True):
        gpus = int(pod["gpu_count"])
        if gpus == 0 and not shapes.typical.is_involved_cpu_pods:
            continue
        key = (int(pod["cpu_milli"]), int(pod["gpu_milli"]), gpus, spec)
        extra = weight * gpus if pod["gpu_milli"] == GPU_MILLI else 0.0
        counts[key] = counts.get(key, 0.0) + float(count) * (1 + extra)
        masks[key] = int(pod["gpu_models"])
    return counts, masks


def _covering(counts: list[float], total: float, typical: TypicalPods) -> tuple[int, float]:
    wanted = (typical.pod_popularity_threshold or DEFAULT_THRESHOLD) * total / 100
    step = typical.pod_increase_step or DEFAULT_STEP
    taken, covered = 0, 0.0
    while covered < wanted and taken < len(counts):
        covered += sum(counts[taken : taken + step])
        taken = min(taken + step, len(counts))
    return taken, covered


def _halves(mask: int) -> tuple[int, int]:
    bits = (1 << 2 * HALF) - 1 if mask == ANY_MODEL else mask
    return bits % (1 << HALF), bits >> HALF
