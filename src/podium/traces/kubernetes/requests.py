"""Reads how much of each resource a pod asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from podium.traces.fields import mapping_at, mappings_at, quantity_of, text_of
from podium.traces.kubernetes.devices import require_whole

Resources = dict[str, Fraction]

_HUGE_PAGES = "hugepages-"


def pod_resources(spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> Resources:
    """Gives the effective request of a pod, as `PodRequests` of k8s.io/component-helpers does.

    It is the larger of what runs in the end (containers and sidecars) and of the hungriest
    moment of the start (an init container beside the sidecars started before it), plus the
    overhead. https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    running: Resources = {}
    held = _held(status or {})
    for index, container in enumerate(mappings_at(spec, "containers", "spec.containers")):
        field = f"spec.containers[{index}]"
        asked = _container_request(container, field)
        _add(running, held.instead_of(asked, container) if held.of else asked)
    # Nearly all pods of a dump have none of what follows.
    if spec.get("initContainers"):
        sidecars, peak = _start(spec, held)
        _add(running, sidecars)
        for key, amount in peak.items():
            running[key] = max(running.get(key, Fraction(0)), amount)
    if spec.get("resources"):
        _override(running, spec, held)
    if spec.get("overhead"):
        overhead = mapping_at(spec, "overhead", "spec.overhead")
        _add(running, _quantities(overhead, "spec.overhead"))
    return running


@dataclass(frozen=True, slots=True)
class _Held:
    """Knows what containers hold while they are resized in place."""

    of: Mapping[str, Resources]  # by the name of the container, "" is the pod itself
    is_infeasible: bool = False  # the node will never give what the spec now asks for

    def instead_of(self, asked: Resources, container: Mapping[str, Any] | None) -> Resources:
        """Gives the larger of what a container asks for and what it holds."""
        name = "" if container is None else text_of(container.get("name"), "spec.containers.name")
        if name not in self.of:
            return asked
        return dict(self.of[name]) if self.is_infeasible else _larger(asked, self.of[name])


_NOTHING_HELD = _Held({})


def _held(status: Mapping[str, Any]) -> _Held:
    if not status:
        return _NOTHING_HELD
    holders = [("", "status", status)]
    for part in ("containerStatuses", "initContainerStatuses"):
        for index, each in enumerate(mappings_at(status, part, f"status.{part}")):
            at = f"status.{part}[{index}]"
            holders.append((text_of(each.get("name"), f"{at}.name"), at, each))
    found = {
        name: _holding(each, at) for name, at, each in holders if each.get("resources") is not None
    }
    return _Held(found, _is_infeasible(status)) if found else _NOTHING_HELD


def _holding(status: Mapping[str, Any], at: str) -> Resources:
    resources = mapping_at(status, "resources", f"{at}.resources")
    actual = mapping_at(resources, "requests", f"{at}.resources.requests")
    allocated = mapping_at(status, "allocatedResources", f"{at}.allocatedResources")
    return _larger(
        _quantities(actual, f"{at}.resources.requests"),
        _quantities(allocated, f"{at}.allocatedResources"),
    )


def _is_infeasible(status: Mapping[str, Any]) -> bool:
    conditions = mappings_at(status, "conditions", "status.conditions")
    return any(
        each.get("type") == "PodResizePending" and each.get("reason") == "Infeasible"
        for each in conditions
    )


def _larger(one: Resources, other: Resources) -> Resources:
    nothing = Fraction(0)
    return {key: max(one.get(key, nothing), other.get(key, nothing)) for key in one.keys() | other}


def _start(spec: Mapping[str, Any], held: _Held) -> tuple[Resources, Resources]:
    nothing = Fraction(0)
    sidecars: Resources = {}
    peak: Resources = {}
    for index, container in enumerate(mappings_at(spec, "initContainers", "spec.initContainers")):
        field = f"spec.initContainers[{index}]"
        asked = _container_request(container, field)
        if text_of(container.get("restartPolicy"), f"{field}.restartPolicy") == "Always":
            asked = held.instead_of(asked, container)
            _add(sidecars, asked)
            moment = sidecars
        else:
            moment = {key: sidecars.get(key, nothing) + asked[key] for key in asked}
        # Of what else sidecars hold, the peak was noted when they started.
        for key in asked:
            peak[key] = max(peak.get(key, nothing), moment[key])
    return sidecars, peak


def _override(asked: Resources, spec: Mapping[str, Any], held: _Held) -> None:
    # Requests of the pod itself, since Kubernetes 1.32, stand for those of its containers.
    resources = mapping_at(spec, "resources", "spec.resources")
    limits = mapping_at(resources, "limits", "spec.resources.limits")
    requests = mapping_at(resources, "requests", "spec.resources.requests")
    # The API server fills a missing one in from the limit, unless containers ask for some; huge
    # pages are never overcommitted.
    filled = {k: v for k, v in limits.items() if k not in asked or k.startswith(_HUGE_PAGES)}
    whole = _quantities({**filled, **requests}, "spec.resources")
    effective = held.instead_of(whole, None)
    nothing = Fraction(0)
    asked.update({key: effective.get(key, nothing) for key in whole if _is_pod_level(key)})


def _is_pod_level(resource: str) -> bool:
    return resource in ("cpu", "memory") or resource.startswith(_HUGE_PAGES)


def _container_request(container: Mapping[str, Any], field: str) -> Resources:
    resources = mapping_at(container, "resources", f"{field}.resources")
    limits = mapping_at(resources, "limits", f"{field}.resources.limits")
    requests = mapping_at(resources, "requests", f"{field}.resources.requests")
    # The API server fills a missing request in from the limit.
    return _quantities(limits, f"{field}.resources.limits") | _quantities(
        requests, f"{field}.resources.requests"
    )


def _quantities(amounts: Mapping[str, Any], field: str) -> Resources:
    found = {key: quantity_of(amount, f"{field}.{key}") for key, amount in amounts.items()}
    for key, amount in found.items():
        if "/" in key:
            require_whole(key, amount)
    return found


def _add(total: Resources, more: Resources) -> None:
    for key, amount in more.items():
        total[key] = total[key] + amount if key in total else amount
