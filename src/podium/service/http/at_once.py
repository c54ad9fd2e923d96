"""Answers requests of one kind between two events of the socket, past the layers of ASGI.

Who waits for each answer before asking again, as kube-scheduler does, waits for those layers too:
they take longer than a score. Whatever is unusual about a request is left to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.service.http.budget import BodyBudget, Share
from podium.service.http.own_names import OwnNames, is_loopback

MOST_BYTES = 2**20
"""Of a body; the names of 5,000 nodes are a tenth of it."""

_KNOWN = {b"host", b"user-agent", b"accept", b"accept-encoding", b"connection", b"content-length"}
_OK = b"HTTP/1.1 200 OK\r\n"

Pairs = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class QuickRoute:
    """Is a POST route whose answer is there as soon as the body is."""

    answer: Callable[[bytes], bytes]
    is_loopback_only: bool = False


@dataclass(frozen=True, slots=True)
class Quick:
    """Is a request that is answered once its body is complete."""

    path: str
    length: int  # of the body
    answer: Callable[[bytes], bytes]
    started_s: float
    share: Share  # of the bytes of all bodies


@dataclass(slots=True)
class AtOnce:
    """Knows such routes, and counts their answers like all others."""

    new_id: Callable[[bytes], str]
    finish: Callable[[str, Mapping[str, Any], str, float], None]  # route, scope, id, start
    own_names: OwnNames | None = None  # others are left to the application, which refuses them
    budget: BodyBudget = field(default_factory=BodyBudget)
    routes: dict[str, QuickRoute] = field(default_factory=dict)

    def take(self, scope: Mapping[str, Any]) -> Quick | None:
        """Decides whether a request is answered here, from its head; None: by the application."""
        route = self.routes.get(scope["path"])
        if route is None or scope["method"] != "POST" or scope["http_version"] != "1.1":
            return None
        length = _length(scope["headers"])
        client = scope["client"]
        is_stranger = route.is_loopback_only and not (client and is_loopback(client[0]))
        if length is None or is_stranger or not self._is_asked(scope):
            return None
        share = Share(self.budget)
        return Quick(scope["path"], length, route.answer, time.perf_counter(), share)

    def _is_asked(self, scope: Mapping[str, Any]) -> bool:
        names = self.own_names
        return names is None or names.has(dict(scope["headers"]).get(b"host", b""))

    def answered(
        self, quick: Quick, body: bytes, scope: Mapping[str, Any], more: Pairs, *, is_last: bool
    ) -> bytes:
        """Writes a whole answer; raises whatever the route raises."""
        made, name = quick.answer(body), self.new_id(b"")
        lines = b"".join(b"%s: %s\r\n" % pair for pair in more)
        ending = b"connection: close\r\n\r\n" if is_last else b"\r\n"
        self.finish(quick.path, scope, name, quick.started_s)
        return (
            b"%s%scontent-type: application/json\r\ncontent-length: %d\r\nx-request-id: %s\r\n%s%s"
            % (_OK, lines, len(made), name.encode(), ending, made)
        )


def _length(headers: Pairs) -> int | None:
    """Gives the length of a body that is plain JSON, where the head says nothing unusual."""
    kind, length = b"", b""
    for name, value in headers:
        if name == b"content-type":
            kind = value
        elif name == b"content-length":
            length = value
        elif name not in _KNOWN:
            return None
    if kind != b"application/json" or not length.isdigit() or len(length) > len(str(MOST_BYTES)):
        return None
    return int(length) if int(length) <= MOST_BYTES else None
