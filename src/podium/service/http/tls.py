"""Accepts TLS connections with a bounded number of handshakes at a time.

The event loop's own server counts no connection before its handshake is done, so that callers who
say nothing would use up all file descriptors. Here one too many replaces the oldest handshake.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

_AT_ONCE = 100
"""Connections that are accepted before other work has its turn."""

_PAUSE_S = 0.2
"""How long nothing is accepted where the system has no file descriptor left."""


@dataclass(frozen=True, slots=True)
class HandshakeLimits:
    """What handshakes may cost."""

    most: int = 256  # at the same time
    limit_s: float = 5.0
    close_limit_s: float = 2.0  # to say goodbye


class TlsListener:
    """Accepts connections, and passes them on once they are encrypted."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext,
        limits: HandshakeLimits,
    ) -> None:
        self._listener, self._make, self._context = listener, make, context
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[asyncio.Task[None], socket.socket] = {}  # the oldest first
        self._is_open = True
        listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        """Accepts no more connections, and waits for no handshake."""
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._listener)
            while self._waiting:
                self._drop_oldest()

    async def wait_closed(self) -> None:
        """Returns at once: connections that are encrypted are the server's."""

    def _listen(self) -> None:
        if self._is_open:
            self._loop.add_reader(self._listener, self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                caller, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no file descriptor is left
                self._drop_oldest()
                self._loop.remove_reader(self._listener)
                self._loop.call_later(_PAUSE_S, self._listen)
                return
            caller.setblocking(False)
            if len(self._waiting) >= self._limits.most:
                self._drop_oldest()
            task = self._loop.create_task(self._encrypt(caller))
            self._waiting[task] = caller
            task.add_done_callback(lambda done: self._waiting.pop(done, None))

    async def _encrypt(self, caller: socket.socket) -> None:
        with suppress(OSError):  # the handshake fails, or the caller goes away
            await self._loop.connect_accepted_socket(
                self._make,
                caller,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.limit_s,
                ssl_shutdown_timeout=self._limits.close_limit_s,
            )

    def _drop_oldest(self) -> None:
        """Cuts off the oldest handshake; the event loop sees the end, and cleans up."""
        if self._waiting:
            caller = self._waiting.pop(next(iter(self._waiting)))
            with suppress(OSError):
                caller.shutdown(socket.SHUT_RDWR)
