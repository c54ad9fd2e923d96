"""Feeds a state with JSON as it comes from an API server, and reads no more of it than it must.

Most events change nothing that decides about placement, and most pods are like others of the
same controller: both are found out from the bytes, before anything is decoded for good.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import Raw

from podium.kube.heads import Mark, PodHead, node_heads, pod_heads, pod_lives
from podium.kube.objects import decode
from podium.kube.pod import LivePod
from podium.kube.reflector import Seen
from podium.kube.resources import Resource
from podium.kube.state import EventType, LiveState, identity
from podium.traces.fields import FieldError, time_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.pod import PodDraft, pod_draft
from podium.traces.kubernetes.standing import Standing, read_standing

MOST_PATTERNS = 4096
"""Descriptions that are kept for pods yet to come; each stands for many of them."""

MOST_AFFINITY_BYTES = 1 << 19
"""Of one pod; more would take long to decode, and has more terms than are modelled."""

_OWN_TIMES = keys.CREATION_TIME.encode()


class Feed:
    """Takes events and lists of all kinds for one state."""

    def __init__(self, state: LiveState) -> None:
        self.state = state
        self._patterns: dict[bytes, PodDraft] = {}
        self._node_marks: dict[str, int] = {}

    def apply(self, resource: Resource, type_: EventType, raw: bytes | Raw) -> Seen:
        """Takes one object.

        Raises:
            msgspec.DecodeError: the bytes are no such object.
        """
        if resource.name == "Pod":
            return self._apply_pod(type_, raw)
        if resource.name == "Node":
            return self._apply_node(type_, raw)
        # The members of a list do not say what they are.
        known = {"apiVersion": resource.api_version, "kind": resource.kind}
        value = known | decode(resource.name, raw)
        version = value.get("metadata", {}).pop("resourceVersion", "")
        self.state.apply(resource.name, type_, value)
        return Seen(identity(resource.name, value), version)

    def retain(self, resource: Resource, seen: set[Hashable]) -> None:
        """Takes a list to be complete: what is not among those seen is gone."""
        self.state.retain(resource.name, seen)
        if resource.name == "Node":
            self._node_marks = {n: mark for n, mark in self._node_marks.items() if n in seen}

    def _apply_node(self, type_: EventType, raw: bytes | Raw) -> Seen:
        head = node_heads.decode(raw)
        name, mark = head.metadata.name, head.mark()
        seen = Seen(name, head.metadata.resource_version)
        if type_ == "DELETED":
            self._node_marks.pop(name, None)
        elif self._node_marks.get(name) == mark:
            return seen
        else:
            self._node_marks[name] = mark
        self.state.apply("Node", type_, decode("Node", raw))
        return seen

    def _apply_pod(self, type_: EventType, raw: bytes | Raw) -> Seen:
        head, state = pod_heads.decode(raw), self.state
        uid = head.metadata.uid
        seen = Seen(uid, head.metadata.resource_version)
        if type_ == "DELETED":
            state.version += state.drop_pod(uid)
            return seen
        pattern = head.pattern()
        mark = head.mark(pattern)
        known = state.known_pod(uid)
        if known is not None and known.mark == mark:
            return seen
        try:
            if known is not None and _only_lives(known, mark):
                draft = _later(known.draft, head)
            else:
                draft = self._draft(raw, head, pattern)
        except FieldError as error:
            state.version += state.put_unread_pod(uid, _named(head), error, mark)
        else:
            state.version += state.put_pod(uid, draft, mark=mark)
        return seen

    def _draft(self, raw: bytes | Raw, head: PodHead, pattern: bytes) -> PodDraft:
        like = self._patterns.get(pattern)
        if like is not None:
            return _like(like, pod_lives.decode(raw), head)
        if memoryview(head.spec.affinity).nbytes > MOST_AFFINITY_BYTES:
            text = f"more than {MOST_AFFINITY_BYTES:,} bytes are not modelled"
            raise FieldError("spec.affinity", text)
        around = self.state.around
        draft = pod_draft(decode("Pod", raw), around.namespaces, 0, around.inventory, {})
        if draft.facts.is_plain and _OWN_TIMES not in bytes(head.metadata.annotations):
            if len(self._patterns) >= MOST_PATTERNS:
                self._patterns.clear()
            self._patterns[pattern] = draft
        return draft


def _named(head: PodHead) -> dict[str, Any]:
    """Gives what is known of a pod that cannot be modelled: its name and its node."""
    names = {"namespace": head.metadata.namespace, "name": head.metadata.name}
    return {"metadata": names, "spec": {"nodeName": head.spec.node_name}}


def _like(draft: PodDraft, pod: Mapping[str, Any], head: PodHead) -> PodDraft:
    """Describes a pod that differs from another in its name and in its life alone."""
    standing = replace(read_standing(pod, {}), stays=draft.standing.stays)
    created = head.metadata.creation_timestamp
    return replace(
        draft,
        spec=replace(draft.spec, name=head.metadata.name),
        created_s=time_of(created, "metadata.creationTimestamp") if created else None,
        standing=standing,
    )


def _only_lives(known: LivePod, mark: Mark) -> bool:
    """Tells whether only the life of a pod has changed, and nothing depends on that but its room.

    Which GPUs an annotation or a claim names depends on the node to which the pod is bound.
    """
    if known.mark is None or known.mark[0] != mark[0] or known.problem:
        return False
    return known.draft.facts.is_plain or known.node == mark[2]


def _later(draft: PodDraft, head: PodHead) -> PodDraft:
    """Describes a pod again that was bound, started, finished or asked to leave."""
    old, status = draft.standing, head.status
    started, deleted = status.start_time, head.metadata.deletion_timestamp
    standing = Standing(
        phase=status.phase,
        node=head.spec.node_name,
        is_gated=head.is_gated,
        is_live=True,
        stays=old.stays,
        owner=old.owner,
        started_s=time_of(started, "status.startTime") if started else old.started_s,
        deleted_s=time_of(deleted, "metadata.deletionTimestamp") if deleted else None,
    )
    return PodDraft(
        draft.spec, draft.facts, draft.devices, draft.annotated, draft.models, draft.created_s,
        standing, draft.membership, draft.priority_class, draft.terms, draft.remarks,
        draft.placing_remarks, draft.has_priority, draft.company,
    )  # fmt: skip
