"""Reads parts of GPUs as KAI, once Run:ai, writes them in annotations."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from podium.traces.fields import quantity_of, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.values import MOST_GPUS, PodFacts, Share, share_of


def kai_share(pod: PodFacts) -> Share | None:
    """Reads a fraction or MiB of one or several GPUs.

    A reservation pod holds the GPU of the pods with fractions, which are counted themselves.
    """
    if is_reservation(pod.namespace, pod.labels):
        return Share(0, 0)
    fraction = _annotated(pod, keys.KAI_FRACTION)
    memory = _annotated(pod, keys.KAI_MEMORY)
    if fraction is None and memory is None:
        return None
    field = f"metadata.annotations.{keys.KAI_DEVICES}"
    count = whole_of(pod.annotations.get(keys.KAI_DEVICES, "1"), field, 1, MOST_GPUS)
    field = f"metadata.annotations.{keys.KAI_FRACTION if memory is None else keys.KAI_MEMORY}"
    found = share_of(count, fraction or Fraction(0), field, int(memory or 0))
    needs = pod.inventory.served_by(keys.KAI_SHARING, pod.node)
    return Share(found.count, found.milli, found.memory_mib, slots=_slots(pod), needs=needs)


def is_reservation(namespace: str, labels: Mapping[str, str]) -> bool:
    """Tells whether a pod only holds a GPU for others, or lets an autoscaler see that they wait."""
    stands_in = namespace in keys.KAI_RESERVATIONS or namespace in keys.KAI_SCALING
    return stands_in or labels.get("app") in keys.KAI_RESERVATIONS


def _slots(pod: PodFacts) -> tuple[int, ...]:
    """Finds the cards of a running pod: pods of one group share one."""
    # With several devices the name of the group is part of the label.
    names = sorted(key for key in pod.labels if key.split("/")[0] == keys.KAI_GROUP)
    if not pod.node or pod.inventory.ids.get(pod.node):
        return ()
    groups = [pod.labels[name] for name in names]
    return tuple(sorted({pod.inventory.group_slot(pod.node, group) for group in groups}))


def _annotated(pod: PodFacts, key: str) -> Fraction | None:
    if key not in pod.annotations:
        return None
    return quantity_of(pod.annotations[key], f"metadata.annotations.{key}")
