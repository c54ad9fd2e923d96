"""Reads GPUs as two projects of Alibaba write them: the gpushare extender and open-gpu-share."""

from __future__ import annotations

from fractions import Fraction

from podium.model.cluster import LIMIT
from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.traces.fields import quantity_of, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.plugins import WHOLE_DEVICES
from podium.traces.kubernetes.devices.values import (
    MOST_GPUS,
    Cards,
    NodeFacts,
    PodFacts,
    Share,
    asked_gpus,
    share_of,
    whole_gpus,
)
from podium.traces.kubernetes.devices.vgpu import indices

_LARGEST_GIB = 1000
"""More units than this on one card are MiB: the extender counts in GiB unless told otherwise."""


def open_gpu_share_cards(node: NodeFacts) -> Cards | None:
    """Reads cards as the hkust simulator lists them, and what Podium writes beside them."""
    if keys.GPU_COUNT in node.resources:
        count = whole_gpus(node.resources[keys.GPU_COUNT], keys.GPU_COUNT)
    elif keys.GPU_MILLI in node.resources:
        count = whole_gpus(node.resources[keys.GPU_MILLI] / WHOLE_GPU, keys.GPU_MILLI)
    else:
        return None
    memory_mib = _annotated(node, keys.GPU_MEMORY_MIB, "0", 0, LIMIT)
    replicas = _annotated(node, keys.GPU_REPLICAS, "1", 1, WHOLE_GPU)
    # Devices that stand beside the cards are more than those: Podium keeps them as bounds.
    shared = tuple(name for name in WHOLE_DEVICES if name in node.resources)
    return Cards(count, node.label(*keys.MODEL_LABELS), memory_mib, replicas, shared=shared)


def open_gpu_share(pod: PodFacts) -> Share | None:
    """Reads the annotations of the hkust simulator."""
    if keys.GPU_COUNT not in pod.annotations and keys.GPU_MILLI not in pod.annotations:
        return None
    count = _annotated(pod, keys.GPU_COUNT, "1", 0, MOST_GPUS)
    milli = _annotated(pod, keys.GPU_MILLI, str(WHOLE_GPU), 0, WHOLE_GPU)
    if not count or not milli:
        # The hkust simulator reads either zero as a pod without GPUs.
        return Share(0, 0)
    memory_mib = _annotated(pod, keys.GPU_MEMORY_MIB, "0", 0, LIMIT)
    slots = indices(pod.annotations.get(keys.GPU_INDEX, ""))
    return Share(count, milli, memory_mib, slots=slots)


def gpushare_cards(node: NodeFacts) -> Cards | None:
    """Reads the number of cards and their memory in total."""
    count = whole_gpus(node.amount(keys.GPUSHARE_COUNT), keys.GPUSHARE_COUNT)
    if not count:
        return None
    units = node.amount(keys.GPUSHARE_MEMORY) / count
    unit_mib = 1 if units > _LARGEST_GIB else 1024
    node.inventory.gpushare_unit_mib = unit_mib
    return Cards(count, node.label(*keys.MODEL_LABELS), int(units) * unit_mib)


def gpushare_share(pod: PodFacts) -> Share | None:
    """Reads memory, spread evenly over cards, and percent of their cores."""
    memory = pod.resources.get(keys.GPUSHARE_MEMORY)
    number = pod.resources.get(keys.GPUSHARE_COUNT)
    if not memory and not number:
        return None
    if not number:
        # https://www.alibabacloud.com/help/en/ack: a label asks for several cards.
        label = pod.labels.get(keys.GPUSHARE_COUNT, "1")
        number = quantity_of(label, f"metadata.labels.{keys.GPUSHARE_COUNT}")
    count = asked_gpus(number, keys.GPUSHARE_COUNT)
    slots = indices(pod.annotations.get(keys.GPUSHARE_INDEX, ""))
    if not memory or not count:
        return Share(count, WHOLE_GPU if count else 0, slots=slots)
    unit_mib = pod.inventory.gpushare_unit_mib or (1 if memory > _LARGEST_GIB else 1024)
    memory_mib = -int(-memory * unit_mib // count)
    cores = pod.resources.get(keys.GPUSHARE_CORES, Fraction(0))
    pod.inventory.compare(cores / 100 / count, Fraction(0), memory_mib)
    found = share_of(count, cores / 100 / count, keys.GPUSHARE_CORES, memory_mib)
    return Share(found.count, found.milli, memory_mib, slots=slots)


def _annotated(found: NodeFacts | PodFacts, key: str, default: str, least: int, most: int) -> int:
    text = found.annotations.get(key, default)
    return whole_of(text, f"metadata.annotations.{key}", least, most)
