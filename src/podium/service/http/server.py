"""Runs the application: listens, and ends in order when it is told to."""

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
from podium.service.http.logs import SeldomWarning
from podium.service.http.protocol import Bounds, Wire
from podium.service.http.tls import Door, Handshake
from podium.settings import Serve

BACKLOG = 2048
KEEP_ALIVE_S = 75
HANDSHAKE_SHARE = 4
"""One of so many connections may be one that has yet to agree on encryption."""

RECEIVE_BYTES = 2**16
"""What the system takes in for a connection that is not read; it allows for twice as much."""

SPARE_FILES = 48
"""Files that are no connections: the store's, the logs', the listener."""

_TICKS_A_SECOND = 10


class Server(uvicorn.Server):
    """Ends in order: not ready, then no longer listening, then done with what has come."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service
        self.signal = 0  # that ended it
        self._warn_of_files = SeldomWarning(
            service.log, "no more files can be opened", "raise the limit of open files (ulimit -n)"
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begins the end; a second signal does not wait for requests."""
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
        """Ends too where the service cannot go on."""
        if counter % _TICKS_A_SECOND == 0:
            self._look_for_files()
        return await super().on_tick(counter) or self._service.components.failure is not None

    def _look_for_files(self) -> None:
        # Without one, the event loop turns callers away in silence.
        try:
            os.close(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            self._warn_of_files(problem=error.strerror)


class Config(uvicorn.Config):
    """Bounds handshakes, for which the server has no setting."""

    handshake = Handshake()

    def get_loop_factory(self) -> Callable[[], asyncio.AbstractEventLoop] | None:
        """Gives the maker of the event loop."""
        make = super().get_loop_factory()
        if make is None or self.ssl_certfile is None:
            return make
        return functools.partial(_hasty, make, self.handshake)


def _hasty(
    make: Callable[[], asyncio.AbstractEventLoop], bounds: Handshake
) -> asyncio.AbstractEventLoop:
    loop = make()
    if sys.platform == "win32":  # its loop cannot wait for a listener
        bounded = functools.partial(
            loop.create_server,
            ssl_handshake_timeout=bounds.limit_s,
            ssl_shutdown_timeout=bounds.farewell_s,
        )
        loop.create_server = bounded  # type: ignore[method-assign]
        return loop

    async def open_door(
        make: Callable[[], asyncio.BaseProtocol],
        *,
        sock: socket.socket,
        ssl: ssl.SSLContext,
        backlog: int,
    ) -> Door:
        del backlog  # it listens already
        return Door(sock, make, ssl, bounds)

    loop.create_server = open_door  # type: ignore
    return loop


def listen(serve: Serve) -> socket.socket:
    """Opens the socket.

    Raises:
        MissingError: the address is not to be had.
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
            f"nobody can listen here: {error.strerror}",
            where=f"{serve.host}:{serve.port}",
            hint="choose another --port (0: any free one) or --host",
        ) from error
    return listener


def run(service: Service, listener: socket.socket) -> int:
    """Serves until a signal comes; gives that signal.

    Raises:
        PodiumError: what was learned cannot be read from the store.
    """
    serve = service.settings.serve
    bounds = _bounds(service)
    config = Config(
        create_app(service),
        http=type("BoundedWire", (Wire,), {"bounds": bounds}),
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
    config.handshake = _handshake(bounds.max_connections)
    server = Server(config, service)
    server.run(sockets=[listener])
    if service.components.failure is not None:
        raise service.components.failure
    return server.signal


def _bounds(service: Service) -> Bounds:
    serve = service.settings.serve
    wanted = serve.max_connections
    shaking = _handshake(wanted).most if serve.tls_cert else 0
    room = max(_files(wanted + shaking + SPARE_FILES) - SPARE_FILES, 1)
    if shaking:
        room = max(room - _handshake(room).most, 1)
    room = min(room, wanted)
    if room < serve.max_connections:
        service.log.warning(
            "there is room for fewer connections than serve.max_connections",
            max_connections=room,
            hint="raise the limit of open files (ulimit -n)",
        )
    hint = "look who connects so often, or raise serve.max_connections"
    warn = SeldomWarning(service.log, "there are too many connections", hint)
    return Bounds(serve.read_limit_s, room, lambda count: warn(connections=count))


def _handshake(connections: int) -> Handshake:
    return Handshake(most=max(1, min(Handshake().most, connections // HANDSHAKE_SHARE)))


def _files(wanted: int) -> int:
    """Raises the limit of open files as far as wanted and allowed, and gives it."""
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
