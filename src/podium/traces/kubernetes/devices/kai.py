"""Reads parts of GPUs as KAI, once Run:ai, writes them in annotations."""

from __future__ import annotations

from fractions import Fraction

from podium.traces.fields import quantity_of, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.values import MOST_GPUS, PodFacts, Share, share_of


def kai_share(pod: PodFacts) -> Share | None:
    """Reads a fraction or MiB of one or several GPUs.

    A reservation pod holds the GPU of the pods with fractions, which are counted themselves.
    """
    if pod.namespace in keys.KAI_RESERVATIONS or pod.labels.get("app") in keys.KAI_RESERVATIONS:
        return Share(0, 0)
    fraction = _annotated(pod, keys.KAI_FRACTION)
    memory = _annotated(pod, keys.KAI_MEMORY)
    if fraction is None and memory is None:
        return None
    field = f"metadata.annotations.{keys.KAI_DEVICES}"
    count = whole_of(pod.annotations.get(keys.KAI_DEVICES, "1"), field, 1, MOST_GPUS)
    if fraction is None:
        return share_of(count, Fraction(0), keys.KAI_MEMORY, int(memory or 0))
    field = f"metadata.annotations.{keys.KAI_FRACTION}"
    return share_of(count, fraction, field)


def _annotated(pod: PodFacts, key: str) -> Fraction | None:
    if key not in pod.annotations:
        return None
    return quantity_of(pod.annotations[key], f"metadata.annotations.{key}")
