"""Parses JSON, one object of a list at a time, with the line on which each begins."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from podium.errors import InputError
from podium.files.excerpt import excerpt
from podium.files.json_text import MAX_DEPTH, TOO_DEEP, TOO_LONG, is_too_deep

_HINT = "correct the file there; it may be truncated"
_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]')

Piece = tuple[int, Any, bool]
"""A line, the value that begins there, and whether it is one of the `items` of what follows."""


class _RepeatedError(ValueError):
    """An object has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def repeated_key(path: Path, key: str, line: int, *, is_outermost: bool = False) -> InputError:
    """Refuses a mapping with a key that is there twice: one of the values would be lost."""
    message = f"the key `{excerpt(key)[1:-1]}` is there twice"
    hint = "keep one of them"
    if is_outermost:
        hint = "if these are two outputs, put a line with --- between them; else keep one of them"
    return InputError.at(path, message, line=line, hint=hint)


def parse_json(text: str, path: Path) -> Iterator[Piece]:
    """Yields every JSON value in the text, and before each the elements of its `items`.

    An array yields its elements.
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
    except _RepeatedError as error:
        raise repeated_key(path, error.key, reader.line_of_repeated()) from error
    except ValueError as error:
        # int() refuses numbers with thousands of digits.
        message = f"is not valid JSON: {TOO_LONG}"
        raise InputError.at(path, message, line=reader.line, hint=_HINT) from error


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _RepeatedError(counts.most_common(1)[0][0])
    return found


class _JsonReader:
    """Walks over the outermost levels of a text; the C decoder reads what is inside."""

    def __init__(self, text: str, path: Path) -> None:
        self.text = text
        self.path = path
        self.at = 0
        self.line = 1
        self._decode = json.JSONDecoder(object_pairs_hook=_object_of).raw_decode

    def values(self) -> Iterator[Piece]:
        """Yields every value of the text."""
        while self._peek():
            if self._peek() == "[":
                for _ in self._elements():
                    yield from self._object()
            else:
                yield from self._object()

    def _object(self) -> Iterator[Piece]:
        line = self.line
        if self._peek() != "{":
            yield line, self._value(), False
            return
        members: dict[str, Any] = {}
        self._step("{")
        while self._peek() != "}":
            if members:
                self._step(",")
            key = self._key(members)
            self._step(":")
            if key == "items" and self._peek() == "[":
                members[key] = []
                for at in self._elements():
                    yield at, self._value(), True
            else:
                members[key] = self._value()
        self._step("}")
        yield line, members, False

    def _key(self, known: Mapping[str, Any]) -> str:
        self._peek()
        line, key = self.line, self._value()
        if not isinstance(key, str):
            raise json.JSONDecodeError("a key in double quotes is expected", self.text, self.at)
        if key in known:
            raise repeated_key(self.path, key, line, is_outermost=True)
        return key

    def _elements(self) -> Iterator[int]:
        """Yields the line of each element, which is to be read before the next."""
        self._step("[")
        is_first = True
        while self._peek() != "]":
            if not is_first:
                self._step(",")
                self._peek()
            is_first = False
            yield self.line
        self._step("]")

    def line_of_repeated(self) -> int:
        """Finds the first key that an object has twice, from where the value begins."""
        keys: list[set[str]] = []
        last = ""
        for token in _TOKEN.finditer(self.text, self.at):
            if token[0] in ("{", "["):
                keys.append(set())
            elif token[0] in ("}", "]"):
                keys.pop()
            elif token[0] == ":":
                if last in keys[-1]:
                    return self.line + self.text.count("\n", self.at, token.start())
                keys[-1].add(last)
            else:
                last = token[0]
        return self.line

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
