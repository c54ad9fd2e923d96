"""Reads what pods ask for through ResourceClaims (dynamic resource allocation)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from podium.model.constraints import Constraints, NodeTerm, PodSelector, PodTerm, Requirement
from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.model.workload import PodSpec
from podium.traces.fields import (
    FieldError,
    flag_of,
    mapping_at,
    mappings_at,
    quantity_of,
    text_of,
    whole_of,
)
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.constraints import same_namespaces
from podium.traces.kubernetes.devices.partitions import mig_profile
from podium.traces.kubernetes.devices.plugins import plugin_share
from podium.traces.kubernetes.devices.products import product_name
from podium.traces.kubernetes.devices.slices import Card, is_gpu_driver
from podium.traces.kubernetes.devices.values import (
    MOST_GPUS,
    UNTIED,
    Cards,
    NodeFacts,
    PodFacts,
    Share,
    Ties,
    mib_of,
    sliced,
    whole_gpus,
)

CLAIMS_DUMP = (
    "kubectl get nodes,pods,resourceslices,resourceclaims,resourceclaimtemplates,deviceclasses "
    "-A -o yaml"
)
"""Prints all that decides about devices that pods claim."""

MISSING_CLAIMS = (
    "resource claims that the dump does not hold are read as no GPUs, "
    f"`{CLAIMS_DUMP}` prints them as well"
)
SHARED_CLAIMS = "a resource claim of several pods takes GPUs for the first of them alone"
UNMODELLED_CLASS = "resource claims of the device class"
SELECTING_CLAIMS = "selectors of resource claims beyond product and MIG profile are not honoured"
ALL_DEVICES = "allocationMode All is read as the fewest GPUs that a node with ResourceSlices has"
FIRST_AVAILABLE = "of the alternatives of a resource claim the first is read"
FIRST_SERVED = "of the alternatives of a resource claim the first that a node can serve is read"
TOLERATING = "tolerations of resource claims are not honoured"
TAINTED = "GPUs with a taint are left out, whoever tolerates it or runs there"
HELD = "GPUs that were given to a resource claim, but to no pod of the dump, are left out"
IDLE_CLAIMS = "parts of GPUs, or unknown ones, of resource claims without a pod count as free"
SCATTERED = f"pods of one resource claim may run apart: nodes do not have the label {keys.HOSTNAME}"

_FIELD = "spec.devices.requests"
_RESULTS = "status.allocation.devices.results"
_PRODUCT = re.compile(r"\.productName\s*==\s*(['\"])(?P<product>[^'\"]+)\1")
_PROFILE = re.compile(r"\.profile\s*==\s*(['\"])(?P<profile>[^'\"]+)\1")
_TYPE = re.compile(r"\.type\s*==\s*(['\"])[a-z-]+\1")
_DRIVER = re.compile(r"device\.driver\s*==\s*(['\"])(?P<driver>[a-z0-9.-]+)\1")
_ACCESS = re.compile(r"device\.attributes\[(['\"])[a-z0-9.-]+\1\]")


@dataclass(frozen=True, slots=True)
class _Ask:
    """Is one request of a claim."""

    count: int
    part: Fraction  # of a card
    memory_mib: int = 0
    models: tuple[str, ...] = ()
    device_class: str = ""
    served_by: str = keys.RESOURCE_SLICES  # or those of one driver


@dataclass(frozen=True, slots=True)
class _Part:
    """Is what one claim means for a pod."""

    asks: tuple[_Ask, ...] = ()
    slots: tuple[int, ...] = ()
    ties: Ties = UNTIED


def claimed_cards(node: NodeFacts) -> Cards | None:
    """Reads the GPUs of a node from its ResourceSlices."""
    listed = node.inventory.cards(node.name)
    if any(card.is_tainted for card in listed):
        node.inventory.remark(TAINTED)
    if any(card.is_held for card in listed):
        node.inventory.remark(HELD)
    cards = [card for card in listed if not card.is_tainted and not card.is_held]
    if not cards:
        return None
    whole = sum(any(card.part(device) == 1 for device in card.devices) for card in cards)
    bounds = {resource: whole for resource in node.inventory.class_resources if whole}
    memory_mib = min(card.memory_mib for card in cards)
    model = node.label("nvidia.com/gpu.product") or cards[0].model
    count = whole_gpus(Fraction(len(cards)), "ResourceSlice")
    drivers = {device.driver for card in cards for device in card.devices}
    serves = (keys.RESOURCE_SLICES, *(_slices_of(driver) for driver in sorted(drivers)))
    if node.amount(keys.NVIDIA_GPU):
        serves = (*serves, keys.KAI_SHARING)
    return Cards(count, model, memory_mib, bounds=bounds, serves=serves)


def claimed_share(pod: PodFacts) -> Share | None:
    """Reads the GPUs of all claims of a pod, as allocated or else as asked for."""
    parts = [_of_claim(pod, reference) for reference in pod.claims]
    asks = [ask for part in parts for ask in part.asks]
    ties = _joined(part.ties for part in parts)
    if not asks:
        # Devices of the device plugin may stand beside claims that take none.
        found = plugin_share(pod)
        return replace(found or Share(0, 0), ties=ties) if ties != UNTIED else None
    models = tuple(dict.fromkeys(model for ask in asks for model in ask.models))
    slots = tuple(sorted({slot for part in parts for slot in part.slots}))
    found = _combined(pod, asks)
    served = dict.fromkeys(ask.served_by for ask in asks)
    needs = tuple(need for name in served for need in pod.inventory.served_by(name, pod.node))
    return replace(found, models=models, slots=slots, ties=ties, needs=found.needs + needs)


def _slices_of(driver: str) -> str:
    return f"{keys.RESOURCE_SLICES.partition('/')[0]}/{driver}"


def claim_users(pods: Iterable[PodFacts]) -> dict[tuple[str, str], list[PodFacts]]:
    """Finds the pods of each claim; the first takes its devices, one that runs before others."""
    users: dict[tuple[str, str], list[PodFacts]] = {}
    for pod in pods:
        for key in () if pod.is_finished else _claimed(pod):
            users.setdefault(key, []).append(pod)
    for each in users.values():
        each.sort(key=lambda pod: not pod.node)
    return users


def _claimed(pod: PodFacts) -> list[tuple[str, str]]:
    try:
        return list(dict.fromkeys(_resolved(pod, reference)[1] for reference in pod.claims))
    except FieldError:
        return []  # what is wrong with it is said when the pod is read


def is_allocated(claim: Mapping[str, Any]) -> bool:
    """Tells whether a claim holds GPUs."""
    return any(held_devices(claim))


def held_devices(claim: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Names the GPUs, or parts of them, that a claim was given."""
    for result in _results(claim):
        if is_gpu_driver(text_of(result.get("driver"), _RESULTS)) and not _is_admin(result):
            yield _device_key(result)


