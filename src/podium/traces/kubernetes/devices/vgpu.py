"""Reads virtual GPUs, parts of cards by cores and memory, as HAMi and Volcano write them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.traces.fields import FieldError, text_of, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.products import known_memory_mib, product_name
from podium.traces.kubernetes.devices.values import (
    MOST_GPUS,
    Cards,
    NodeFacts,
    PodFacts,
    Resources,
    Share,
    asked_gpus,
    share_of,
    slots_of,
    whole_gpus,
)

MIXED_CARDS = "GPUs of several models or sizes on one node are read as the most frequent"
SPLIT_BY_TEN = (
    f"{keys.VOLCANO_NUMBER} without the annotation {keys.VOLCANO_REGISTER} "
    "is read as ten vGPUs a GPU"
)
UNKNOWN_REGISTER = (
    f"the annotation {keys.VOLCANO_REGISTER} lists no healthy GPU in a form that is known, so "
    f"{keys.VOLCANO_NUMBER} is read as ten vGPUs a GPU"
)

_DEFAULT_SPLIT = 10  # deviceSplitCount of the Volcano vGPU device plugin


@dataclass(frozen=True, slots=True)
class _Names:
    """Names the resources and annotations of one project."""

    number: str
    memory: str
    percentage: str
    cores: str
    register: str
    allocated: str
    columns: tuple[str, ...]  # of the register, where it is written as text


HAMI = _Names(
    keys.NVIDIA_GPU, keys.HAMI_MEMORY, keys.HAMI_PERCENTAGE, keys.HAMI_CORES,
    keys.HAMI_REGISTER, keys.HAMI_ALLOCATED,
    ("id", "count", "devmem", "devcore", "type", "numa", "health", "index"),
)  # fmt: skip
VOLCANO = _Names(
    keys.VOLCANO_NUMBER, keys.VOLCANO_MEMORY, keys.VOLCANO_PERCENTAGE, keys.VOLCANO_CORES,
    keys.VOLCANO_REGISTER, keys.VOLCANO_ALLOCATED,
    ("id", "count", "devmem", "type", "health"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Card:
    id: str
    memory: int  # MiB, or larger blocks where the device plugin is told so
    model: str


def hami_cards(node: NodeFacts) -> Cards | None:
    """Reads the cards that HAMi's device plugin registers in an annotation."""
    is_gone = node.annotations.get(keys.HAMI_HANDSHAKE, "").startswith("Deleted")
    cards = [] if is_gone else _registered(node, HAMI)
    if not cards or not node.amount(keys.NVIDIA_GPU):
        return None
    found = _cards(node, cards, memory_factor=1, shared=keys.NVIDIA_GPU)
    return replace(found, serves=(*found.serves, keys.HAMI_REGISTER))


def volcano_cards(node: NodeFacts) -> Cards | None:
    """Reads the cards that Volcano's vGPU device plugin registers, or infers their number."""
    cards = _registered(node, VOLCANO)
    if cards:
        factor = _memory_factor(node, cards[0])
        node.inventory.volcano_factor = max(node.inventory.volcano_factor, factor)
        return _cards(node, cards, factor, keys.VOLCANO_NUMBER)
    number = node.amount(keys.VOLCANO_NUMBER)
    if not number:
        return None
    count = _unregistered(node, number)
    memory = int(node.amount(keys.VOLCANO_MEMORY) / count)
    model = node.label(*keys.MODEL_LABELS)
    return Cards(count, model, memory, shared=(keys.VOLCANO_NUMBER,))


def hami_share(pod: PodFacts) -> Share | None:
    """Reads GPUs with memory or cores as HAMi's webhook does."""
    found = _share(pod, HAMI, memory_factor=1)
    models = _models(pod)
    if found is None and models:
        whole = pod.resources.get(keys.NVIDIA_GPU, Fraction(0))
        found = Share(asked_gpus(whole, keys.NVIDIA_GPU), WHOLE_GPU) if whole else None
    needs = pod.inventory.served_by(keys.HAMI_REGISTER, pod.node)
    return found and replace(found, models=models, needs=needs)


def _models(pod: PodFacts) -> tuple[str, ...]:
    """Finds the models that annotations admit: a part of the name, in any case, is enough."""
    wanted = _types(pod, keys.HAMI_TYPES)
    unwanted = _types(pod, keys.HAMI_OTHER_TYPES)
    if not wanted and not unwanted:
        return ()
    known = sorted(pod.inventory.models)
    models = [
        model
        for model in known
        if (not wanted or any(part in model.lower() for part in wanted))
        and not any(part in model.lower() for part in unwanted)
    ]
    return tuple(models or wanted)


def _types(pod: PodFacts, key: str) -> list[str]:
    names = pod.annotations.get(key, "").lower().split(",")
    return ["-".join(name.split()) for name in names if name.strip()]


def volcano_share(pod: PodFacts) -> Share | None:
    """Reads vGPUs with memory or cores as Volcano's deviceshare plugin does."""
    return _share(pod, VOLCANO, pod.inventory.volcano_factor)


def _registered(node: NodeFacts, names: _Names) -> list[_Card]:
    text = node.annotations.get(names.register, "").strip()
    field = f"metadata.annotations.{names.register}"
    rows = list(_json_rows(text, field) if text.startswith("[") else _text_rows(text, names))
    # Slots count healthy cards only, in the order of their index where it is told.
    healthy = [row for row in rows if text_of(row.get("health", True), field).lower() == "true"]
    healthy.sort(key=lambda row: whole_of(row.get("index") or 0, field))
    return [_card(row, field) for row in healthy]


def _json_rows(text: str, field: str) -> Iterator[dict[str, Any]]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FieldError(field, "is not the JSON that a device plugin writes") from error
    for row in rows:
        if not isinstance(row, dict):
            raise FieldError(field, "a list of cards is expected")
        yield row


