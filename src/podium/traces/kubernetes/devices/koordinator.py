"""Reads GPUs as Koordinator describes them: percent of cores and of memory, and Device objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.traces.fields import FieldError, flag_of, mapping_at, mappings_at, quantity_of, text_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.values import (
    Cards,
    NodeFacts,
    PodFacts,
    Resources,
    Share,
    asked_gpus,
    mib_of,
    share_of,
    slots_of,
    whole_gpus,
)

_CARD = 100  # percent of gpu-core, gpu-memory-ratio and gpu that one card has


def koordinator_cards(node: NodeFacts) -> Cards | None:
    """Reads the totals that a node lists, and its Device object where the dump has it."""
    described = node.inventory.device_cards.get(node.name)
    percent = _of(node.resources, "gpu-core") or _of(node.resources, "gpu")
    if not percent:
        return None
    count = whole_gpus(percent / _CARD, keys.KOORDINATOR_CORE)
    if not count:
        return None
    memory_mib = int(_of(node.resources, "gpu-memory") / count / 1024**2)
    model = node.label(keys.KOORDINATOR_MODEL, *keys.MODEL_LABELS)
    if described is None or len(described.ids) != count:
        return Cards(count, model, memory_mib)
    return Cards(count, model, described.memory_mib or memory_mib, ids=described.ids)


def koordinator_share(pod: PodFacts) -> Share | None:
    """Reads percent of GPUs; what is asked for is spread evenly over `gpu.shared` of them."""
    whole = _of(pod.resources, "gpu")
    cores = _of(pod.resources, "gpu-core") or whole
    ratio = _of(pod.resources, "gpu-memory-ratio") or whole
    memory = _of(pod.resources, "gpu-memory")
    if not (cores or ratio or memory):
        return None
    shared = _of(pod.resources, "gpu.shared")
    count = asked_gpus(shared, "koordinator.sh/gpu.shared") if shared else 1
    part = max(cores, ratio) / _CARD / count
    found = share_of(count, part, keys.KOORDINATOR_CORE, mib_of(memory / count))
    memory_mib = 0 if found.milli == WHOLE_GPU else found.memory_mib
    pod.inventory.compare(cores / _CARD / count, ratio / _CARD / count, memory_mib)
    return Share(found.count, found.milli, memory_mib, slots=_slots(pod))


def described_cards(device: Mapping[str, Any]) -> tuple[str, Cards]:
    """Reads a Device object: the name of its node and the healthy GPUs in it."""
    metadata = mapping_at(device, "metadata", "metadata")
    spec = mapping_at(device, "spec", "spec")
    ids: list[str] = []
    memory_mib = 0
    for each in mappings_at(spec, "devices", "spec.devices"):
        if text_of(each.get("type"), "spec.devices.type") != "gpu":
            continue
        if not flag_of(each.get("health", True), "spec.devices.health"):
            continue
        ids.append(text_of(each.get("minor"), "spec.devices.minor"))
        listed = mapping_at(each, "resources", "spec.devices.resources")
        amounts = {key: quantity_of(value, f"spec.devices.{key}") for key, value in listed.items()}
        memory_mib = int(_of(amounts, "gpu-memory") / 1024**2)
    name = text_of(metadata.get("name"), "metadata.name")
    return name, Cards(len(ids), memory_mib=memory_mib, ids=tuple(ids))


def _of(resources: Resources, name: str) -> Fraction:
    return next(
        (resources[prefix + name] for prefix in keys.KOORDINATOR if resources.get(prefix + name)),
        Fraction(0),
    )


def _slots(pod: PodFacts) -> tuple[int, ...]:
    text = pod.annotations.get(keys.KOORDINATOR_ALLOCATED)
    if not text:
        return ()
    field = f"metadata.annotations.{keys.KOORDINATOR_ALLOCATED}"
    try:
        allocated = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FieldError(field, "is not the JSON that Koordinator writes") from error
    if not isinstance(allocated, dict):
        raise FieldError(field, "a mapping is expected")
    minors = [text_of(each.get("minor"), field) for each in mappings_at(allocated, "gpu", field)]
    # Without a Device object, minors are taken for what they nearly always are: 0, 1, 2, ...
    known = pod.inventory.ids.get(pod.node) or tuple(str(index) for index in range(16))
    return slots_of(minors, known)
