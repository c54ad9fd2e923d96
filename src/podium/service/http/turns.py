"""Begins work by turns, so that a crowd does not keep a new caller waiting."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial


class Turns:
    """Begins one piece of work in each round of the event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, loop: asyncio.AbstractEventLoop, begin: Callable[[], None]) -> None:
        """Queues a call behind those that are already waiting."""
        self._waiting.append(begin)
        if len(self._waiting) == 1:
            loop.call_soon(self._next, loop)

    async def take(self) -> None:
        """Waits for a turn."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self.wait(loop, partial(_give, turn))
        await turn

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        begin = self._waiting.popleft()
        if self._waiting:
            loop.call_soon(self._next, loop)
        begin()


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():  # whoever waited may have been cancelled
        turn.set_result(None)
