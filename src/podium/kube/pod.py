"""Holds what a live state knows of one pod, and what a pod asks of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.model.cluster import GpuKind, NodeSpec
from podium.model.constraints import Gang, PodSelector
from podium.model.records import POD
from podium.model.shares import (
    IMPOSSIBLE,
    gpu_shares,
    gpus_by_kind,
    share_on,
    spreads_on,
    usual_share,
)
from podium.model.workload import PodSpec, model_mask
from podium.traces.kubernetes.devices import NO_DEVICES, Inventory, pod_facts
from podium.traces.kubernetes.gangs import Groups, Member, resolve_gangs
from podium.traces.kubernetes.pod import PodDraft
from podium.traces.kubernetes.standing import Standing

GroupKey = tuple[str, str]
"""The namespace and the name of a group of pods."""


@dataclass(slots=True, eq=False)
class LivePod:
    """Is a pod that waits or runs, in slim form; only its LiveState changes it."""

    uid: str
    draft: PodDraft  # as the object alone tells
    spec: PodSpec  # as the objects around it complete it
    remarks: tuple[str, ...] = ()  # what has no place in the description
    problem: str = ""  # why it cannot be modelled, empty: it can
    slots: tuple[int, ...] = ()  # the GPUs that it holds: those of spec.gpu_slots, or likely ones
    gpu_milli: int = 0  # of each of them
    mark: tuple[Any, ...] | None = None  # by which a reader of events knows what has changed

    @property
    def name(self) -> str:
        """Names the pod within its namespace."""
        return self.draft.spec.name

    @property
    def namespace(self) -> str:
        """Names the namespace of the pod."""
        return self.draft.spec.namespace or "default"

    @property
    def node(self) -> str:
        """Names the node to which the pod is bound, empty while it waits."""
        return self.draft.standing.node

    @property
    def is_finished(self) -> bool:
        """Tells whether the pod neither waits nor runs any more."""
        return self.draft.standing.is_finished

    @property
    def is_pending(self) -> bool:
        """Tells whether the pod waits for a node and nothing else."""
        standing = self.draft.standing
        is_free = not standing.is_gated and standing.deleted_s is None
        return not standing.node and not standing.is_finished and is_free

    @property
    def group(self) -> GroupKey | None:
        """Names the group to which the pod says it belongs; not every group is a gang."""
        return group_of(self.draft)


def by_name(pod: LivePod) -> tuple[str, str]:
    """Gives the place of a pod in an order that does not depend on who was seen first."""
    return pod.namespace, pod.name


def group_of(draft: PodDraft) -> GroupKey | None:
    """Names the group to which a pod says it belongs."""
    if draft.membership is None:
        return None
    return draft.spec.namespace or "default", draft.membership.name


def unread_draft(named: tuple[str, str], node: str, inventory: Inventory) -> PodDraft:
    """Stands for a pod that cannot be modelled: it takes nothing, and may like anybody."""
    return PodDraft(
        spec=PodSpec(named[1], 0, 0, namespace=named[0]),
        facts=pod_facts({}, {}, {}, inventory),
        devices=NO_DEVICES,
        annotated="",
        models=(),
        created_s=None,
        standing=Standing(node=node),
        membership=None,
        company=(PodSelector(()),),
    )


def is_alike(one: PodDraft, other: PodDraft) -> bool:
    """Tells whether two descriptions of a pod differ only in what no placement depends on."""
    return _essence(one) == _essence(other)


def _essence(draft: PodDraft) -> tuple[object, ...]:
    standing, facts = draft.standing, draft.facts
    marks = (facts.annotations, facts.resources, facts.claims, facts.claim_names)
    return (
        draft.spec, standing.is_finished and standing.phase, standing.node, standing.is_gated,
        standing.deleted_s, draft.membership, draft.priority_class, draft.terms,
        facts if facts.is_plain else marks, draft.placing_remarks, draft.company,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Is what one pod asks of the cluster, numbered as the nodes of the state are now."""

    uid: str  # empty: no API server knows the pod
    spec: PodSpec
    record: Any  # of POD: the share on the kind of GPU that most nodes it may use have
    shares: npt.NDArray[np.int32] | None  # (num_kinds, 2): count and milli; None: alike on all
    group: GroupKey | None = None
    remarks: tuple[str, ...] = ()  # what of the pod is not modelled


