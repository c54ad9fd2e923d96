"""Takes from the JSON of nodes and pods the bytes that tell whether anything that matters changed.

Raw parts are compared, not understood. Two pods with the same pattern differ in nothing but their
name and their life: where they are bound, when they started, whether they have finished.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypedDict

import msgspec
from msgspec import Raw, Struct

from podium.kube.objects import is_mark

_NONE = Raw(b"")
Mark = tuple[int, str, str, str | None, bool]
"""Says how a pod was when it was read last."""

_BREAK = b"\x1f"  # never stands in JSON


class _Metadata(Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Raw = _NONE
    annotations: Raw = _NONE
    owner_references: Raw = _NONE


class _Container(Struct, rename="camel"):
    name: str = ""
    resources: Raw = _NONE
    ports: Raw = _NONE
    restart_policy: str = ""


class _Volume(Struct, rename="camel"):
    persistent_volume_claim: Raw = _NONE
    ephemeral: Raw = _NONE


class _Spec(Struct, rename="camel"):
    node_name: str = ""
    scheduling_gates: Raw = _NONE
    containers: list[_Container] = []
    init_containers: list[_Container] = []
    volumes: list[_Volume] = []
    affinity: Raw = _NONE
    host_network: Raw = _NONE
    node_selector: Raw = _NONE
    overhead: Raw = _NONE
    preemption_policy: Raw = _NONE
    priority: Raw = _NONE
    priority_class_name: Raw = _NONE
    resource_claims: Raw = _NONE
    resources: Raw = _NONE
    runtime_class_name: Raw = _NONE
    scheduler_name: Raw = _NONE
    scheduling_group: Raw = _NONE
    tolerations: Raw = _NONE
    topology_spread_constraints: Raw = _NONE
    workload_ref: Raw = _NONE


class _ContainerStatus(Struct, rename="camel"):
    name: str = ""
    resources: Raw = _NONE


class _Status(Struct, rename="camel"):
    phase: str = ""
    start_time: str | None = None
    container_statuses: list[_ContainerStatus] = []
    init_container_statuses: list[_ContainerStatus] = []
    conditions: Raw = _NONE
    resources: Raw = _NONE
    extended_resource_claim_status: Raw = _NONE
    resource_claim_statuses: Raw = _NONE


class PodHead(Struct, rename="camel"):
    """Is a pod as far as it takes to know it again."""

    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    def pattern(self) -> bytes:
        """Gives all that decides about the pod but for its name and its life.

        Annotations that nobody reads are no part of it: controllers write them at any time.
        """
        meta, spec, status = self.metadata, self.spec, self.status
        parts: list[Any] = [
            meta.namespace.encode(), meta.labels, _marks(meta.annotations), meta.owner_references,
            spec.affinity, spec.host_network, spec.node_selector, spec.overhead,
            spec.preemption_policy, spec.priority, spec.priority_class_name, spec.resource_claims,
            spec.resources, spec.runtime_class_name, spec.scheduler_name, spec.scheduling_group,
            spec.tolerations, spec.topology_spread_constraints, spec.workload_ref,
            status.resources, status.extended_resource_claim_status, status.resource_claim_statuses,
        ]  # fmt: skip
        if any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes):
            parts.append(b"volume")
        for each in spec.containers:
            parts += (b"container", each.resources, each.ports)
        for each in spec.init_containers:
            parts += (b"init", each.restart_policy.encode(), each.resources, each.ports)
        if status.container_statuses or status.init_container_statuses:
            self._add_held(parts)
        return _BREAK.join(parts)

    def _add_held(self, parts: list[Any]) -> None:
        """Adds what containers hold, where that is not what they ask for."""
        asked = {c.name: c.resources for c in (*self.spec.containers, *self.spec.init_containers)}
        for each in (*self.status.container_statuses, *self.status.init_container_statuses):
            if each.resources and each.resources != asked.get(each.name):
                parts += (each.name.encode(), each.resources, self.status.conditions)

    @property
    def is_gated(self) -> bool:
        """Tells whether the pod waits for its scheduling gates."""
        return bytes(self.spec.scheduling_gates) not in (b"", b"[]", b"null")

    def mark(self, pattern: bytes) -> Mark:
        """Gives what must be equal for nothing to have changed; the pattern comes first."""
        deleted = self.metadata.deletion_timestamp
        return hash(pattern), self.status.phase, self.spec.node_name, deleted, self.is_gated


_is_mark = lru_cache(maxsize=4096)(is_mark)
_annotations = msgspec.json.Decoder(dict[str, Raw])


def _marks(annotations: Raw) -> bytes | Raw:
    """Takes the annotations that Podium reads."""
    if memoryview(annotations).nbytes <= len(b"null"):
        return annotations
    try:
        found = _annotations.decode(annotations)
    except msgspec.DecodeError:
        return annotations
    kept = [part for key in found if _is_mark(key) for part in (key.encode(), found[key])]
    return _BREAK.join(kept)


class _NodeCondition(Struct, rename="camel"):
    type: str = ""
    status: str = ""


class _NodeStatus(Struct, rename="camel"):
    capacity: Raw = _NONE
    allocatable: Raw = _NONE
    conditions: list[_NodeCondition] = []


class NodeHead(Struct, rename="camel"):
    """Is a node as far as it takes to know it again; heartbeats are not part of it."""

    metadata: _Metadata
    spec: Raw = _NONE
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)

    def mark(self) -> int:
        """Gives what must be equal for nothing to have changed."""
        meta, status = self.metadata, self.status
        ready = [each.status.encode() for each in status.conditions if each.type == "Ready"]
        parts = (
            meta.labels, meta.annotations, self.spec, status.capacity, status.allocatable, *ready,
        )  # fmt: skip
        return hash(_BREAK.join(parts))


class _LifeMetadata(TypedDict, total=False):
    uid: str
    creationTimestamp: Any
    deletionTimestamp: Any
    ownerReferences: Any


class _LifeSpec(TypedDict, total=False):
    nodeName: str
    schedulingGates: Any


class _Moments(TypedDict, total=False):
    startedAt: Any
    finishedAt: Any


class _State(TypedDict, total=False):
    running: _Moments
    terminated: _Moments


class _LifeContainer(TypedDict, total=False):
    state: _State


class _LifeStatus(TypedDict, total=False):
    phase: str
    nominatedNodeName: str
    startTime: Any
    containerStatuses: list[_LifeContainer]
    initContainerStatuses: list[_LifeContainer]


class _Life(TypedDict, total=False):
    metadata: _LifeMetadata
    spec: _LifeSpec
    status: _LifeStatus


pod_heads = msgspec.json.Decoder(PodHead)
node_heads = msgspec.json.Decoder(NodeHead)
pod_lives = msgspec.json.Decoder(_Life)
"""Decodes the part of a pod that its pattern leaves out."""
