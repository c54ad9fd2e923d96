"""Knows the work that waits for something else than a node: gated pods, suspended jobs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from podium.errors import UnknownName
from podium.traces.fields import FieldError, mapping_at, text_of
from podium.traces.kubernetes.documents import Document
from podium.traces.kubernetes.operators import is_suspended
from podium.traces.kubernetes.pod import PodDraft
from podium.traces.kubernetes.standing import controller_of
from podium.traces.kubernetes.templates import has_template

GATED, SUSPENDED = "gated", "suspended"
WAITING = (GATED, SUSPENDED)
"""What may be tried though it waits; Kueue lets pods and jobs wait so until it admits them."""

_CHILDREN = {
    "Deployment": "ReplicaSet", "JobSet": "Job", "LeaderWorkerSet": "StatefulSet", "MPIJob": "Job",
    "RayJob": "RayCluster",
}  # fmt: skip
"""Kinds that some controllers make, named after them, which then make the pods."""


def parse_waiting(text: str) -> tuple[str, ...]:
    """Reads what is to be tried, such as gated,suspended."""
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in WAITING:
            raise UnknownName.among("kind of waiting work", name, WAITING, where="flag --waiting")
    return names


def waits(document: Document) -> bool:
    """Tells whether an object is a job that is suspended; a CronJob then only starts no more."""
    try:
        is_job = has_template(document) and document.kind != "CronJob"
        return is_job and is_suspended(document.value)
    except FieldError:
        return False


def ungated(draft: PodDraft) -> PodDraft:
    """Lets a pod be tried as if its gates were gone."""
    if not draft.standing.is_gated:
        return draft
    return replace(draft, standing=replace(draft.standing, is_gated=False))


def has_pods(document: Document, drafts: Iterable[PodDraft]) -> bool:
    """Tells whether pods of a controller are there already, and did not finish."""
    space, name = _named(document)
    own = f"{document.kind}/{name}"
    child = f"{_CHILDREN.get(document.kind, document.kind)}/{name}-"
    return any(
        (draft.standing.owner == own or draft.standing.owner.startswith(child))
        and (draft.spec.namespace or "default") == space
        and not draft.standing.is_finished
        for draft in drafts
    )


def without_children(documents: Iterable[Document]) -> list[Document]:
    """Leaves out jobs that another of them made."""
    listed = list(documents)
    owners = {(each.kind, *_named(each)) for each in listed}
    kept = []
    for document in listed:
        kind, owner = controller_of(mapping_at(document.value, "metadata", "metadata"))
        if (kind, _named(document)[0], owner) not in owners:
            kept.append(document)
    return kept


def _named(document: Document) -> tuple[str, str]:
    metadata = mapping_at(document.value, "metadata", "metadata")
    space = text_of(metadata.get("namespace"), "metadata.namespace") or "default"
    return space, text_of(metadata.get("name"), "metadata.name")