def tied(spec: PodSpec, ties: Ties, *, is_now: bool) -> PodSpec:
    """Keeps a pod on the node of the devices that it was given or shares.

    Where they are is known now; on an empty cluster it is where the pod runs that takes them.
    """
    if is_now and ties.node:
        return replace(spec, constraints=_on_node(spec.constraints, ties.node))
    if ties.led:
        labels = {keys.CLAIM_LABEL + name: "shared" for name in ties.led}
        spec = replace(spec, labels={**spec.labels, **labels})
    namespaces = same_namespaces([spec.namespace])
    terms = tuple(
        PodTerm(
            PodSelector((Requirement(keys.CLAIM_LABEL + name, "In", ("shared",)),), namespaces),
            keys.HOSTNAME,
        )
        for name in ties.followed
    )
    constraints = replace(spec.constraints, affinity=spec.constraints.affinity + terms)
    return replace(spec, constraints=constraints) if terms else spec


def _on_node(constraints: Constraints, node: str) -> Constraints:
    named = Requirement("metadata.name", "In", (node,))
    if constraints.node_terms is None:
        return replace(constraints, node_terms=(NodeTerm(fields=(named,)),))
    terms = tuple(
        replace(term, fields=(*term.fields, named))
        for term in constraints.node_terms
        if term.labels or term.fields  # one without requirements admits no node
    )
    return replace(constraints, node_terms=terms)


