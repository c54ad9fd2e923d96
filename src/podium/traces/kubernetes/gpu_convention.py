"""Normalises the ways in which manifests ask for GPUs into a count, a share and models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.traces.fields import FieldError, quantity_of, whole_of
from podium.traces.kubernetes import keys

MOST_GPUS = 16

_PERCENT_RESOURCES = (
    (keys.HAMI_CORES, keys.NVIDIA_GPU),
    (keys.VOLCANO_CORES, keys.VOLCANO_NUMBER),
)
_MODELLED = frozenset(
    {keys.NVIDIA_GPU, keys.GPU_COUNT, keys.GPU_MILLI, keys.HAMI_CORES, keys.KOORDINATOR_CORE,
     keys.VOLCANO_NUMBER, keys.VOLCANO_CORES}
)  # fmt: skip
_GPU_PREFIXES = (
    "nvidia.com/", "amd.com/gpu", "gpu.intel.com/", "aliyun.com/gpu", "volcano.sh/vgpu",
    "volcano.sh/gpu", "koordinator.sh/gpu", "alibabacloud.com/gpu",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GpuRequest:
    """Holds a number of GPUs and how much of each."""

    count: int
    milli: int


def pod_gpus(annotations: Mapping[str, str], resources: Mapping[str, Fraction]) -> GpuRequest:
    """Reads a pod's GPUs: annotations first, then parts of a GPU, then whole ones."""
    if keys.GPU_COUNT in annotations or keys.GPU_MILLI in annotations:
        return _annotated(annotations)
    if keys.KAI_FRACTION in annotations:
        return _fraction(annotations)
    for cores, number in _PERCENT_RESOURCES:
        if resources.get(cores):
            count = _count(resources.get(number, Fraction(1)), number)
            return _part(count, resources[cores] / 100, cores)
    if resources.get(keys.KOORDINATOR_CORE):
        return _part(1, resources[keys.KOORDINATOR_CORE] / 100, keys.KOORDINATOR_CORE)
    for number in (keys.NVIDIA_GPU, keys.VOLCANO_NUMBER):
        if resources.get(number):
            return GpuRequest(_count(resources[number], number), WHOLE_GPU)
    return GpuRequest(0, 0)


def node_gpus(resources: Mapping[str, Fraction]) -> int:
    """Counts the GPUs that a node offers."""
    if keys.GPU_COUNT in resources:
        return _count(resources[keys.GPU_COUNT], keys.GPU_COUNT)
    if keys.GPU_MILLI in resources:
        return _count(resources[keys.GPU_MILLI] / WHOLE_GPU, keys.GPU_MILLI)
    return _count(resources.get(keys.NVIDIA_GPU, Fraction(0)), keys.NVIDIA_GPU)


def node_model(labels: Mapping[str, str]) -> str:
    """Names the GPU model of a node, empty where no label does."""
    return next((labels[key] for key in keys.MODEL_LABELS if labels.get(key)), "")


def unmodelled(resources: Mapping[str, Fraction]) -> list[str]:
    """Lists the GPU resources that have no counterpart in a record."""
    return [
        name
        for name, amount in resources.items()
        if amount and name.startswith(_GPU_PREFIXES) and name not in _MODELLED
    ]


def _annotated(annotations: Mapping[str, str]) -> GpuRequest:
    field = f"metadata.annotations.{keys.GPU_COUNT}"
    count = whole_of(annotations.get(keys.GPU_COUNT, "1"), field, 0, MOST_GPUS)
    field = f"metadata.annotations.{keys.GPU_MILLI}"
    milli = whole_of(annotations.get(keys.GPU_MILLI, str(WHOLE_GPU)), field, 0, WHOLE_GPU)
    # The hkust simulator reads either zero as a pod without GPUs.
    return GpuRequest(count, milli) if count and milli else GpuRequest(0, 0)


def _fraction(annotations: Mapping[str, str]) -> GpuRequest:
    field = f"metadata.annotations.{keys.KAI_DEVICES}"
    count = whole_of(annotations.get(keys.KAI_DEVICES, "1"), field, 1, MOST_GPUS)
    field = f"metadata.annotations.{keys.KAI_FRACTION}"
    return _part(count, quantity_of(annotations[keys.KAI_FRACTION], field), field)


def _part(count: int, share: Fraction, field: str) -> GpuRequest:
    if share > 1 and share.denominator == 1 and count == 1:
        return GpuRequest(_count(share, field), WHOLE_GPU)
    if not 0 < share <= 1:
        raise FieldError(field, f"{float(share):g} of a GPU is asked for; 0 to 1 is expected")
    return GpuRequest(count, max(1, -int(-share * WHOLE_GPU // 1)))


def _count(amount: Fraction, field: str) -> int:
    if amount.denominator != 1 or not 0 <= amount <= MOST_GPUS:
        raise FieldError(field, f"0 to {MOST_GPUS} whole GPUs are expected, not {float(amount):g}")
    return int(amount)
