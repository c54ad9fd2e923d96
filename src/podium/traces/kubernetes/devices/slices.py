"""Reads the devices that drivers publish in ResourceSlices (dynamic resource allocation)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from podium.traces.fields import FieldError, mapping_at, mappings_at, quantity_of, text_of, whole_of
from podium.traces.kubernetes.devices.partitions import amd_share, mig_profile
from podium.traces.kubernetes.devices.products import known_memory_mib, product_name
from podium.traces.kubernetes.devices.values import MIB

_ATTRIBUTE_KINDS = ("string", "int", "bool", "version")


@dataclass(frozen=True, slots=True)
class Device:
    """Is one device of a ResourceSlice: a card, or a part of one."""

    driver: str
    pool: str
    name: str
    card: str  # what devices of one card have in common
    part: Fraction | None  # of the card, None = by its memory
    model: str
    memory_mib: int
    index: int | None
    is_tainted: bool = False  # no new pod is given it

    @property
    def key(self) -> tuple[str, str, str]:
        """Names the device as the result of an allocation does."""
        return self.driver, self.pool, self.name


@dataclass(frozen=True, slots=True)
class Slice:
    """Is one ResourceSlice with GPUs of one node."""

    driver: str
    pool: str
    generation: int
    node: str
    devices: tuple[Device, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """Is a card with the devices that it can be given out as."""

    memory_mib: int
    model: str
    devices: tuple[Device, ...]
    is_held: bool = False  # by a claim that no pod uses

    def holding(self, held: Set[tuple[str, ...]]) -> Card:
        """Marks the card if some device that is all of it was given to a claim without a pod."""
        whole = (device for device in self.devices if self.part(device) == 1)
        return replace(self, is_held=any(device.key in held for device in whole))

    @property
    def is_tainted(self) -> bool:
        """Tells whether no device of the card is given to new pods."""
        return all(device.is_tainted for device in self.devices)

    def part(self, device: Device) -> Fraction:
        """Gives the part of the card that a device is."""
        if device.part is not None:
            return device.part
        if not self.memory_mib or not device.memory_mib:
            return Fraction(1)
        return min(Fraction(1), Fraction(device.memory_mib, self.memory_mib))


def is_gpu_driver(name: str) -> bool:
    """Tells drivers of GPUs, such as gpu.nvidia.com, from those of networks and the like."""
    return "gpu" in name.split(".")[0]


def read_slices(value: Mapping[str, Any]) -> list[Slice]:
    """Reads a ResourceSlice of v1, v1beta2 or v1beta1 as the GPUs that it lists on each node."""
    spec = mapping_at(value, "spec", "spec")
    driver = text_of(spec.get("driver"), "spec.driver")
    if not is_gpu_driver(driver):
        return []
    pool = mapping_at(spec, "pool", "spec.pool")
    name = text_of(pool.get("name"), "spec.pool.name")
    generation = whole_of(pool.get("generation") or 0, "spec.pool.generation", 0, 2**63 - 1)
    nodes: dict[str, list[Device]] = {}
    for each in mappings_at(spec, "devices", "spec.devices"):
        node = text_of(spec.get("nodeName") or each.get("nodeName"), "spec.nodeName")
        if not node:
            raise FieldError("spec.nodeName", "GPUs that belong to no single node are not read")
        device = _device(each, driver, name)
        if device is not None:
            nodes.setdefault(node, []).append(device)
    return [Slice(driver, name, generation, node, tuple(each)) for node, each in nodes.items()]


def cards_of(slices: Iterable[Slice], held: Set[tuple[str, ...]] = frozenset()) -> tuple[Card, ...]:
    """Gathers the cards of one node, in the order of their index where every one has it."""
    listed = list(slices)
    newest: dict[tuple[str, str], int] = {}
    for each in listed:
        key = each.driver, each.pool
        newest[key] = max(newest.get(key, 0), each.generation)
    groups: dict[str, list[Device]] = {}
    for each in listed:
        # A driver that updates a pool leaves older generations behind for a while.
        if each.generation == newest[each.driver, each.pool]:
            for device in each.devices:
                groups.setdefault(device.card, []).append(device)
    cards = [_card(devices).holding(held) for devices in groups.values()]
    numbers = [_number(card) for card in cards]
    if len(set(numbers)) == len(numbers) and None not in numbers:
        cards.sort(key=lambda card: _number(card) or 0)
    # Cards that nobody gets any more come last, so that the slots of others stay in a row.
    return tuple(sorted(cards, key=lambda card: card.is_tainted or card.is_held))


def _device(value: Mapping[str, Any], driver: str, pool: str) -> Device | None:
    # v1beta1 wraps what later versions have at the top.
    basic = mapping_at(value, "basic", "spec.devices.basic") or value
    attributes = _attributes(basic)
    kind = attributes.get("type", "")
    if "vfio" in kind:
        return None  # the same card once more, for virtual machines
    name = text_of(value.get("name"), "spec.devices.name")
    profile = mig_profile(attributes.get("profile", "")) if "mig" in kind else None
    part = profile.share if profile else _amd_part(attributes)
    return Device(
        driver=driver,
        pool=pool,
        name=name,
        card=_card_key(basic, attributes, name),
        part=part,
        model=product_name(attributes.get("productName") or attributes.get("model", "")),
        memory_mib=_memory_mib(basic),
        index=_index(attributes, name),
        is_tainted=_is_tainted(basic),
    )


def _is_tainted(basic: Mapping[str, Any]) -> bool:
    taints = mappings_at(basic, "taints", "spec.devices.taints")
    return any(taint.get("effect") in ("NoSchedule", "NoExecute") for taint in taints)


def _index(attributes: Mapping[str, str], name: str) -> int | None:
    """Finds the number of the card: an attribute, or as in gpu-0 and gpu-0-mig-1g5gb-19-0."""
    key = "parentIndex" if "parentUUID" in attributes else "index"
    number = attributes.get(key) or "".join(name.split("-")[1:2])
    is_number = number.isascii() and number.isdigit() and len(number) < 10
    return int(number) if is_number else None


def _attributes(basic: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    listed = mapping_at(basic, "attributes", "spec.devices.attributes")
    for name in listed:
        value = mapping_at(listed, name, f"spec.devices.attributes.{name}")
        kind = next((kind for kind in _ATTRIBUTE_KINDS if kind in value), None)
        if kind is not None:
            short = name.rpartition("/")[2]
            found[short] = text_of(value[kind], f"spec.devices.attributes.{name}")
    return found


def _memory_mib(basic: Mapping[str, Any]) -> int:
    listed = mapping_at(basic, "capacity", "spec.devices.capacity")
    for name, value in listed.items():
        if name.rpartition("/")[2] == "memory":
            amount = value.get("value") if isinstance(value, Mapping) else value
            return int(quantity_of(amount, "spec.devices.capacity.memory") / MIB)
    return 0


def _card_key(basic: Mapping[str, Any], attributes: Mapping[str, str], name: str) -> str:
    # Devices of one card consume counters of one set, or name one parent.
    counters = mappings_at(basic, "consumesCounters", "spec.devices.consumesCounters")
    if counters:
        return text_of(counters[0].get("counterSet"), "spec.devices.consumesCounters.counterSet")
    return attributes.get("parentUUID") or attributes.get("uuid") or name


def _amd_part(attributes: Mapping[str, str]) -> Fraction | None:
    profile = attributes.get("partitionProfile", "")
    return amd_share(f"amd.com/{profile.lower()}") if profile else None


def _card(devices: list[Device]) -> Card:
    model = next((device.model for device in devices if device.model), "")
    largest = max(device.memory_mib for device in devices)
    if any(device.part is None or device.part == 1 for device in devices):
        return Card(largest, model, tuple(devices))
    total = known_memory_mib(model) or sum(device.memory_mib for device in devices)
    return Card(max(largest, total), model, tuple(devices))


def _number(card: Card) -> int | None:
    return next((device.index for device in card.devices if device.index is not None), None)
