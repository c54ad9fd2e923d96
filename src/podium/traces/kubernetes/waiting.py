"""Knows the work that waits for something else than a node: gated pods, suspended jobs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from podium.errors import UnknownName
from podium.traces.fields import FieldError, mapping_at, text_of
from podium.traces.kubernetes.documents import Document
from podium.traces.kubernetes.operators import is_suspended
from podium.traces.kubernetes.pod import PodDraft
from podium.traces.kubernetes.standing import controller_of
from podium.traces.kubernetes.templates import completions_of, has_template

GATED, SUSPENDED = "gated", "suspended"
WAITING = (GATED, SUSPENDED)
"""What may be tried though it waits; Kueue lets pods and jobs wait so until it admits them."""

_CHILDREN = {
    "Deployment": "ReplicaSet/{}-[a-z0-9]+", "JobSet": "Job/{}-.+-[0-9]+",
    "LeaderWorkerSet": "StatefulSet/{}(-[0-9]+)?", "MPIJob": "Job/{}-launcher",
    "RayJob": "RayCluster/{}-(raycluster-)?[a-z0-9]+",
}  # fmt: skip
"""What some controllers make under which names, and what then makes the pods."""


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


def pods_of(document: Document, drafts: Iterable[PodDraft]) -> list[PodDraft]:
    """Lists the pods of a controller that run, wait or succeeded; none where all of them ended."""
    space, name = _named(document)
    child = _CHILDREN.get(document.kind, "{}").format(re.escape(name))
    owners = re.compile(f"{document.kind}/{re.escape(name)}|{child}")
    found = [
        draft
        for draft in drafts
        if owners.fullmatch(draft.standing.owner)
        and (draft.spec.namespace or "default") == space
        and draft.standing.phase != "Failed"
    ]
    return found if any(not draft.standing.is_finished for draft in found) else []


def namesakes_of(document: Document, drafts: Iterable[PodDraft]) -> list[PodDraft]:
    """Lists the pods that are named as those of a controller, and do not say who made them."""
    space, name = _named(document)
    return [
        draft
        for draft in drafts
        if draft.spec.name.startswith(f"{name}-")
        and (draft.spec.namespace or "default") == space
        and not (draft.standing.owner or draft.standing.is_finished)
    ]


def missing(document: Document, made: list[Document], there: Iterable[PodDraft]) -> list[Document]:
    """Leaves out the pods of a controller that are there already: by name, else as many.

    One that is being deleted makes room for another of another name. A Job that is nearly done
    needs no more pods than it has completions left.
    """
    names, stay, done = set[str](), 0, 0
    for draft in there:
        # Job controllers append five letters to the name that tells the index.
        names |= {draft.spec.name, draft.spec.name.rpartition("-")[0]}
        done += draft.standing.is_finished
        stay += draft.standing.deleted_s is None and not draft.standing.is_finished
    count = min(len(made), completions_of(document, len(made)) - done) - stay
    others = [each for each in made if _named(each)[1] not in names]
    return others[-count:] if count > 0 else []


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