class Unreadable(NamedTuple):
    """Says why a pod cannot be modelled."""

    pod: str  # namespace/name
    reason: str

    def __str__(self) -> str:
        return f"pod {self.pod}: {self.reason}"


@dataclass(frozen=True, slots=True)
class LiveGang:
    """Is a gang as it stands: what it needs, and which of its pods are there."""

    namespace: str
    rule: Gang
    waiting: tuple[str, ...]  # UIDs of the members without a node
    bound: tuple[str, ...]  # UIDs of those with one
    nodes: tuple[str, ...]  # of the bound members, aligned with them

    @property
    def lacking(self) -> int:
        """Counts the members that must still be bound before the gang can start."""
        return max(0, self.rule.minimum - len(self.bound))


def shares_of(spec: PodSpec, kind: GpuKind) -> list[tuple[int, int]]:
    """Lists how many GPUs of a kind a pod may take, and how much of each; the usual way first.

    What a kind cannot serve is taken as it was asked for.
    """
    asked = spec.gpu_count, spec.gpu_milli, spec.gpu_memory_mib
    share = share_on(*asked, kind)
    return [asked[:2] if share[0] == IMPOSSIBLE else share, *spreads_on(*asked, kind)]


def request_for(spec: PodSpec, kinds: tuple[GpuKind, ...], nodes: npt.NDArray[Any]) -> Request:
    """Gives what a pod asks of nodes with these kinds of GPU."""
    mask = model_mask(spec.gpu_spec, tuple(kind.model for kind in kinds))
    row = (
        spec.cpu_milli, spec.memory_mib, spec.gpu_count, spec.gpu_milli, mask, spec.priority, 0,
    )  # fmt: skip
    pods = np.array([row], POD)
    is_plain = not spec.gpu_memory_mib and all(kind.replicas == 1 for kind in kinds)
    if not spec.gpu_count or not kinds or is_plain:
        return Request("", spec, pods[0], None)
    shares = gpu_shares(pods, np.array([spec.gpu_memory_mib], np.int32), kinds)
    pods["gpu_count"], pods["gpu_milli"] = usual_share(
        pods, shares, gpus_by_kind(nodes, len(kinds))
    )
    return Request("", spec, pods[0], shares[0])


def live_gang(
    group: GroupKey, pods: Sequence[LivePod], groups: Groups, nodes: Sequence[NodeSpec]
) -> tuple[LiveGang | None, list[str]]:
    """Finds the gang that pods of a group are, None where they start alone, with notes on it."""
    found = resolve_gangs([_member(pod) for pod in pods], groups, nodes)
    notes = [text.rpartition(": ")[0] for text in found.notes]
    if not found.rules:
        return None, notes
    bound = [pod for pod in pods if pod.node and not pod.is_finished]
    gang = LiveGang(
        namespace=group[0],
        rule=found.rules[0],
        waiting=tuple(pod.uid for pod in pods if pod.is_pending),
        bound=tuple(pod.uid for pod in bound),
        nodes=tuple(pod.node for pod in bound),
    )
    return gang, notes


def _member(pod: LivePod) -> Member:
    draft, standing = pod.draft, pod.draft.standing
    if draft.membership is None:
        raise RuntimeError(f"{pod.name} is in no group")
    return Member(
        membership=draft.membership,
        namespace=draft.spec.namespace,
        is_pending=not standing.node and not standing.is_finished,
        is_live=standing.is_live,
        is_succeeded=standing.phase == "Succeeded",
    )
