"""Speaks HTTP: what is no request is answered in the one shape, slow ones are not waited for."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from podium.service.problem import Problem


class Wire(HttpToolsProtocol):
    """Bounds how long the head of a request may take; bodies are bounded where they are read."""

    limit_s = 10.0
    _is_in_head = True
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Waits for a first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(self.limit_s, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Waits no longer."""
        self._cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes what came; a head that is not whole yet has a limited time."""
        super().data_received(data)
        if not self._is_in_head:
            self._cancel()
        elif self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(self.limit_s, self._give_up)

    def on_message_begin(self) -> None:
        """Notes that a head began."""
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Notes that a head is whole."""
        self._is_in_head = False
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Says that what came is no request."""
        del msg
        self._refuse(Problem(400, "this is no HTTP request", hint="speak HTTP/1.1"))

    def _give_up(self) -> None:
        self._late = None
        problem = f"the request did not arrive within {self.limit_s:g} s"
        self._refuse(Problem(408, problem, hint="send it again, at once"))

    def _refuse(self, problem: Problem) -> None:
        body = problem.response().body
        status = HTTPStatus(problem.status)
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        self.transport.close()

    def _cancel(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
