"""Lists the fields that a program may read: their units, their ranges, and words for them."""

from __future__ import annotations

from dataclasses import dataclass

from podium.model.records import GPU_MILLI
from podium.search.genetic.units import COUNT, CPU, GPU, MEMORY, RATIO, Unit

MOST_CPU_MILLI = 10_000_000
MOST_MEMORY_MIB = 100_000_000
MOST_GPUS = 16


@dataclass(frozen=True, slots=True)
class Field:
    """Describes one field."""

    unit: Unit
    low: int
    high: int
    phrase: str


FIELDS = {
    "pod.cpu_milli": Field(CPU, 0, MOST_CPU_MILLI, "the pod's CPU"),
    "pod.memory_mib": Field(MEMORY, 0, MOST_MEMORY_MIB, "the pod's memory"),
    "pod.gpu_count": Field(COUNT, 0, MOST_GPUS, "the pod's GPUs"),
    "pod.gpu_milli": Field(GPU, 0, GPU_MILLI, "the pod's part of a GPU"),
    "node.cpu_milli_left": Field(CPU, 0, MOST_CPU_MILLI, "free CPU"),
    "node.cpu_milli_total": Field(CPU, 0, MOST_CPU_MILLI, "the node's CPU"),
    "node.memory_mib_left": Field(MEMORY, 0, MOST_MEMORY_MIB, "free memory"),
    "node.memory_mib_total": Field(MEMORY, 0, MOST_MEMORY_MIB, "the node's memory"),
    "node.gpu_count": Field(COUNT, 0, MOST_GPUS, "the node's GPUs"),
    "gpu": Field(COUNT, -1, MOST_GPUS - 1, "the GPU's slot"),
    "node.gpu_milli_left[gpu]": Field(GPU, 0, GPU_MILLI, "the GPU's free part"),
    "left": Field(GPU, 0, GPU_MILLI, "the free part"),
    # Read by programs that people wrote; never drawn.
    "slot": Field(COUNT, 0, MOST_GPUS - 1, "the slot"),
    "node.gpu_model": Field(RATIO, -1, 63, "the node's GPU model"),
    "node.rack": Field(RATIO, -1, 2**31, "the node's rack"),
    "node.gpu_classes": Field(RATIO, -(2**31), 2**31, "the classes of pods on the node"),
    "pod.priority": Field(RATIO, -(2**31), 2**31, "the pod's priority"),
    "pod.gang": Field(RATIO, -(2**31), 2**31, "the pod's gang"),
}
"""By the way they are written; `left` is `node.gpu_milli_left[slot]` inside a loop over slots."""

DRAWN = tuple(FIELDS)[:9]
"""What any drawn expression may read."""

SLOT_FIELDS = frozenset(["left", "slot"])
"""What only a loop over slots may read."""

GPU_FIELDS = frozenset(["gpu", "node.gpu_milli_left[gpu]"])
"""What only score(pod, node, gpu) may read."""
