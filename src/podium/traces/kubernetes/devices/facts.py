"""Takes from Node and Pod objects what decides about their devices."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from podium.traces.fields import mapping_at, mappings_at, quantity_of, text_of, texts_at
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.devices.inventory import Inventory
from podium.traces.kubernetes.devices.values import NodeFacts, PodFacts, Resources
from podium.traces.kubernetes.devices.vgpu import HAMI, VOLCANO

_OF_EACH_GPU = frozenset(
    name
    for project in (HAMI, VOLCANO)
    for name in (project.memory, project.percentage, project.cores)
)
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


def pod_facts(pod: Mapping[str, Any], resources: Resources, inventory: Inventory) -> PodFacts:
    """Takes what a Pod object says about devices, and no more: a dump has many of them."""
    metadata = mapping_at(pod, "metadata", "metadata")
    annotations = mapping_at(metadata, "annotations", "metadata.annotations")
    field = "metadata.annotations"
    spec = mapping_at(pod, "spec", "spec")
    status = mapping_at(pod, "status", "status")
    is_finished = status.get("phase") in _FINISHED_PHASES
    marks = annotations.keys() & keys.DEVICE_ANNOTATIONS
    return PodFacts(
        name=text_of(metadata.get("name"), "metadata.name"),
        namespace=text_of(metadata.get("namespace"), "metadata.namespace") or "default",
        labels=texts_at(metadata, "labels", "metadata.labels"),
        annotations={key: text_of(annotations[key], f"{field}.{key}") for key in sorted(marks)},
        resources=resources,
        containers=() if _OF_EACH_GPU.isdisjoint(resources) else _containers(spec),
        claims=_claims(spec, status),
        claim_names=_claim_names(status),
        node="" if is_finished else text_of(spec.get("nodeName"), "spec.nodeName"),
        inventory=inventory,
    )


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


def _claim_names(status: Mapping[str, Any]) -> dict[str, str]:
    field = "status.resourceClaimStatuses"
    return {
        text_of(each.get("name"), field): text_of(each.get("resourceClaimName"), field)
        for each in mappings_at(status, "resourceClaimStatuses", field)
    }
