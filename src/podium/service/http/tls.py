"""Lets callers in who have yet to agree on encryption: a bounded number at a time.

The event loop's own server counts nobody before the handshake is done, so that callers who say
nothing would use up all files. Here one too many takes the place of who has taken the longest.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

_AT_ONCE = 100
"""Callers that are let in before others have their turn."""

_PAUSE_S = 0.2
"""How long nobody is let in where the system has no room for one more."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """Says what agreeing on encryption may cost."""

    most: int = 256  # at the same time
    limit_s: float = 5.0
    farewell_s: float = 2.0  # to agree on the end of it


class Door:
    """Accepts connections, and hands them on once they are encrypted."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        bounds: Handshake,
    ) -> None:
        self._listener, self._make, self._context = listener, make, context
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Task[None], socket.socket] = {}  # the oldest first
        self._is_open = True
        listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Lets nobody in any more, and waits for no handshake."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._listener)
            while self._waiting:
                self._turn_away()

    async def wait_closed(self) -> None:
        """Waits for nothing: connections that are encrypted are the server's."""

    def _listen(self) -> None:
        if self._is_open:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                caller, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # there is no file left
                self._turn_away()
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE_S, self._listen)
                return
            caller.setblocking(False)
            if len(self._waiting) >= self._bounds.most:
                self._turn_away()
            task = self._loop.create_task(self._encrypt(caller))
            self._waiting[task] = caller
            task.add_done_callback(lambda done: self._waiting.pop(done, None))

    async def _encrypt(self, caller: socket.socket) -> None:
        with suppress(OSError):  # whoever does not manage to, or goes away
            await self._loop.connect_accepted_socket(
                self._make,
                caller,
                ssl=self._context,
                ssl_handshake_timeout=self._bounds.limit_s,
                ssl_shutdown_timeout=self._bounds.farewell_s,
            )

    def _turn_away(self) -> None:
        """Cuts off who has taken the longest; the event loop sees the end, and lets go of it."""
        if self._waiting:
            caller = self._waiting.pop(next(iter(self._waiting)))
            with suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR)
