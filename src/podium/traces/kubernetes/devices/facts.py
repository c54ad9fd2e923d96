"""Takes from Node and Pod objects what decides about their devices."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from podium.traces.fields import mapping_at, mappings_at, quantity_of, text_of, texts_at
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.inventory import Inventory
from podium.traces.kubernetes.devices.kai import is_reservation
from podium.traces.kubernetes.devices.values import NodeFacts, PodFacts, Resources
from podium.traces.kubernetes.devices.vgpu import HAMI, VOLCANO

_OF_EACH_GPU = frozenset(
    name
    for project in (HAMI, VOLCANO)
    for name in (project.memory, project.percentage, project.cores)
)
_NO_NAMES: Mapping[str, str] = {}
_FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


def node_facts(node: Mapping[str, Any], resources: Resources, inventory: Inventory) -> NodeFacts:
    """Takes what a Node object says about devices."""
    metadata = mapping_at(node, "metadata", "metadata")
    return NodeFacts(
        name=text_of(metadata.get("name"), "metadata.name"),
        labels=texts_at(metadata, "labels", "metadata.labels"),
        annotations=texts_at(metadata, "annotations", "metadata.annotations"),
        resources=resources,
        inventory=inventory,
    )


def pod_facts(
    pod: Mapping[str, Any], labels: Mapping[str, str], resources: Resources, inventory: Inventory
) -> PodFacts:
    """Takes what a Pod object says about devices, and no more: a dump has many of them."""
    metadata = mapping_at(pod, "metadata", "metadata")
    annotations = mapping_at(metadata, "annotations", "metadata.annotations")
    field = "metadata.annotations"
    spec = mapping_at(pod, "spec", "spec")
    status = mapping_at(pod, "status", "status")
    namespace = text_of(metadata.get("namespace"), "metadata.namespace") or "default"
    is_finished = text_of(status.get("phase"), "status.phase") in _FINISHED_PHASES
    marks = annotations.keys() & keys.DEVICE_ANNOTATIONS
    claims = _claims(spec, status)
    is_labelled = keys.GPUSHARE_COUNT in labels or is_reservation(namespace, labels)
    if not (marks or claims or is_labelled) and _OF_EACH_GPU.isdisjoint(resources):
        return _plain(resources, inventory)
    return PodFacts(
        name=text_of(metadata.get("name"), "metadata.name"),
        namespace=namespace,
        labels=labels,
        annotations={key: text_of(annotations[key], f"{field}.{key}") for key in sorted(marks)},
        resources=resources,
        containers=() if _OF_EACH_GPU.isdisjoint(resources) else _containers(spec),
        claims=claims,
        claim_names=_claim_names(status),
        node="" if is_finished else text_of(spec.get("nodeName"), "spec.nodeName"),
        is_finished=is_finished,
        inventory=inventory,
    )


def _plain(resources: Resources, inventory: Inventory) -> PodFacts:
    """Gives the facts of all pods that ask for the same and say no more of devices."""
    key = frozenset(resources.items())
    if key not in inventory.plain:
        inventory.plain[key] = PodFacts(
            name="", namespace="", labels={}, annotations={}, resources=resources, containers=(),
            claims=(), claim_names=_NO_NAMES, node="", is_finished=False, inventory=inventory,
            is_plain=True,
        )  # fmt: skip
    return inventory.plain[key]


def _containers(spec: Mapping[str, Any]) -> tuple[Resources, ...]:
    listed = mappings_at(spec, "containers", "spec.containers")
    return tuple(_container(each) for each in listed)


def _container(container: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = mapping_at(container, "resources", "spec.containers.resources")
    # The API server fills a missing request in from the limit.
    return {
        name: quantity_of(amount, f"spec.containers.resources.{name}")
        for part in ("limits", "requests")
        for name, amount in mapping_at(resources, part, "spec.containers.resources").items()
    }


def _claims(spec: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    claims = mappings_at(spec, "resourceClaims", "spec.resourceClaims")
    # The scheduler makes one more of resources with a device class behind them.
    field = "status.extendedResourceClaimStatus"
    made = mapping_at(status, "extendedResourceClaimStatus", field)
    return (*claims, made) if made else tuple(claims)


def _claim_names(status: Mapping[str, Any]) -> Mapping[str, str]:
    field = "status.resourceClaimStatuses"
    if "resourceClaimStatuses" not in status:
        return _NO_NAMES
    return {
        text_of(each.get("name"), field): text_of(each.get("resourceClaimName"), field)
        for each in mappings_at(status, "resourceClaimStatuses", field)
    }
