"""Measures where GPUs were lost or in use when a run ended, and which pods were placed by then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.records import GPU_MILLI
from podium.model.workload import Workload
from podium.sim import Result
from podium.sim.metrics import POD_CLASSES, class_of

STRANDED, BROKEN, IDLE = "stranded", "broken", "idle"
LOSSES = (STRANDED, BROKEN, IDLE)
"""Where free GPUs are, in percent of all; together they are all that is not allocated.

`broken`: parts of GPUs in use, smaller than the median pod with a part of a GPU asks for, wherever
they are; `stranded`: of the others, those on nodes with less CPU or memory than the median GPU pod
asks for; `idle`: the rest, which median pods could still take.
"""

LOST_PREFIX, PLACED_PREFIX = "lost_", "placed_"
"""Begin the names of losses and placed shares where they stand among other figures."""

IN_USE_PREFIX = "in_use_"
"""Begins the names of GPUs in use, by model."""

_DIGITS = 3
_SLACK = 1e-9

Losses = Mapping[str, float]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class MedianPod:
    """What the median pod of a trace or cluster asks for: half of them ask for no more."""

    cpu_milli: float = 0.0  # of the pods that ask for a GPU
    memory_mib: float = 0.0
    part_milli: float = GPU_MILLI  # of the pods that ask for a part of one

    @classmethod
    def of(cls, pods: npt.NDArray[Any]) -> MedianPod:
        """Reads the records of pods."""
        with_gpu = pods[pods["gpu_count"] > 0]
        parts = with_gpu[with_gpu["gpu_milli"] < GPU_MILLI]
        default = cls()
        return cls(
            _median(with_gpu["cpu_milli"], default.cpu_milli),
            _median(with_gpu["memory_mib"], default.memory_mib),
            _median(parts["gpu_milli"], default.part_milli),
        )


def measure_losses(result: Result, median_pod: MedianPod) -> dict[str, float]:
    """Measures losses at the end of a run; in a replay, when the last pod arrives."""
    is_running, is_begun = _at_the_end(result)
    found = {**_lost(result, median_pod, is_running), **_placed(result, is_begun)}
    return {key: min(100.0, max(0.0, round(value, _DIGITS))) for key, value in found.items()}


def lost_milli(
    free_milli: npt.NDArray[Any], cpu_milli_left: npt.NDArray[Any],
    memory_mib_left: npt.NDArray[Any], median_pod: MedianPod,
) -> dict[str, float]:  # fmt: skip
    """Splits the free GPU milli of nodes by the kinds of loss.

    Args:
        free_milli: (num_nodes, num_slots) what is free of each GPU.
        cpu_milli_left: (num_nodes,) of each node.
        memory_mib_left: (num_nodes,) of each node.
        median_pod: by whose requests room is judged.
    """
    is_short = cpu_milli_left < median_pod.cpu_milli
    is_short |= memory_mib_left < median_pod.memory_mib
    is_small = (free_milli < GPU_MILLI) & (free_milli < median_pod.part_milli)
    broken = float(free_milli[is_small].sum())
    stranded = float(free_milli[is_short[:, None] & ~is_small].sum())
    idle = float(free_milli.sum()) - broken - stranded
    return {STRANDED: stranded, BROKEN: broken, IDLE: idle}


def measure_in_use(result: Result) -> dict[str, float]:
    """Counts the GPUs that some pod has at the end, by model, in percent of all GPUs.

    What they draw follows for whoever knows the models: a part of a GPU keeps all of it awake.
    """
    nodes, models = result.plan.cluster.nodes, result.plan.cluster.gpu_models
    is_running, _ = _at_the_end(result)
    is_gpu = np.arange(nodes["gpu_milli_left"].shape[1]) < nodes["gpu_count"][:, None]
    is_used = is_gpu & (_free_gpu_milli(result, is_running) < GPU_MILLI)
    found = dict.fromkeys((f"{IN_USE_PREFIX}{model}" for model in models), 0.0)
    for number, model in enumerate(models):
        used = int(is_used[nodes["gpu_model"] == number].sum())
        found[f"{IN_USE_PREFIX}{model}"] += 100.0 * used / max(1, int(is_gpu.sum()))
    return found


def details_of(losses: Losses) -> dict[str, float]:
    """Names losses and placed shares so that they can stand among the figures of a run.

    >>> details_of({"broken": 1.5, "share": 90.0})
    {'lost_broken': 1.5, 'placed_share': 90.0}
    """
    return {
        f"{LOST_PREFIX if key in LOSSES else PLACED_PREFIX}{key}": value
        for key, value in losses.items()
    }


def without_details(figures: Mapping[str, float]) -> tuple[dict[str, float], Losses]:
    """Parts the figures of a run from the losses among them."""
    kept = {key: value for key, value in figures.items() if not is_detail(key)}
    losses = {
        key.removeprefix(LOST_PREFIX).removeprefix(PLACED_PREFIX): value
        for key, value in figures.items()
        if is_detail(key) and not key.startswith(IN_USE_PREFIX)
    }
    return kept, losses


def is_detail(key: str) -> bool:
    """Returns whether a figure is a loss, the placed share of a class, or GPUs of a model."""
    return key.startswith((LOST_PREFIX, PLACED_PREFIX, IN_USE_PREFIX))


def are_in_use(figures: Mapping[str, Any]) -> bool:
    """Returns whether the GPUs in use among some figures are no more than there are."""
    found = [value for key, value in figures.items() if key.startswith(IN_USE_PREFIX)]
    are_numbers = all(type(value) in (int, float) and value >= 0 for value in found)
    return are_numbers and sum(found) <= 100 + _SLACK


def are_losses(values: object, figures: Mapping[str, float]) -> bool:
    """Returns whether a report has what is measured here, all of it possible beside the figures."""
    if not isinstance(values, dict) or not set(LOSSES) <= set(values) <= {*LOSSES, *POD_CLASSES}:
        return False
    if not all(type(v) in (int, float) and 0 <= v <= 100 + _SLACK for v in values.values()):
        return False
    # What is allocated at the end is not free, and at 130 % there was no more of it.
    together: float = figures.get("allocation_130", 0.0) + sum(values[key] for key in LOSSES)
    return together <= 100 + len(LOSSES) * 10.0**-_DIGITS


def _at_the_end(result: Result) -> tuple[Flags, Flags]:
    """Returns for every pod whether it runs at the end, and whether it was placed by then."""
    if result.plan.protocol.name != "replay" or not len(result.arrival_s):
        return result.is_placed, result.is_placed
    last_s = result.arrival_s[-1]
    is_begun = result.is_placed & (result.start_s <= last_s)
    return is_begun & (result.finish_s > last_s), is_begun


def _lost(result: Result, median_pod: MedianPod, is_running: Flags) -> dict[str, float]:
    nodes = result.plan.cluster.nodes
    pods, where = result.pods[is_running], result.node[is_running]

    def left(field: str, asked: str) -> npt.NDArray[np.float64]:
        return nodes[field] - np.bincount(where, pods[asked], len(nodes))

    lost = lost_milli(
        _free_gpu_milli(result, is_running),
        left("cpu_milli_left", "cpu_milli"),
        left("memory_mib_left", "memory_mib"),
        median_pod,
    )
    percent = 100 / max(1, result.plan.cluster.gpu_milli_total)
    return {kind: milli * percent for kind, milli in lost.items()}


def _free_gpu_milli(result: Result, is_running: Flags) -> npt.NDArray[np.float64]:
    """Returns what is free of each GPU, by node and slot."""
    milli = result.plan.cluster.nodes["gpu_milli_left"]
    where, masks = result.node[is_running], result.slots[is_running]
    asked = result.pods["gpu_milli"][is_running]
    pod, slot = np.nonzero(masks[:, None] >> np.arange(milli.shape[1]) & 1)
    cells = where[pod].astype(np.int64) * milli.shape[1] + slot
    used = np.bincount(cells, asked[pod], milli.size)
    return np.asarray(milli - used.reshape(milli.shape))


def _placed(result: Result, is_begun: Flags) -> dict[str, float]:
    classes = _classes(result.plan.arrivals)
    counts = np.bincount(classes, minlength=len(POD_CLASSES))
    begun = np.bincount(classes, is_begun, len(POD_CLASSES))
    rows = zip(POD_CLASSES, begun, counts, strict=True)
    return {name: 100 * float(some / all_) for name, some, all_ in rows if all_}


def _classes(pods: Workload) -> npt.NDArray[np.int64]:
    """Numbers the class of every pod; all candidates meet the same pods."""
    shapes = pods.shapes()
    if "classes" not in shapes.derived:
        shapes.derived["classes"] = class_of(shapes.pods)
    classes: npt.NDArray[np.int64] = shapes.derived["classes"]
    return classes[pods.shape_of()]


def _median(values: npt.NDArray[np.int64], default: float) -> float:
    return float(np.median(values)) if len(values) else default
