"""Reads what pods ask for through ResourceClaims (dynamic resource allocation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.traces.fields import flag_of, mapping_at, mappings_at, quantity_of, text_of, whole_of
from podium.traces.kubernetes.devices.partitions import mig_profile
from podium.traces.kubernetes.devices.products import product_name
from podium.traces.kubernetes.devices.slices import Card, is_gpu_driver
from podium.traces.kubernetes.devices.values import (
    Cards,
    NodeFacts,
    PodFacts,
    Share,
    mib_of,
    sliced,
    whole_gpus,
)

MISSING_CLAIMS = "resource claims that the dump does not hold are read as no GPUs"
SHARED_CLAIMS = "a resource claim of several pods takes GPUs for the first of them alone"
SELECTING_CLAIMS = "selectors of resource claims beyond product and MIG profile are not honoured"
ALL_DEVICES = "allocationMode All is read as the fewest GPUs that a node with ResourceSlices has"
FIRST_AVAILABLE = "of the alternatives of a resource claim the first is read"

_FIELD = "spec.devices.requests"
_PRODUCT = re.compile(r"\.productName\s*==\s*(['\"])(?P<product>[^'\"]+)\1")
_PROFILE = re.compile(r"\.profile\s*==\s*(['\"])(?P<profile>[^'\"]+)\1")
_TYPE = re.compile(r"\.type\s*==\s*(['\"])[a-z-]+\1")
_DRIVER = re.compile(r"device\.driver\s*==\s*(['\"])[a-z0-9.-]+\1")
_ACCESS = re.compile(r"device\.attributes\[(['\"])[a-z0-9.-]+\1\]")


@dataclass(frozen=True, slots=True)
class _Ask:
    """Is one request of a claim."""

    count: int
    part: Fraction  # of a card
    memory_mib: int = 0
    models: tuple[str, ...] = ()


def claimed_cards(node: NodeFacts) -> Cards | None:
    """Reads the GPUs of a node from its ResourceSlices."""
    cards = node.inventory.cards(node.name)
    if not cards:
        return None
    whole = sum(any(card.part(device) == 1 for device in card.devices) for card in cards)
    bounds = {resource: whole for resource in node.inventory.class_resources if whole}
    memory_mib = min(card.memory_mib for card in cards)
    model = node.label("nvidia.com/gpu.product") or cards[0].model
    count = whole_gpus(Fraction(len(cards)), "ResourceSlice")
    return Cards(count, model, memory_mib, bounds=bounds)


def claimed_share(pod: PodFacts) -> Share | None:
    """Reads the GPUs of all claims of a pod, as allocated or else as asked for."""
    asks: list[_Ask] = []
    slots: list[int] = []
    for reference in pod.claims:
        asked, found = _of_claim(pod, reference)
        asks += asked
        slots += found
    if not asks:
        return None
    models = tuple(dict.fromkeys(model for ask in asks for model in ask.models))
    found_share = _combined(asks)
    return Share(
        found_share.count,
        found_share.milli,
        found_share.memory_mib,
        models,
        tuple(sorted(set(slots))),
    )


def _of_claim(pod: PodFacts, reference: Mapping[str, Any]) -> tuple[list[_Ask], list[int]]:
    claim, key = _resolved(pod, reference)
    if claim is None:
        pod.inventory.remark(MISSING_CLAIMS)
        return [], []
    if key in pod.inventory.taken_claims:
        pod.inventory.remark(SHARED_CLAIMS)
        return [], []
    if not pod.is_finished:
        pod.inventory.taken_claims.add(key)
    allocated = _allocated(pod, claim)
    if allocated is not None:
        return allocated
    spec = mapping_at(claim, "spec", "spec")
    devices = mapping_at(spec, "devices", "spec.devices")
    requests = mappings_at(devices, "requests", _FIELD)
    return [ask for request in requests for ask in _asks(pod, request)], []


def _resolved(
    pod: PodFacts, reference: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, tuple[str, str]]:
    """Finds the claim that a pod names, or else the template of which one will be made."""
    field = "spec.resourceClaims"
    source = mapping_at(reference, "source", field) or reference  # before Kubernetes 1.31
    name = text_of(source.get("resourceClaimName"), field)
    inventory = pod.inventory
    if not name:
        name = pod.claim_names.get(text_of(reference.get("name"), field), "")
    key = pod.namespace, name
    if name and key in inventory.claims:
        return inventory.claims[key], key
    template = text_of(source.get("resourceClaimTemplateName"), field)
    made = pod.namespace, f"{template} of {pod.name}"
    return inventory.templates.get((pod.namespace, template)), made


def _allocated(pod: PodFacts, claim: Mapping[str, Any]) -> tuple[list[_Ask], list[int]] | None:
    """Reads the devices that a claim was given; None where they are not all known."""
    status = mapping_at(claim, "status", "status")
    allocation = mapping_at(status, "allocation", "status.allocation")
    devices = mapping_at(allocation, "devices", "status.allocation.devices")
    results = mappings_at(devices, "results", "status.allocation.devices.results")
    cards = pod.inventory.cards(pod.node)
    taken: dict[int, Fraction] = {}
    for result in results:
        if not _is_gpu_result(pod, result):
            continue
        found = _slot(result, cards)
        if found is None:
            return None
        slot, part = found
        taken[slot] = taken.get(slot, Fraction(0)) + _consumed(result, cards[slot], part)
    if not results:
        return None
    return [_Ask(1, min(Fraction(1), part)) for part in taken.values()], list(taken)


def _is_gpu_result(pod: PodFacts, result: Mapping[str, Any]) -> bool:
    field = "status.allocation.devices.results"
    driver = text_of(result.get("driver"), field)
    if not is_gpu_driver(driver):
        pod.inventory.remark(f"resource claims served by {driver} are not modelled")
        return False
    return not flag_of(result.get("adminAccess") or False, field)


def _slot(result: Mapping[str, Any], cards: tuple[Card, ...]) -> tuple[int, Fraction] | None:
    field = "status.allocation.devices.results"
    key = tuple(text_of(result.get(name), field) for name in ("driver", "pool", "device"))
    for slot, card in enumerate(cards):
        for device in card.devices:
            if device.key == key:
                return slot, card.part(device)
    return None


def _consumed(result: Mapping[str, Any], card: Card, part: Fraction) -> Fraction:
    """Gives the part of a device that a claim with consumable capacity was given."""
    consumed = mapping_at(result, "consumedCapacity", "consumedCapacity")
    memory = next((consumed[name] for name in consumed if name.endswith("memory")), None)
    if memory is None or not card.memory_mib:
        return part
    return Fraction(mib_of(quantity_of(memory, "consumedCapacity")), card.memory_mib)


def _asks(pod: PodFacts, request: Mapping[str, Any]) -> Iterator[_Ask]:
    alternatives = mappings_at(request, "firstAvailable", f"{_FIELD}.firstAvailable")
    if alternatives:
        pod.inventory.remark(FIRST_AVAILABLE)
        request = alternatives[0]
    # v1beta1 has at the top what later versions have under `exactly`.
    exact = mapping_at(request, "exactly", f"{_FIELD}.exactly") or request
    name = text_of(exact.get("deviceClassName"), f"{_FIELD}.deviceClassName")
    if not pod.inventory.is_gpu_class(name):
        pod.inventory.remark(f"resource claims of the device class {name} are not modelled")
        return
    if flag_of(exact.get("adminAccess") or False, f"{_FIELD}.adminAccess"):
        return
    expressions = [*pod.inventory.expressions(name), *_expressions(exact)]
    if not all(_is_understood(text) for text in expressions):
        pod.inventory.remark(SELECTING_CLAIMS)
    yield _Ask(
        count=_count(pod, exact),
        part=_part(name, expressions),
        memory_mib=_memory_mib(exact),
        models=tuple(product_name(m["product"]) for e in expressions for m in _PRODUCT.finditer(e)),
    )


def _count(pod: PodFacts, exact: Mapping[str, Any]) -> int:
    if text_of(exact.get("allocationMode"), f"{_FIELD}.allocationMode") == "All":
        pod.inventory.remark(ALL_DEVICES)
        return pod.inventory.fewest_cards()
    return whole_of(exact.get("count") or 1, f"{_FIELD}.count", 1, 128)


def _part(class_name: str, expressions: list[str]) -> Fraction:
    match = next((found for text in expressions if (found := _PROFILE.search(text))), None)
    profile = mig_profile(match["profile"]) if match else None
    if profile:
        return profile.share
    return Fraction(1, 7) if class_name.startswith("mig.") else Fraction(1)


def _memory_mib(exact: Mapping[str, Any]) -> int:
    capacity = mapping_at(exact, "capacity", f"{_FIELD}.capacity")
    asked = mapping_at(capacity, "requests", f"{_FIELD}.capacity.requests")
    amount = next((asked[name] for name in asked if name.endswith("memory")), None)
    return 0 if amount is None else mib_of(quantity_of(amount, f"{_FIELD}.capacity"))


def _expressions(exact: Mapping[str, Any]) -> Iterator[str]:
    for selector in mappings_at(exact, "selectors", f"{_FIELD}.selectors"):
        cel = mapping_at(selector, "cel", f"{_FIELD}.selectors.cel")
        yield text_of(cel.get("expression"), f"{_FIELD}.selectors.cel.expression")


def _is_understood(expression: str) -> bool:
    """Tells whether an expression only compares driver, type, product and MIG profile."""
    rest = _ACCESS.sub("", expression)
    for pattern in (_PRODUCT, _PROFILE, _TYPE, _DRIVER):
        rest = pattern.sub("", rest)
    return not rest.replace("&&", "").strip("() \n\t")


def _combined(asks: list[_Ask]) -> Share:
    memory_mib = max(ask.memory_mib for ask in asks)
    count = whole_gpus(Fraction(sum(ask.count for ask in asks)), _FIELD)
    if memory_mib:
        # A share of a card by memory: on which part of it depends on the card.
        return Share(count, 1, memory_mib)
    if all(ask.part == 1 for ask in asks):
        return Share(count, WHOLE_GPU)
    if any(ask.part == 1 for ask in asks):
        # A pod has the same of each of its GPUs: beside whole ones, slices count as whole.
        return Share(count, WHOLE_GPU)
    return sliced(ask.part for ask in asks for _ in range(ask.count))