def _joined(ties: Iterable[Ties]) -> Ties:
    listed = list(ties)
    return Ties(
        node=next((each.node for each in listed if each.node), ""),
        led=tuple(name for each in listed for name in each.led),
        followed=tuple(name for each in listed for name in each.followed),
    )


def _of_claim(pod: PodFacts, reference: Mapping[str, Any]) -> _Part:
    claim, key = _resolved(pod, reference)
    if claim is None:
        pod.inventory.remark(MISSING_CLAIMS)
        return _Part()
    users = [] if pod.is_finished else pod.inventory.users.get(key, [])
    node = "" if pod.node or pod.is_finished else _node_of(pod, claim)
    if users and users[0] is not pod:
        pod.inventory.remark(SHARED_CLAIMS)
        return _Part(ties=_following(pod, users[0], key[1], node))
    led = (key[1],) if len(users) > 1 else ()
    allocated = _allocated(pod, claim, pod.node or node)
    if allocated is not None:
        return replace(allocated, ties=Ties(node, led))
    spec = mapping_at(claim, "spec", "spec")
    devices = mapping_at(spec, "devices", "spec.devices")
    requests = mappings_at(devices, "requests", _FIELD)
    asks = tuple(ask for request in requests for ask in _asks(pod, request))
    return _Part(asks, ties=Ties(node, led))


def _following(pod: PodFacts, leader: PodFacts, claim: str, node: str) -> Ties:
    at = "" if pod.node else node or leader.node
    if pod.inventory.has_hostnames:
        return Ties(at, followed=(claim,))
    if not at and not pod.node:
        pod.inventory.remark(SCATTERED)
    return Ties(at)


def _node_of(pod: PodFacts, claim: Mapping[str, Any]) -> str:
    """Finds the node of the devices that a claim was given, empty where there are none."""
    places = (pod.inventory.place_of(_device_key(result)) for result in _results(claim))
    return next((place for place in places if place), "")


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


