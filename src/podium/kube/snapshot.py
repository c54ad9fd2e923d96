"""Takes a picture of a cluster: all objects that Podium reads, as they are now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.files.excerpt import excerpt
from podium.kube.client import KubeClient, KubeError, Pages
from podium.kube.objects import (
    UNREADABLE,
    decode,
    decode_around,
    list_decoder,
    name_of,
    without_strange_marks,
)
from podium.kube.reflector import PAGE
from podium.kube.resources import Resource

Follow = Callable[[str, int], None]
"""Is told the kind and the number of objects that came."""


@dataclass(slots=True)
class Snapshot:
    """Holds the objects of a cluster, and says what could not be had."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)  # by kind, of those there are
    notes: list[str] = field(default_factory=list)


async def take_snapshot(
    client: KubeClient, resources: Sequence[Resource], namespace: str, follow: Follow
) -> Snapshot:
    """Lists everything once.

    Raises:
        KubeError: nodes or pods may not be listed, or the cluster does not answer.
    """
    found = Snapshot()
    for resource in resources:
        try:
            listed, unread = await _listed(client, resource, namespace, follow)
        except KubeError as error:
            if resource.is_needed or not (error.is_forbidden or error.is_absent):
                raise
            if error.is_forbidden:
                found.notes.append(f"{resource.plural} are not in it: {error.message}")
            continue
        found.objects += listed
        if unread:
            found.notes.append(_left_out(resource, unread))
        if listed:
            found.counts[resource.name] = len(listed)
    found.notes += narrowed(namespace)
    return found


def narrowed(namespace: str) -> list[str]:
    """Says what a file lacks that holds the pods of one namespace, where that is so."""
    if not namespace:
        return []
    return [f"only pods of the namespace {namespace} are in it: what others use is not counted"]


async def _listed(
    client: KubeClient, resource: Resource, namespace: str, follow: Follow
) -> tuple[list[dict[str, Any]], list[str]]:
    found, unread = list[dict[str, Any]](), list[str]()
    query, pages = {"limit": str(PAGE)}, Pages(client.url)
    while True:
        try:
            reply = await client.get(resource.path(namespace), query)
        except KubeError as error:
            if not error.is_gone or "limit" not in query:
                raise
            # The list grew too old while its pages were read.
            found, unread, query = [], [], {}
            continue
        version, items = _page(reply, resource, client)
        for raw in items:
            try:
                found.append(_object(raw, resource))
            except UNREADABLE as error:
                unread.append(f"{name_of(raw)}: {excerpt(str(error), 200, quote='')}")
        follow(resource.plural, len(items))
        if not version:
            return found, unread
        query = pages.after(query, version)


def _left_out(resource: Resource, unread: list[str]) -> str:
    others = f", and {len(unread) - 1:,} more" if len(unread) > 1 else ""
    return f"{resource.plural} that cannot be read are not in it: {unread[0]}{others}"


def _page(reply: bytes, resource: Resource, client: KubeClient) -> tuple[str, list[msgspec.Raw]]:
    try:
        page = decode_around(list_decoder, reply)
    except UNREADABLE as error:
        text = f"the cluster's list of {resource.plural} cannot be read: {error}"
        raise KubeError(text, where=client.url) from error
    return page.metadata.continue_, page.items or []


def _object(raw: msgspec.Raw, resource: Resource) -> dict[str, Any]:
    # The members of a list do not say what they are.
    known = {"apiVersion": resource.api_version, "kind": resource.kind}
    return without_strange_marks(known | decode(resource.name, raw))
