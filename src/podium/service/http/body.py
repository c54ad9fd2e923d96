"""Reads the bodies of requests: JSON of a bounded size that arrives in bounded time.

A model that describes every mistake takes seconds for what a caller sends in one, and all others
wait meanwhile. So what has many entries is counted before it is checked, which is quick.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json
from starlette.types import Message, Receive, Scope

from podium.service.http.budget import BodyBudget, Share
from podium.service.http.problem import Field, Problem
from podium.service.http.turns import Turns

FEW_BYTES = 2**12
"""Of a body that is worked on at once; what a larger one asks for takes its turn."""

FEW = 500
"""Entries up to which a body is checked as it is, however wrong it may be."""

MOST_FIELDS = 128
"""Most fields in one object; no request has as many."""

_PARTS_OF_JOB = 4
"""Lists and objects that one entry of the largest request, a job, consists of."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # one pass, whatever stands there

_PLAIN = b"application/json"
# The rest of a body that is not read would be taken for the next request.
_CLOSE = {"connection": "close"}


IS_GONE = "podium.is_gone"
"""The extension of a request's scope that tells whether its caller has hung up."""


def is_gone(scope: Scope) -> bool:
    """Tells whether the caller of a request has hung up; asked on the event loop."""
    tell = scope.get("extensions", {}).get(IS_GONE)
    return tell is not None and bool(tell())


class Gone(Exception):  # noqa: N818 - an event, nothing that anybody did wrong
    """The caller went away before its request was answered."""


@dataclass(frozen=True, slots=True)
class BodyReader:
    """Reads bodies within limits."""

    max_bytes: int
    limit_s: float
    budget: BodyBudget = field(default_factory=BodyBudget)  # shared by all readers of a service
    turns: Turns = field(default_factory=Turns)  # likewise

    def share(self) -> Share:
        """Begins what a request takes of the budget; whoever asks for it gives it back."""
        return Share(self.budget)

    async def read(self, scope: Scope, receive: Receive, share: Share) -> bytes:
        """Returns the body of a request, once it is its turn to be worked on.

        Raises:
            Problem: it is not declared as JSON, is too large, takes too long, or there is no room.
            Gone: the caller hung up.
        """
        self._check(scope["headers"])
        body = await self._in_time(receive, share)
        if len(body) > FEW_BYTES:
            await self.turns.take()
            if is_gone(scope):
                raise Gone
        return body

    async def _in_time(self, receive: Receive, share: Share) -> bytes:
        try:
            async with asyncio.timeout(self.limit_s):
                message = await receive()
                if message["type"] == "http.request" and not message.get("more_body"):
                    body: bytes = message["body"]
                    self._check_length(len(body))
                    share.take(len(body))
                    return body
                return await self._rest(message, receive, share)
        except TimeoutError:
            raise Problem(
                408,
                f"the body did not arrive within {self.limit_s:g} s",
                hint="send the whole request without delay",
                headers=_CLOSE,
            ) from None

    async def _rest(self, message: Message, receive: Receive, share: Share) -> bytes:
        body = bytearray()
        while True:
            if message["type"] != "http.request":
                raise Gone
            piece = message.get("body", b"")
            self._check_length(len(body) + len(piece))
            share.take(len(piece))
            body += piece
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
                    hint="send it uncompressed, without Content-Encoding",
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
                f"the body is larger than {self.max_bytes:,} bytes",
                hint="send less at a time, or raise serve.max_body_bytes",
                headers=_CLOSE,
            )


def _is_json(kind: bytes) -> bool:
    media, *parameters = (part.strip() for part in kind.lower().split(b";"))
    is_kind = media == _PLAIN or (media.startswith(b"application/") and media.endswith(b"+json"))
    texts = {parameter.replace(b'"', b"") for parameter in parameters if parameter}
    return is_kind and texts <= {b"charset=utf-8", b"charset=utf8", b"charset=us-ascii"}


def outlined(raw: bytes, most: int) -> bytes:
    """Returns a body as it is to be checked: with a bounded number of entries, each named once.

    Raises:
        Problem: a list has more than `most` entries, or there are too many lists or fields.
    """
    if raw.count(b",") < FEW:
        return raw
    _count_parts(raw, _PARTS_OF_JOB * most + FEW)
    try:
        body = from_json(raw)
    except ValueError:  # the check itself says best what is wrong
        return raw
    _count(body, most)
    # A field that is repeated in an object was counted once, and is checked once.
    return to_json(body)


def _count_parts(raw: bytes, most: int) -> None:
    """Counts lists and objects without making them, which is what takes long."""
    if _brackets(raw) > most and (count := _brackets(_TEXT.sub(b"", raw))) > most:
        raise Problem(
            413,
            f"the body has {count:,} lists and objects, more than {most:,}",
            hint="send less at a time, or raise serve.max_batch",
        )


def _brackets(raw: bytes) -> int:
    return raw.count(b"[") + raw.count(b"{")


def _count(body: Any, most: int) -> None:
    ahead = [("", body)]
    while ahead:
        name, each = ahead.pop()
        if isinstance(each, list):
            if len(each) > most:
                raise too_long(name, len(each), most)
            ahead += [(name, entry) for entry in each if isinstance(entry, list | dict)]
        elif isinstance(each, dict):
            if len(each) > MOST_FIELDS:
                raise _too_many(name, len(each))
            ahead += [(key, entry) for key, entry in each.items() if isinstance(entry, list | dict)]


def too_long(name: str, count: int, most: int) -> Problem:
    """Refuses a list."""
    return Problem(
        413,
        f"{name[:60] or 'the body'} has {count:,} entries, more than {most:,}",
        hint="send less at a time, or raise serve.max_batch",
        fields=[Field(name[:60], "the list is too long")],
    )


def _too_many(name: str, count: int) -> Problem:
    return Problem(
        422,
        f"{name[:60] or 'the body'} has {count:,} fields, more than {MOST_FIELDS}",
        hint="GET /docs shows what every request takes",
        fields=[Field(name[:60], "the object has too many fields")],
    )
