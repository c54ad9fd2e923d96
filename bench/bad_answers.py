"""Stands between kube-scheduler and Podium, and spoils what Podium answers."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Spoil = Callable[["Handler", bytes], None]
MOST_INT = 2**63 - 1


class Front(ThreadingHTTPServer):
    """Passes requests on, and answers on, unless it is told to spoil them."""

    daemon_threads = True
    spoil: Spoil | None = None

    def __init__(self, url: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.target = urlsplit(url)

    @property
    def url(self) -> str:
        """Gives its own address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """Says nothing: callers hang up on those who spoil."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: Front

    def do_POST(self) -> None:
        """Asks Podium, and gives its answer, or a spoilt one."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        host = self.server.target.netloc
        asked = http.client.HTTPConnection(host, timeout=30)
        asked.request("POST", self.path, body, {"Content-Type": "application/json"})
        answer = asked.getresponse().read()
        asked.close()
        (self.server.spoil or Handler.give)(self, answer)

    def give(self, answer: bytes, status: int = 200, length: int | None = None) -> None:
        """Sends an answer, which may claim to be longer than it is."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer) if length is None else length))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


def rescored(score: object, host: str | None = None, times: int = 1) -> Spoil:
    """Gives every node of an answer another score, or another name."""

    def spoil(handler: Handler, answer: bytes) -> None:
        rows = json.loads(answer) or [{"Host": "node-00", "Score": 1000}]
        changed = [{"Host": host or each["Host"], "Score": score} for each in rows]
        handler.give(json.dumps(changed * times).encode())

    return spoil


def late(delay_s: float) -> Spoil:
    """Keeps answers back."""

    def spoil(handler: Handler, answer: bytes) -> None:
        time.sleep(delay_s)
        handler.give(answer)

    return spoil


def dripping(handler: Handler, answer: bytes) -> None:
    """Sends a byte every 50 ms."""
    handler.give(b"", length=len(answer) or 40)
    with suppress(OSError):
        for byte in answer or bytes(40):
            handler.wfile.write(bytes([byte]))
            handler.wfile.flush()
            time.sleep(0.05)


def hung_up(handler: Handler, _: bytes) -> None:
    """Closes the connection without a word."""
    handler.close_connection = True
    handler.connection.close()


def halved(handler: Handler, answer: bytes) -> None:
    """Breaks off in the middle."""
    handler.give(answer[: len(answer) // 2], length=len(answer) + 10)
    hung_up(handler, answer)


BAD_ANSWERS: dict[str, Spoil] = {
    "after 150 ms": late(0.15),
    "after 400 ms": late(0.4),
    "byte by byte": dripping,
    "HTML": lambda handler, _: handler.give(b"<html>bad gateway</html>"),
    "status 500": lambda handler, answer: handler.give(answer, 500),
    "fractions": rescored(0.5),
    "the largest integer": rescored(MOST_INT),
    "negative": rescored(-5),
    "unknown nodes": rescored(1000, "nobody"),
    "each node 1,000 times": rescored(1000, times=1000),
    "null": lambda handler, _: handler.give(b"null"),
    "none, closed": hung_up,
    "half": halved,
    "8 MB": lambda handler, _: handler.give(b"[" + b" " * 2**23 + b"]"),
}


@contextmanager
def front(url: str) -> Iterator[Front]:
    """Stands before a service for as long as the block."""
    with Front(url) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
