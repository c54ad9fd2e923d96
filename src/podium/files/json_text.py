"""Reads one JSON value from a text; whatever is wrong with it is one kind of error."""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 100
"""Nesting beyond which a value is refused; Kubernetes objects stay below 30."""

TOO_DEEP = "it is nested too deeply"
TOO_LONG = "a number has too many digits"
_NESTING = (dict, list)
_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[][{}]', re.DOTALL)


class JsonError(ValueError):
    """The text is not JSON that can be read."""

    def __init__(self, problem: str, line: int = 0) -> None:
        super().__init__(problem)
        self.line = line


def parse_value(text: str) -> Any:
    """Reads a JSON value.

    Raises:
        JsonError: the text is no JSON, is nested too deeply, or holds a number of thousands of
            digits.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise JsonError(error.msg, error.lineno) from error
    except RecursionError as error:
        raise JsonError(TOO_DEEP) from error
    except ValueError as error:
        raise JsonError(TOO_LONG) from error
    if is_too_deep(value):
        raise JsonError(TOO_DEEP)
    return value


def is_too_deep(value: Any) -> bool:
    """Returns whether lists and objects are nested more than they may be."""
    level = [value] if type(value) in _NESTING else []
    for _ in range(MAX_DEPTH):
        children = (part.values() if type(part) is dict else part for part in level)
        level = [each for group in children for each in group if type(each) in _NESTING]
        if not level:
            return False
    return True


def may_be_deep(raw: bytes) -> bool:
    """Returns whether there are so many brackets that it takes a walk to rule depth out."""
    return raw.count(b"{") + raw.count(b"[") > MAX_DEPTH


def without_depths(raw: bytes, depth: int) -> bytes:
    """Puts null for whatever is nested more than so deeply, so that the rest can be read.

    >>> without_depths(b'{"a": [[1]], "b": "[["}', 2)
    b'{"a": [null], "b": "[["}'
    """
    kept, level, start = [], 0, 0
    for match in _BRACKET.finditer(raw):
        bracket = match[0]
        if bracket in (b"{", b"["):
            level += 1
            if level == depth + 1:
                kept.append(raw[start : match.start()])
        elif bracket in (b"}", b"]"):
            if level == depth + 1:
                kept.append(b"null")
                start = match.end()
            level -= 1
    return b"".join([*kept, raw[start:]]) if level <= depth else raw