def _text_rows(text: str, names: _Names) -> Iterator[dict[str, Any]]:
    # card:card: with fields separated by commas, the last colon is there too.
    for card in filter(None, text.split(":")):
        yield dict(zip(names.columns, card.split(","), strict=False))


def _card(row: dict[str, Any], field: str) -> _Card:
    name = text_of(row.get("id"), field)
    memory = whole_of(row.get("devmem"), field)
    if not name or not memory:
        raise FieldError(field, "a card needs an id and an amount of memory")
    return _Card(name, memory, product_name(text_of(row.get("type"), field)))


def _cards(node: NodeFacts, cards: list[_Card], memory_factor: int, shared: str) -> Cards:
    kinds = Counter((card.model, card.memory) for card in cards)
    if len(kinds) > 1:
        node.inventory.remark(MIXED_CARDS)
    ((model, memory), _), *_ = kinds.most_common(1)
    count = whole_gpus(Fraction(len(cards)), shared)
    ids = tuple(card.id for card in cards)
    model = node.label(*keys.MODEL_LABELS) or model
    return Cards(count, model, memory * memory_factor, ids=ids, shared=(shared,))


def _memory_factor(node: NodeFacts, card: _Card) -> int:
    """Finds how many MiB one block of memory is (`gpu-memory-factor` of the device plugin)."""
    real_mib = node.number(keys.NVIDIA_MEMORY) or known_memory_mib(card.model)
    factor = round(real_mib / card.memory)
    is_near = abs(real_mib - factor * card.memory) <= real_mib / 20
    return factor if factor > 1 and is_near else 1


def _unregistered(node: NodeFacts, number: Fraction) -> int:
    label = node.labels.get(keys.NVIDIA_COUNT)
    if label:
        return whole_of(label, f"metadata.labels.{keys.NVIDIA_COUNT}", 1, MOST_GPUS)
    if number % _DEFAULT_SPLIT == 0:
        is_there = keys.VOLCANO_REGISTER in node.annotations
        node.inventory.remark(UNKNOWN_REGISTER if is_there else SPLIT_BY_TEN)
        number /= _DEFAULT_SPLIT
    return whole_gpus(number, keys.VOLCANO_NUMBER)


def _share(pod: PodFacts, names: _Names, memory_factor: int) -> Share | None:
    # Amounts are of each GPU of a container: over containers they do not add up.
    asking = [each for each in pod.containers if each.get(names.number) or _is_part(each, names)]
    asking = asking or [pod.resources]
    if not any(_is_part(each, names) for each in asking):
        return None
    shares = [_of_container(pod, each, names, memory_factor) for each in asking]
    return Share(
        count=min(sum(share.count for share in shares), MOST_GPUS),
        milli=max(share.milli for share in shares),
        memory_mib=max(share.memory_mib for share in shares),
        slots=slots_of(_allocated(pod, names), pod.inventory.ids.get(pod.node, ())),
    )


def _of_container(pod: PodFacts, asked: Resources, names: _Names, memory_factor: int) -> Share:
    count = asked_gpus(asked.get(names.number, Fraction(1)), names.number)
    memory, percentage, cores = (
        asked.get(name, Fraction(0)) for name in (names.memory, names.percentage, names.cores)
    )
    percent = max(percentage, cores)
    if percent > 100:
        raise FieldError(names.cores, f"0 to 100 percent are expected, not {float(percent):g}")
    if not memory and not percentage:
        # Without an amount of memory the vGPU has all of it, and nothing else fits beside.
        return Share(count, WHOLE_GPU)
    memory_mib = int(memory * memory_factor)
    pod.inventory.compare(cores / 100, percentage / 100, memory_mib)
    return share_of(count, percent / 100, names.cores, memory_mib)


def _is_part(asked: Resources, names: _Names) -> bool:
    return any(asked.get(name) for name in (names.memory, names.percentage, names.cores))


def _allocated(pod: PodFacts, names: _Names) -> Iterator[str]:
    # container;container; of card:card: of id,type,memory,cores
    text = pod.annotations.get(names.allocated, "")
    for card in text.replace(";", ":").split(":"):
        if card:
            yield card.split(",")[0]


def old_volcano_cards(node: NodeFacts) -> Cards | None:
    """Reads the cards of Volcano's GPU sharing before 1.9."""
    number = node.amount(keys.VOLCANO_OLD_NUMBER)
    if not number:
        return None
    count = whole_gpus(number, keys.VOLCANO_OLD_NUMBER)
    memory = int(node.amount(keys.VOLCANO_OLD_MEMORY) / count)
    return Cards(count, node.label(*keys.MODEL_LABELS), memory)


def old_volcano_share(pod: PodFacts) -> Share | None:
    """Reads MiB of one card, or whole cards, as Volcano did before 1.9."""
    memory = pod.resources.get(keys.VOLCANO_OLD_MEMORY)
    number = pod.resources.get(keys.VOLCANO_OLD_NUMBER)
    if not memory and not number:
        return None
    slots = indices(pod.annotations.get(keys.VOLCANO_OLD_INDEX, ""))
    if number:
        return Share(asked_gpus(number, keys.VOLCANO_OLD_NUMBER), WHOLE_GPU, slots=slots)
    return Share(1, 1, int(memory or 0), slots=slots)


def indices(text: str) -> tuple[int, ...]:
    """Reads slots such as 2-3 or 0,1; anything else is no slots.

    >>> indices("2-3"), indices("-1"), indices("")
    ((2, 3), (), ())
    """
    parts = text.replace(",", "-").split("-")
    if not all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
        return ()
    return tuple(sorted({int(part) for part in parts}))