def _results(claim: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    status = mapping_at(claim, "status", "status")
    allocation = mapping_at(status, "allocation", "status.allocation")
    devices = mapping_at(allocation, "devices", "status.allocation.devices")
    return list(mappings_at(devices, "results", _RESULTS))


def _allocated(pod: PodFacts, claim: Mapping[str, Any], node: str) -> _Part | None:
    """Reads the devices that a claim was given; None where they are not all known."""
    results = _results(claim)
    cards = pod.inventory.cards(node)
    taken: dict[int, Fraction] = {}
    for result in results:
        if not _is_gpu_result(pod, result):
            continue
        found = _slot(result, cards)
        if found is None:
            return None
        slot, part = found
        if cards[slot].is_tainted:
            continue
        taken[slot] = taken.get(slot, Fraction(0)) + _consumed(result, cards[slot], part)
    if not results:
        return None
    asks = tuple(_Ask(1, min(Fraction(1), part)) for part in taken.values())
    return _Part(asks, tuple(taken))


def _is_gpu_result(pod: PodFacts, result: Mapping[str, Any]) -> bool:
    driver = text_of(result.get("driver"), _RESULTS)
    if not is_gpu_driver(driver):
        pod.inventory.remark(f"resource claims served by {driver} are not modelled")
        return False
    return not _is_admin(result)


def _is_admin(result: Mapping[str, Any]) -> bool:
    return flag_of(result.get("adminAccess") or False, _RESULTS)


def _device_key(result: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(text_of(result.get(name), _RESULTS) for name in ("driver", "pool", "device"))


def _slot(result: Mapping[str, Any], cards: tuple[Card, ...]) -> tuple[int, Fraction] | None:
    key = _device_key(result)
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
        request = _first_served(pod, alternatives)
        is_first = request is alternatives[0]
        pod.inventory.remark(FIRST_AVAILABLE if is_first else FIRST_SERVED)
    yield from _exact_asks(pod, request)


def _first_served(pod: PodFacts, alternatives: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Picks the first alternative for which some node has the devices, whoever holds them."""
    remarks = list(pod.inventory.remarks)
    served = (each for each in alternatives if _is_served(pod, list(_exact_asks(pod, each))))
    chosen = next(served, alternatives[0])
    pod.inventory.remarks[:] = remarks  # what is said of the others is of no interest
    return chosen


def _is_served(pod: PodFacts, asks: list[_Ask]) -> bool:
    nodes = [pod.inventory.cards(node) for node in pod.inventory.slices]
    return not nodes or all(any(_offers(cards, ask) for cards in nodes) for ask in asks)


def _offers(cards: tuple[Card, ...], ask: _Ask) -> bool:
    admitted = [card for card in cards if not ask.models or card.model in ask.models]
    fitting = [
        device for card in admitted for device in card.devices if card.part(device) == ask.part
    ]
    is_large = not ask.memory_mib or any(card.memory_mib >= ask.memory_mib for card in admitted)
    return len(fitting) >= ask.count and is_large


def _exact_asks(pod: PodFacts, request: Mapping[str, Any]) -> Iterator[_Ask]:
    # v1beta1 has at the top what later versions have under `exactly`.
    exact = mapping_at(request, "exactly", f"{_FIELD}.exactly") or request
    name = text_of(exact.get("deviceClassName"), f"{_FIELD}.deviceClassName")
    if not pod.inventory.is_gpu_class(name):
        pod.inventory.remark(f"{UNMODELLED_CLASS} {name} are not modelled")
        return
    if flag_of(exact.get("adminAccess") or False, f"{_FIELD}.adminAccess"):
        return
    expressions = [*pod.inventory.expressions(name), *_expressions(exact)]
    if not all(_is_understood(text) for text in expressions):
        pod.inventory.remark(SELECTING_CLAIMS)
    if exact.get("tolerations"):
        pod.inventory.remark(TOLERATING)
    yield _Ask(
        count=_count(pod, exact),
        part=_part(name, expressions),
        memory_mib=_memory_mib(exact),
        models=tuple(product_name(m["product"]) for e in expressions for m in _PRODUCT.finditer(e)),
        device_class=name,
        served_by=_served_by(expressions),
    )


def _served_by(expressions: Iterable[str]) -> str:
    """Names the ResourceSlices of the driver that selectors ask for, else those of any."""
    found = (_DRIVER.search(text) for text in expressions)
    drivers = [match["driver"] for match in found if match]
    return _slices_of(drivers[0]) if drivers else keys.RESOURCE_SLICES


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


def _combined(pod: PodFacts, asks: list[_Ask]) -> Share:
    memory_mib = max(ask.memory_mib for ask in asks)
    if not memory_mib and all(ask.part < 1 for ask in asks):
        found = sliced(ask.part for ask in asks for _ in range(ask.count))
    else:
        # A pod has the same of each of its GPUs: beside whole ones, slices count as whole. By
        # memory it has a share, and which one depends on the card.
        found = Share(sum(ask.count for ask in asks), 1 if memory_mib else WHOLE_GPU, memory_mib)
    if found.count <= MOST_GPUS:
        return found
    resource = keys.CLASS_RESOURCE + asks[0].device_class
    pod.inventory.large_classes.add(resource)
    return replace(found, count=MOST_GPUS, needs=((resource, found.count),))
