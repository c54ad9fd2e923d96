"""Reads the bodies of requests: JSON of a bounded size that arrives in bounded time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from starlette.types import Message, Receive, Scope

from podium.service.http.problem import Problem

_PLAIN = b"application/json"
# The rest of a body that is not read would be taken for the next request.
_CLOSE = {"connection": "close"}


class Gone(Exception):  # noqa: N818 - an event, nothing that anybody did wrong
    """The caller went away before its request was whole."""


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies within limits."""

    max_bytes: int
    limit_s: float

    async def read(self, scope: Scope, receive: Receive) -> bytes:
        """Gives the body of a request.

        Raises:
            Problem: it is not declared as JSON, is too large or takes too long.
            Gone: the caller hung up.
        """
        self._check(scope["headers"])
        try:
            async with asyncio.timeout(self.limit_s):
                message = await receive()
                if message["type"] == "http.request" and not message.get("more_body"):
                    body: bytes = message["body"]
                    self._check_length(len(body))
                    return body
                return await self._rest(message, receive)
        except TimeoutError:
            raise Problem(
                408,
                f"the body did not arrive within {self.limit_s:g} s",
                hint="send it again, at once",
                headers=_CLOSE,
            ) from None

    async def _rest(self, message: Message, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            if message["type"] != "http.request":
                raise Gone
            body += message.get("body", b"")
            self._check_length(len(body))
            if not message.get("more_body"):
                return bytes(body)
            message = await receive()

    def _check(self, headers: list[tuple[bytes, bytes]]) -> None:
        kind = b""
        for name, value in headers:
            if name == b"content-type":
                kind = value
            elif name == b"content-length" and value.isdigit() and len(value) < 20:
                self._check_length(int(value))
            elif name == b"content-encoding" and value.lower() != b"identity":
                raise Problem(
                    415,
                    "the body is compressed",
                    hint="send it as it is, without Content-Encoding",
                    headers=_CLOSE,
                )
        if kind != _PLAIN and not _is_json(kind):
            raise Problem(
                415,
                "the body is not declared as JSON in UTF-8",
                hint="send Content-Type: application/json",
                headers=_CLOSE,
            )

    def _check_length(self, length: int) -> None:
        if length > self.max_bytes:
            raise Problem(
                413,
                f"the body has more than {self.max_bytes:,} bytes",
                hint="send less at a time, or raise serve.max_body_bytes",
                headers=_CLOSE,
            )


def _is_json(kind: bytes) -> bool:
    media, *parameters = (part.strip() for part in kind.lower().split(b";"))
    is_kind = media == _PLAIN or (media.startswith(b"application/") and media.endswith(b"+json"))
    texts = {parameter.replace(b'"', b"") for parameter in parameters if parameter}
    return is_kind and texts <= {b"charset=utf-8", b"charset=utf8", b"charset=us-ascii"}
