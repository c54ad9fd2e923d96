"""Brings what other threads promise to the event loop; all that comes together wakes it once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


class TooLate(Exception):  # noqa: N818 - reads as the sentence it makes
    """A promise was not kept in time."""


class Arrivals:
    """Waits for promises of other threads.

    A store keeps the promises of a whole transaction at once. To wake the loop for each of them
    takes longer than to answer it.
    """

    def __init__(self) -> None:
        self._arrived: deque[Callable[[], None]] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_called = False  # the loop, and it has not come yet

    async def of(self, promised: Future[T], limit_s: float) -> T:
        """Returns what was promised; whoever stops waiting cancels nothing.

        Raises:
            TooLate: the limit is over.
            Exception: whatever the promise ended with.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:  # one that ended may never have come
            self._loop, self._is_called = loop, False
        waiter: asyncio.Future[T] = loop.create_future()
        timer = loop.call_later(limit_s, _give_up, waiter)
        promised.add_done_callback(partial(self._arrive, waiter))
        try:
            return await waiter
        finally:
            timer.cancel()

    def _arrive(self, waiter: asyncio.Future[Any], promised: Future[Any]) -> None:
        """Notes a promise that was kept, from whichever thread kept it."""
        self._arrived.append(partial(_settle, waiter, promised))
        loop = waiter.get_loop()
        if not self._is_called and not loop.is_closed():
            self._is_called = True
            loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        self._is_called = False  # before the last look: what comes after it calls again
        while self._arrived:
            self._arrived.popleft()()


def _settle(waiter: asyncio.Future[T], promised: Future[T]) -> None:
    if waiter.done():
        return
    if promised.cancelled():
        waiter.cancel()
    elif (error := promised.exception()) is not None:
        waiter.set_exception(error)
    else:
        waiter.set_result(promised.result())


def _give_up(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_exception(TooLate())
