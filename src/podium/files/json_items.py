"""Parses JSON, one object of a list at a time, with the line on which each begins."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from podium.errors import InputError
from podium.files.json_text import MAX_DEPTH, TOO_DEEP, TOO_LONG, is_too_deep

_HINT = "correct the file there; it may be truncated"
_SPACE = re.compile(r"[ \t\r\n]*")


def parse_json(text: str, path: Path) -> Iterator[tuple[int, Any]]:
    """Yields the line and value of every JSON value in the text; an array yields its elements.

    An object with an `items` array keeps it as a list of (line, value) pairs.
    """
    reader = _JsonReader(text, path)
    try:
        yield from reader.values()
    except json.JSONDecodeError as error:
        message = f"is not valid JSON: {error.msg}"
        raise InputError.at(path, message, line=error.lineno, hint=_HINT) from error
    except RecursionError as error:
        message = f"is not valid JSON: {TOO_DEEP}"
        raise InputError.at(path, message, line=reader.line, hint=_HINT) from error
    except ValueError as error:
        # int() refuses numbers with thousands of digits.
        message = f"is not valid JSON: {TOO_LONG}"
        raise InputError.at(path, message, line=reader.line, hint=_HINT) from error


class _JsonReader:
    """Walks over the outermost levels of a text; the C decoder reads what is inside."""

    def __init__(self, text: str, path: Path) -> None:
        self.text = text
        self.path = path
        self.at = 0
        self.line = 1
        self._decode = json.JSONDecoder().raw_decode

    def values(self) -> Iterator[tuple[int, Any]]:
        """Yields every value of the text."""
        while self._peek():
            if self._peek() == "[":
                yield from self._elements(self._object)
            else:
                yield self.line, self._object()

    def _object(self) -> Any:
        if self._peek() != "{":
            return self._value()
        members: dict[str, Any] = {}
        self._step("{")
        while self._peek() != "}":
            if members:
                self._step(",")
            key = self._value()
            if not isinstance(key, str):
                raise json.JSONDecodeError("a key in double quotes is expected", self.text, self.at)
            self._step(":")
            is_list = key == "items" and self._peek() == "["
            members[key] = list(self._elements(self._value)) if is_list else self._value()
        self._step("}")
        return members

    def _elements(self, read: Callable[[], Any]) -> Iterator[tuple[int, Any]]:
        self._step("[")
        is_first = True
        while self._peek() != "]":
            if not is_first:
                self._step(",")
                self._peek()
            is_first = False
            line = self.line
            yield line, read()
        self._step("]")

    def _value(self) -> Any:
        self._peek()
        value, end = self._decode(self.text, self.at)
        if self._may_be_deep(end) and is_too_deep(value):
            raise RecursionError
        self._move(end)
        return value

    def _may_be_deep(self, end: int) -> bool:
        # Counting brackets is much faster than walking, and rules depth out for most objects.
        count = self.text.count
        return count("{", self.at, end) + count("[", self.at, end) > MAX_DEPTH

    def _peek(self) -> str:
        match = _SPACE.match(self.text, self.at)
        if match is not None:
            self._move(match.end())
        return self.text[self.at : self.at + 1]

    def _step(self, character: str) -> None:
        if self._peek() != character:
            raise json.JSONDecodeError(f'"{character}" is expected', self.text, self.at)
        self._move(self.at + 1)

    def _move(self, to: int) -> None:
        self.line += self.text.count("\n", self.at, to)
        self.at = to
