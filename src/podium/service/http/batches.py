"""Works on batches one after another, beside the loop that answers everybody.

A batch may take seconds. Those whose callers are gone are not begun, and end where they have begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import TypeVar, overload

from podium.service.http.body import Gone
from podium.service.http.daemon_executor import DaemonExecutor

MOST_BATCHES = 32
"""Batches that are worked on or wait for it; more are put off."""

LOOK_S = 0.2
"""Seconds between looks whether a caller is still there."""

T = TypeVar("T")


class Wanted(Sequence[T]):
    """Is a list that ends the work of whoever walks over it, once nobody wants the result."""

    def __init__(self, entries: Sequence[T], is_unwanted: Event) -> None:
        self._entries = entries
        self._is_unwanted = is_unwanted

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self._entries[place]

    def __iter__(self) -> Iterator[T]:
        """Gives the entries.

        Raises:
            Gone: nobody wants the result any more.
        """
        for each in self._entries:
            if self._is_unwanted.is_set():
                raise Gone
            yield each


class Batches:
    """Works on batches in their order, in one thread."""

    def __init__(self) -> None:
        self._executor = DaemonExecutor("podium-batches")

    async def work(self, work: Callable[[Event], T], is_gone: Callable[[], bool]) -> T:
        """Returns what work on a batch gives; the event tells the work that nobody wants it.

        Raises:
            Gone: the caller hung up.
        """
        is_unwanted = Event()
        promised = self._executor.submit(work, is_unwanted)
        arrived = asyncio.wrap_future(promised)
        while not arrived.done():
            await asyncio.wait([arrived], timeout=LOOK_S)
            if not arrived.done() and is_gone():
                is_unwanted.set()
                promised.cancel()  # where it has not begun
        if arrived.cancelled():
            raise Gone
        return arrived.result()

    def close(self) -> None:
        """Begins no more work."""
        self._executor.shutdown(wait=False)
