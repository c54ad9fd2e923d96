"""Sums what a pod asks for over its containers, as Kubernetes does."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from podium.traces.fields import mapping_at, mappings_at, quantity_of, text_of

Resources = dict[str, Fraction]

_POD_LEVEL = ("cpu", "memory")


def pod_resources(spec: Mapping[str, Any]) -> Resources:
    """Gives the effective request of a pod.

    It is the larger of what runs in the end (containers and sidecars) and of the hungriest
    moment of the start (an init container beside the sidecars started before it), plus the
    overhead. https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    running: Resources = {}
    for index, container in enumerate(mappings_at(spec, "containers", "spec.containers")):
        _add(running, _container_request(container, f"spec.containers[{index}]"))
    sidecars, peak = _start(spec)
    _add(running, sidecars)
    total = {key: max(running.get(key, 0), peak.get(key, 0)) for key in running.keys() | peak}
    asked = {key: Fraction(amount) for key, amount in total.items()}
    _override(asked, spec)
    _add(asked, _quantities(mapping_at(spec, "overhead", "spec.overhead"), "spec.overhead"))
    return asked


def _start(spec: Mapping[str, Any]) -> tuple[Resources, Resources]:
    sidecars: Resources = {}
    peak: Resources = {}
    for index, container in enumerate(mappings_at(spec, "initContainers", "spec.initContainers")):
        field = f"spec.initContainers[{index}]"
        moment = dict(sidecars)
        _add(moment, _container_request(container, field))
        if text_of(container.get("restartPolicy"), f"{field}.restartPolicy") == "Always":
            sidecars = moment
        for key, amount in moment.items():
            peak[key] = max(peak.get(key, Fraction(0)), amount)
    return sidecars, peak


def _override(asked: Resources, spec: Mapping[str, Any]) -> None:
    # Requests of the pod itself, since Kubernetes 1.32, stand for those of its containers.
    whole = _container_request(spec, "spec")
    asked.update({key: whole[key] for key in _POD_LEVEL if key in whole})


def _container_request(container: Mapping[str, Any], field: str) -> Resources:
    resources = mapping_at(container, "resources", f"{field}.resources")
    limits = mapping_at(resources, "limits", f"{field}.resources.limits")
    requests = mapping_at(resources, "requests", f"{field}.resources.requests")
    # The API server fills a missing request in from the limit.
    return _quantities(limits, f"{field}.resources.limits") | _quantities(
        requests, f"{field}.resources.requests"
    )


def _quantities(amounts: Mapping[str, Any], field: str) -> Resources:
    return {key: quantity_of(amount, f"{field}.{key}") for key, amount in amounts.items()}


def _add(total: Resources, more: Resources) -> None:
    for key, amount in more.items():
        total[key] = total.get(key, Fraction(0)) + amount
