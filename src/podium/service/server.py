"""Runs the application: listens, and ends in order when it is told to."""

from __future__ import annotations

import asyncio
import signal
import socket
from types import FrameType

import uvicorn

from podium.errors import MissingError
from podium.service.app import create_app
from podium.service.credentials import check_tls
from podium.service.parts import Parts
from podium.service.phase import DRAINING
from podium.service.wire import Wire
from podium.settings import Serve

BACKLOG = 2048
KEEP_ALIVE_S = 75


class Server(uvicorn.Server):
    """Ends in order: not ready, then no longer listening, then done with what has come."""

    def __init__(self, config: uvicorn.Config, parts: Parts) -> None:
        super().__init__(config)
        self._parts = parts
        self.signal = 0  # that ended it

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the end; a second signal does not wait for requests."""
        del frame
        if self.signal:
            self.force_exit = sig == signal.SIGINT
            self.should_exit = True
            return
        self.signal = sig
        self._parts.phase.name = DRAINING
        delay_s = self._parts.settings.serve.drain_delay_s
        if delay_s and sig == signal.SIGTERM:
            asyncio.get_running_loop().call_later(delay_s, self._stop)
        else:
            self._stop()

    def _stop(self) -> None:
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Ends too where the service cannot go on."""
        return await super().on_tick(counter) or self._parts.failure is not None


def listen(serve: Serve) -> socket.socket:
    """Opens the socket.

    Raises:
        MissingError: the address is not to be had.
    """
    family = socket.AF_INET6 if ":" in serve.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((serve.host, serve.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise MissingError(
            f"nobody can listen here: {error.strerror}",
            where=f"{serve.host}:{serve.port}",
            hint="choose another --port (0: any free one) or --host",
        ) from error
    return listener


def run(parts: Parts, listener: socket.socket) -> int:
    """Serves until a signal comes; gives that signal.

    Raises:
        PodiumError: what was learned cannot be read from the store.
    """
    serve = parts.settings.serve
    bounded = type("BoundedWire", (Wire,), {"limit_s": serve.read_limit_s})
    config = uvicorn.Config(
        create_app(parts),
        http=bounded,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=max(1, round(serve.drain_limit_s)),
        ssl_certfile=serve.tls_cert if check_tls(serve) else None,
        ssl_keyfile=serve.tls_key,
        lifespan="on",
    )
    server = Server(config, parts)
    server.run(sockets=[listener])
    if parts.failure is not None:
        raise parts.failure
    return server.signal
