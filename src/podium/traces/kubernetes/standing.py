"""Reads how a pod stood when the dump was made: finished, bound, gated, and since when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podium.traces.fields import flag_of, mapping_at, mappings_at, text_of, time_of

MIRROR = "kubernetes.io/config.mirror"  # a static pod, shown by its kubelet
FINISHED = ("Succeeded", "Failed")
_STATUSES = ("initContainerStatuses", "containerStatuses")


@dataclass(frozen=True, slots=True)
class Standing:
    """Says where a pod is in its life; times are seconds since 1970."""

    phase: str = ""
    node: str = ""  # where it is bound
    is_gated: bool = False
    is_live: bool = False  # an API server knows it; otherwise it is a manifest yet to be sent
    stays: bool = False  # belongs to its node: of a DaemonSet, or static
    owner: str = ""  # kind and name of its controller
    started_s: float | None = None
    run_time_s: float | None = None  # of a pod that succeeded
    ran_s: float | None = None  # of a finished pod, however it ended
    deleted_s: float | None = None  # when its grace period ends or ended
    latest_s: float | None = None  # the latest moment that it tells of
    is_unready: bool = False  # its condition Ready is not true
    is_nominated: bool = False  # others have been evicted for it, and it waits for their room

    @property
    def is_finished(self) -> bool:
        """Tells whether it neither runs nor waits any more."""
        return self.phase in FINISHED


def read_standing(pod: Mapping[str, Any], annotations: Mapping[str, str]) -> Standing:
    """Reads metadata, spec.nodeName, gates and status of a Pod object."""
    metadata = mapping_at(pod, "metadata", "metadata")
    spec = mapping_at(pod, "spec", "spec")
    status = mapping_at(pod, "status", "status")
    phase = text_of(status.get("phase"), "status.phase")
    kind, owner = controller_of(metadata)
    created_s = _time(metadata, "creationTimestamp", "metadata.creationTimestamp")
    begun_s = _time(status, "startTime", "status.startTime")
    starts, ends = _container_times(status)
    ran_s = _run_time(phase, starts, ends)
    return Standing(
        phase=phase,
        node=text_of(spec.get("nodeName"), "spec.nodeName"),
        is_gated=bool(mappings_at(spec, "schedulingGates", "spec.schedulingGates")),
        is_live=bool(metadata.get("uid")),
        stays=kind in ("DaemonSet", "Node") or MIRROR in annotations,
        owner=f"{kind}/{owner}" if owner else "",
        started_s=min(starts, default=created_s if begun_s is None else begun_s),
        # One that failed says when it failed, not how long such a pod runs.
        run_time_s=ran_s if phase == "Succeeded" else None,
        ran_s=ran_s,
        deleted_s=_time(metadata, "deletionTimestamp", "metadata.deletionTimestamp"),
        latest_s=_latest(created_s, begun_s, *starts, *ends, *condition_times(status)),
        is_unready=_is_unready(status),
        is_nominated=bool(status.get("nominatedNodeName")),
    )


def condition_times(status: Mapping[str, Any]) -> Iterator[float | None]:
    """Gives the times of an object's conditions; the heartbeats of nodes are the freshest."""
    for index, condition in enumerate(mappings_at(status, "conditions", "status.conditions")):
        for name in ("lastTransitionTime", "lastHeartbeatTime"):
            yield _time(condition, name, f"status.conditions[{index}].{name}")


def _is_unready(status: Mapping[str, Any]) -> bool:
    """Tells whether a pod says that it is not ready; one that says nothing counts as ready."""
    conditions = mappings_at(status, "conditions", "status.conditions")
    return any(each.get("type") == "Ready" and each.get("status") != "True" for each in conditions)


def controller_of(metadata: Mapping[str, Any]) -> tuple[str, str]:
    """Gives kind and name of the controller that made an object, both empty if none did."""
    at = "metadata.ownerReferences"
    for index, owner in enumerate(mappings_at(metadata, "ownerReferences", at)):
        is_controller = owner.get("controller")
        if is_controller is not None and flag_of(is_controller, f"{at}[{index}].controller"):
            kind = text_of(owner.get("kind"), f"{at}[{index}].kind")
            return kind, text_of(owner.get("name"), f"{at}[{index}].name")
    return "", ""


def _container_times(status: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    starts: list[float | None] = []
    ends: list[float | None] = []
    for name in _STATUSES:
        for index, container in enumerate(mappings_at(status, name, f"status.{name}")):
            at = f"status.{name}[{index}].state"
            state = mapping_at(container, "state", at)
            running = mapping_at(state, "running", f"{at}.running")
            terminated = mapping_at(state, "terminated", f"{at}.terminated")
            starts.append(_time(running, "startedAt", f"{at}.running.startedAt"))
            starts.append(_time(terminated, "startedAt", f"{at}.terminated.startedAt"))
            ends.append(_time(terminated, "finishedAt", f"{at}.terminated.finishedAt"))
    # A container that never started has times of 1970 or none.
    return [t for t in starts if t is not None and t > 0], [t for t in ends if t is not None]


def _run_time(phase: str, starts: list[float], ends: list[float]) -> float | None:
    if phase not in FINISHED or not starts or not ends or max(ends) < min(starts):
        return None
    return max(ends) - min(starts)


def _time(parent: Mapping[str, Any], name: str, field: str) -> float | None:
    value = parent.get(name)
    return None if value is None or value == "" else time_of(value, field)


def _latest(*times: float | None) -> float | None:
    return max((time for time in times if time is not None), default=None)
