"""Follows all objects of one kind: a list, then a watch from there on, for as long as it takes.

A watch that breaks is resumed at the version heard last. Where that is too old, a new list tells
what has gone meanwhile: nobody says so of the objects that are no longer there.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import msgspec

from podium.errors import InputError
from podium.files.excerpt import excerpt
from podium.kube.client import KubeClient, KubeError, Pages
from podium.kube.objects import (
    UNREADABLE,
    decode_around,
    event_decoder,
    list_decoder,
    name_of,
    status_decoder,
    version_decoder,
)
from podium.kube.resources import Resource

if TYPE_CHECKING:
    from aiohttp import StreamReader

PAGE = 500
"""Objects of one page of a list."""

WATCH_S = 290.0
"""A watch is begun anew after once to twice this time, so that servers share the load."""

SILENCE_S = 150.0
"""A watch of which nothing comes for so long is dead: bookmarks come about every minute."""

SOON_S = 1.0
"""A watch that ends within this time was none."""

LONGEST_LINE = 64 << 20
MOST_NAMED = 20
"""Objects of a kind that are named because they cannot be read; the others are counted."""


Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class Seen(NamedTuple):
    """Is what a sink says of an object that it took."""

    identity: Hashable
    version: str


class SinkFull(InputError):  # noqa: N818 - reads as the sentence it makes
    """A sink takes no more: its file cannot be written."""


class Sink(Protocol):
    """Takes the objects of a cluster."""

    def apply(self, resource: Resource, type_: Any, raw: bytes | msgspec.Raw) -> Seen:
        """Takes an object that was added, modified or deleted.

        Raises:
            SinkFull: nothing more can be taken. Anything else is put down to the object.
        """

    def retain(self, resource: Resource, seen: set[Hashable]) -> None:
        """Takes a list to be complete: what is not among those seen is gone."""


@dataclass(slots=True)
class Backoff:
    """Waits longer after each failure, up to a limit, and never as long as others do."""

    random: random.Random
    first_s: float = 0.25
    most_s: float = 2.0
    failures: int = 0

    def next_s(self) -> float:
        """Gives the time to wait: between half and all of twice the last one."""
        bound_s = min(self.most_s, self.first_s * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return bound_s * (0.5 + self.random.random() / 2)

    def reset(self) -> None:
        """Begins anew after a success."""
        self.failures = 0


@dataclass(slots=True)
class Health:
    """Says how following one kind goes."""

    is_synced: bool = False  # a whole list was taken, and events since
    heard_s: float | None = None  # when something came last, by the clock
    lists: int = 0  # one, and one more for each version that was too old
    watches: int = 0
    failures: int = 0
    unreadable: int = 0  # objects
    left_out: dict[str, str] = field(default_factory=dict)  # some of those by name, and why
    problem: KubeError | None = None  # since nothing came; None: all is well

    @property
    def is_refused(self) -> bool:
        """Tells whether the cluster has no such objects or shows them to others only."""
        refused = self.problem is not None and (self.problem.is_absent or self.problem.is_forbidden)
        return refused and not self.is_synced


@dataclass(slots=True)
class Reflector:
    """Keeps a sink current with the objects of one kind."""

    client: KubeClient
    resource: Resource
    sink: Sink
    random: random.Random
    namespace: str = ""  # empty: all of them
    clock: Clock = time.monotonic
    sleep: Sleep = asyncio.sleep
    silence_s: float = SILENCE_S
    health: Health = field(default_factory=Health)
    changed: asyncio.Event = field(default_factory=asyncio.Event)  # of health
    _version: str = ""  # heard last; empty: a list is due
    _backoff: Backoff = field(init=False)
    _refusals: Backoff = field(init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.random)
        # Rights may be granted later, and kinds defined: ask again, but seldom.
        self._refusals = Backoff(self.random, first_s=1.0, most_s=300.0)

    async def run(self) -> None:
        """Follows for ever, or until the sink is full: all else may pass."""
        while True:
            begun_s = self.clock()
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except KubeError as error:
                wait_s = self._failed(error)
            except SinkFull:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, it must not end silently
                wait_s = self._failed(self._surprise(error))
            else:
                wait_s = 0.0 if self.clock() - begun_s > SOON_S else self._backoff.next_s()
            self.changed.set()
            if wait_s:
                await self.sleep(wait_s)

    def _failed(self, error: KubeError) -> float:
        health = self.health
        health.problem = error
        health.failures += 1
        if error.is_gone:
            self._version = ""
        if health.is_refused:
            return self._refusals.next_s()
        return max(error.wait_s, self._backoff.next_s())

    def _surprise(self, error: Exception) -> KubeError:
        what = excerpt(f"{type(error).__name__}: {error}", 200, quote="")
        return KubeError(
            f"{self.resource.plural} cannot be followed: {what}", where=self.client.url
        )

    def _reached(self) -> None:
        """Takes a watch that begins after a failure as news: bookmarks may take a minute."""
        if self.health.problem is not None:
            self.health.heard_s = self.clock()
            self.health.problem = None

    def _heard(self) -> None:
        self.health.heard_s = self.clock()
        self.health.problem = None
        self._backoff.reset()

    async def _list(self) -> None:
        try:
            version, seen = await self._pages({"limit": str(PAGE)})
        except KubeError as error:
            if not error.is_gone:
                raise
            # The list grew too old while its pages were read.
            version, seen = await self._pages({})
        self.sink.retain(self.resource, seen)
        self.health.lists += 1
        self.health.is_synced = True
        self._version = version
        self.changed.set()

    async def _pages(self, query: dict[str, str]) -> tuple[str, set[Hashable]]:
        seen: set[Hashable] = set()
        path, pages = self.resource.path(self.namespace), Pages(self.client.url)
        while True:
            page = _decoded(list_decoder, await self.client.get(path, query), self.client)
            for raw in page.items or ():
                seen.add(self._take("ADDED", raw).identity)
            self._heard()
            if not page.metadata.continue_:
                return page.metadata.resource_version, seen
            query = pages.after(query, page.metadata.continue_)

    def _take(self, type_: Literal["ADDED", "MODIFIED", "DELETED"], raw: msgspec.Raw) -> Seen:
        try:
            return self.sink.apply(self.resource, type_, raw)
        except SinkFull:
            raise
        except Exception as error:  # noqa: BLE001 - one odd object never costs the others
            health = self.health
            health.unreadable += 1
            if len(health.left_out) < MOST_NAMED:
                what = str(error) if isinstance(error, UNREADABLE) else repr(error)
                health.left_out.setdefault(name_of(raw), excerpt(what, 200, quote=""))
            return Seen(None, _version_of(raw))

    async def _watch(self) -> None:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(int(WATCH_S * (1 + self.random.random()))),
        }
        path = self.resource.path(self.namespace)
        async with self.client.stream(path, query, self.silence_s) as response:
            self.health.watches += 1
            self._reached()
            async for line in lines_of(response.content):
                self._take_event(line)

    def _take_event(self, line: bytes) -> None:
        event = _decoded(event_decoder, line, self.client)
        match event.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                version = self._take(event.type, event.object).version
            case "BOOKMARK":
                version = _version_of(event.object)
            case _:
                said = _decoded(status_decoder, event.object, self.client)
                raise KubeError(
                    f"the watch of {self.resource.plural} ended: {said.message}",
                    where=self.client.url,
                    status=said.code,
                )
        self._version = version or self._version
        self._heard()


def _version_of(raw: msgspec.Raw) -> str:
    try:
        return version_decoder.decode(raw).metadata.resource_version
    except UNREADABLE:
        return ""


def _decoded(decoder: msgspec.json.Decoder[Any], raw: Any, client: KubeClient) -> Any:
    try:
        return decode_around(decoder, raw)
    except UNREADABLE as error:
        text = f"the cluster's answer cannot be read: {excerpt(str(error), 200, quote='')}"
        raise KubeError(text, where=client.url) from error


async def lines_of(stream: StreamReader) -> AsyncIterator[bytes]:
    """Yields whole lines however long they are; what follows the last one is no line."""
    rest = bytearray()
    async for chunk in stream.iter_any():
        rest += chunk
        if b"\n" not in chunk:
            if len(rest) > LONGEST_LINE:
                raise KubeError(f"a line of a watch is longer than {LONGEST_LINE:,} bytes")
            continue
        *lines, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in lines:
            if line.strip():
                yield line
