"""Looks at the outline of a body before its contents are checked: how many entries stand where.

A check that describes every mistake takes seconds for what a caller sends in one, and all others
wait meanwhile. So what has many entries is counted first, which is quick.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import from_json, to_json

from podium.service.http.problem import Field, Problem

FEW = 500
"""Entries that are checked as they are, however wrong they may be."""

MOST_FIELDS = 128
"""In one object; none that a request takes has as many."""

_PARTS_OF_JOB = 4
"""Lists and objects that one entry of the largest request, a job, consists of."""

_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)  # one pass, whatever stands there


def outlined(raw: bytes, most: int) -> bytes:
    """Gives a body as it is to be checked: with a bounded number of entries, each named once.

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
