"""Stands between a client and a server, and cuts or silences their connections."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)


class TcpProxy:
    """Forwards bytes both ways for as long as it is not told otherwise."""

    def __init__(self, target: int) -> None:
        self.is_open = True  # closed, it drops whoever comes
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._is_silent = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def cut(self) -> None:
        """Breaks all connections at once, as when a load balancer is replaced."""
        with self._lock:
            broken, self._sockets = self._sockets, set()
        for each in broken:
            with suppress(OSError):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def silence(self) -> None:
        """Lets connections be, but forwards nothing more on those that are open now."""
        self._is_silent.set()
        self._is_silent = threading.Event()

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if not self.is_open:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            with self._lock:
                self._sockets |= {near, far}
            is_silent = self._is_silent
            for one, other in ((near, far), (far, near)):
                pump = threading.Thread(target=_pump, args=(one, other, is_silent), daemon=True)
                pump.start()


def _pump(one: socket.socket, other: socket.socket, is_silent: threading.Event) -> None:
    with suppress(OSError):
        while data := one.recv(_CHUNK):
            if not is_silent.is_set():
                other.sendall(data)
    for each in (one, other):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def tcp_proxy(target: int) -> Iterator[TcpProxy]:
    """Runs a proxy before a port for as long as the block."""
    proxy = TcpProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
