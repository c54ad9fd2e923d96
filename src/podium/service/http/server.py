"""Runs the application: listens, and shuts down gracefully on a signal."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn

from podium.errors import MissingError
from podium.service.components import Service
from podium.service.http.app import create_app
from podium.service.http.credentials import check_tls
from podium.service.http.logs import RateLimitedWarning
from podium.service.http.protocol import Connection, ConnectionLimits
from podium.service.http.tls import HandshakeLimits, TlsListener
from podium.settings import Serve

BACKLOG = 2048
KEEP_ALIVE_S = 75
HANDSHAKE_SHARE = 4
"""One in this many connections may be in its handshake."""

RECEIVE_BYTES = 2**16
"""Bytes that the system buffers for an unread connection; it may take twice as much."""

SPARE_FILES = 48
"""File descriptors other than connections: the store's, the logs', the listener."""

_TICKS_A_SECOND = 10


class Server(uvicorn.Server):
    """Shuts down gracefully: not ready, then not listening, then done with accepted requests."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.signal = 0  # that ended it
        self._warn_of_descriptors = RateLimitedWarning(
            service.log, "no more files can be opened", "raise the limit of open files (ulimit -n)"
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins to shut down; a second signal does not wait for requests."""
        del frame
        if self.signal:
            self.force_exit = sig == signal.SIGINT
            self.should_exit = True
            return
        self.signal = sig
        self._service.components.is_draining = True
        delay_s = self._service.settings.serve.drain_delay_s
        if delay_s and sig == signal.SIGTERM:
            asyncio.get_running_loop().call_later(delay_s, self._stop)
        else:
            self._stop()

    def _stop(self) -> None:
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Also ends when a component cannot start."""
        if counter % _TICKS_A_SECOND == 0:
            self._check_descriptors()
        return await super().on_tick(counter) or self._service.components.failure is not None

    def _check_descriptors(self) -> None:
        # Without one, the event loop refuses connections silently.
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            self._warn_of_descriptors(problem=error.strerror)


class Config(uvicorn.Config):
    """Limits handshakes, for which the server has no setting."""

    handshake = HandshakeLimits()

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
        """Returns the factory of the event loop."""
        make = super().get_loop_factory()
        if make is None or self.ssl_certfile is None:
            return make
        return functools.partial(_loop_with_limits, make, self.handshake)


def _loop_with_limits(
    make: Callable[[], asyncio.AbstractEventLoop], limits: HandshakeLimits
) -> asyncio.AbstractEventLoop:
    loop = make()
    if sys.platform == "win32":  # its loop cannot wait for a listener
        bounded = functools.partial(
            loop.create_server,
            ssl_handshake_timeout=limits.limit_s,
            ssl_shutdown_timeout=limits.close_limit_s,
        )
        loop.create_server = bounded  # type: ignore[method-assign]
        return loop

    async def create_server(
        make: Callable[[], asyncio.BaseProtocol],
        *,
        sock: socket.socket,
        ssl: ssl.SSLContext,
        backlog: int,
    ) -> TlsListener:
        del backlog  # it listens already
        return TlsListener(sock, make, ssl, limits)

    loop.create_server = create_server  # type: ignore
    return loop


def listen(serve: Serve) -> socket.socket:
    """Opens the socket.

    Raises:
        MissingError: the address cannot be used.
    """
    family = socket.AF_INET6 if ":" in serve.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        listener.bind((serve.host, serve.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise MissingError(
            f"cannot listen on {serve.host}:{serve.port}: {error.strerror}",
            where="serve.host, serve.port",
            hint="choose another --port (0: any free one) or --host",
        ) from error
    return listener


def run(service: Service, listener: socket.socket) -> int:
    """Serves until a signal comes, and returns that signal.

    Raises:
        Exception: a component could not start, or broke while it ran.
    """
    server = server_of(service)
    server.run(sockets=[listener])
    failure = service.components.failure or service.components.breakdown()
    if failure is not None:
        raise failure
    return server.signal


def server_of(service: Service) -> Server:
    """Builds the server of a service as its settings say."""
    serve = service.settings.serve
    limits = _connection_limits(service)
    app = create_app(service)
    own = {"limits": limits, "at_once": app.middleware_app.at_once}
    config = Config(
        app,
        http=type("BoundedConnection", (Connection,), own),
        ws="none",
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
    config.handshake = _handshake(limits.max_connections)
    return Server(config, service)


def _connection_limits(service: Service) -> ConnectionLimits:
    serve = service.settings.serve
    wanted = serve.max_connections
    shaking = _handshake(wanted).most if serve.tls_cert else 0
    room = max(_descriptors(wanted + shaking + SPARE_FILES) - SPARE_FILES, 1)
    if shaking:
        room = max(room - _handshake(room).most, 1)
    room = min(room, wanted)
    if room < serve.max_connections:
        service.log.warning(
            "serve.max_connections is more than open files allow",
            max_connections=room,
            hint="raise the limit of open files (ulimit -n)",
        )
    hint = "check which clients open so many, or raise serve.max_connections"
    warn = RateLimitedWarning(service.log, "too many connections", hint)
    return ConnectionLimits(serve.read_limit_s, room, lambda count: warn(connections=count))


def _handshake(connections: int) -> HandshakeLimits:
    return HandshakeLimits(most=max(1, min(HandshakeLimits().most, connections // HANDSHAKE_SHARE)))


def _descriptors(wanted: int) -> int:
    """Raises the limit of open files as far as wanted and allowed, and returns it."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return wanted
    raised = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    return raised
