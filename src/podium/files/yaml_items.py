"""Parses YAML into plain values, one object of a list at a time, with their lines.

Nothing is kept of what was handed on, so the dump of a large cluster takes no more memory than its
largest object. Bounds are those of `yaml_tree`, which remembers positions and is slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from podium.errors import InputError
from podium.files.json_items import Piece, repeated_key
from podium.files.yaml_tree import (
    CHARACTERS_PER_PART,
    COPIES_PER_PART,
    FREE_COPIES,
    FREE_PARTS,
    MAX_DEPTH,
    NULL_TAG,
    NULLS,
    ORDINARY,
    Feed,
    Text,
    yaml_events,
)

_CHARACTERS_PER_COPY = 32
_NO_KEY = object()


def parse_yaml_items(stream: Text, path: Path) -> Iterator[Piece]:
    """Yields the documents of a stream, and before each the elements of its `items`.

    A document that is a list yields its elements. Texts stay as they are written.
    """
    feed = Feed(stream, path)
    builder = _Builder(path)
    for event in yaml_events(feed):
        piece = builder.take(event)
        if piece is not None:
            yield piece


class _Builder:
    """Builds plain values from the events of a parser; hands on what is complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin(0)

    def _begin(self, start: int) -> None:
        self.start = start  # of the document, in characters
        self.anchors: dict[str, tuple[Any, int]] = {}  # values and their weights
        self.open: list[tuple[Any, Any, int, str | None, int]] = []  # containers around this one
        self.container: Any = None
        self.key: Any = _NO_KEY  # of the mapping, for which a value is awaited
        self.line = 0  # on which the container begins
        self.anchor: str | None = None  # of the container
        self.before = 0  # weight when the container began
        self.written = self.copied = self.weight = 0

    def take(self, event: Any) -> Piece | None:
        """Adds an event; returns a document or an element of a list when it is complete."""
        kind = event.__class__
        if kind is yaml.ScalarEvent:
            return self._scalar(event)
        if kind is yaml.MappingStartEvent:
            self._open(event, {})
        elif kind is yaml.SequenceStartEvent:
            self._open(event, [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            return self._close()
        elif kind is yaml.AliasEvent:
            return self._alias(event)
        elif kind is yaml.DocumentStartEvent:
            self._begin(event.start_mark.index)
        return None

    def _scalar(self, event: Any) -> Piece | None:
        self._count(event)
        value = event.value
        self.weight += 1 + len(value) // _CHARACTERS_PER_COPY
        if event.tag == NULL_TAG or (value in NULLS and event.implicit[0] and not event.style):
            value = None
        if event.anchor is not None:
            self.anchors[event.anchor] = value, 1 + len(event.value) // _CHARACTERS_PER_COPY
        if self.key is _NO_KEY and self.container.__class__ is dict:
            self._take_key(value or "", event)
            return None
        return self._place(value, event.start_mark.line + 1)

    def _take_key(self, key: str, event: Any) -> None:
        if key in self.container:
            line = event.start_mark.line + 1
            raise repeated_key(self.path, key, line, is_outermost=not self.open)
        self.key = key

    def _open(self, event: Any, container: Any) -> None:
        self._count(event)
        line = event.start_mark.line + 1
        self._require_value(line)
        if len(self.open) + 1 >= MAX_DEPTH:
            raise self._too_deep(line)
        if self.container is not None:
            frame = (self.container, self.key, self.line, self.anchor, self.before)
            self.open.append(frame)
        self.container, self.key, self.line = container, _NO_KEY, line
        self.anchor, self.before = event.anchor, self.weight
        self.weight += 1
        if event.anchor is not None:
            self.anchors[event.anchor] = container, -1  # it may not stand inside itself

    def _close(self) -> Piece | None:
        value, line = self.container, self.line
        if self.anchor is not None:
            self.anchors[self.anchor] = value, self.weight - self.before
        if value.__class__ is dict and "<<" in value:
            value = _merged(value)
            if self.anchor is not None:
                self.anchors[self.anchor] = value, self.weight - self.before
        if not self.open:
            self.container = None
            # The elements of a list were handed on one by one.
            return None if value.__class__ is list else (line, value, False)
        self.container, self.key, self.line, self.anchor, self.before = self.open.pop()
        return self._place(value, line)

    def _place(self, value: Any, line: int) -> Piece | None:
        container = self.container
        if container.__class__ is dict:
            container[self.key] = value
            self.key = _NO_KEY
        elif container is None:
            return None if value is None else (line, value, False)
        elif not self.open:
            return line, value, False
        elif len(self.open) == 1 and self.open[0][1] == "items":
            return line, value, True
        else:
            container.append(value)
        return None

    def _alias(self, event: Any) -> Piece | None:
        line = event.start_mark.line + 1
        if event.anchor not in self.anchors:
            raise InputError.at(self.path, f"no anchor is named &{event.anchor}", line=line)
        value, weight = self.anchors[event.anchor]
        if weight < 0:
            message = f"*{event.anchor} stands inside the part that it names"
            raise InputError.at(self.path, message, line=line)
        self.copied += weight
        self.weight += weight
        if self.copied > FREE_COPIES + COPIES_PER_PART * self.written:
            message = "its aliases stand for far more than is written"
            hint = "write out what is repeated, or split the file"
            raise InputError.at(self.path, message, line=line, hint=hint)
        if self.key is _NO_KEY and self.container.__class__ is dict:
            self._require_key(value, line)
            self._take_key(value or "", event)
            return None
        if len(self.open) + 1 + _height(value) >= MAX_DEPTH:
            raise self._too_deep(line)
        return self._place(value, line)

    def _count(self, event: Any) -> None:
        self.written += 1
        if self.written > FREE_PARTS:
            length = event.start_mark.index - self.start
            if CHARACTERS_PER_PART * self.written > length:
                message = f"a document has more than {FREE_PARTS:,} parts of almost nothing"
                line = event.start_mark.line + 1
                raise InputError.at(self.path, message, line=line, hint=ORDINARY)

    def _require_value(self, line: int) -> None:
        if self.key is _NO_KEY and self.container.__class__ is dict:
            self._require_key(None, line, is_container=True)

    def _require_key(self, value: Any, line: int, *, is_container: bool = False) -> None:
        if is_container or isinstance(value, dict | list):
            message = "a key is expected to be a string, not a list or a mapping"
            raise InputError.at(self.path, message, line=line)

    def _too_deep(self, line: int) -> InputError:
        message = f"is nested more than {MAX_DEPTH} levels deep"
        return InputError.at(self.path, message, line=line, hint=ORDINARY)


def _height(value: Any) -> int:
    """Counts the levels below a value, which are bounded by what aliases may stand for."""
    level, height = [value] if isinstance(value, dict | list) else [], 0
    while level:
        parts = [each.values() if isinstance(each, dict) else each for each in level]
        children = [each for part in parts for each in part]
        height += bool(children)
        level = [each for each in children if isinstance(each, dict | list)]
    return height


def _merged(written: dict[str, Any]) -> dict[str, Any]:
    """Adds what a merge key names, where the mapping does not say it itself."""
    merge = written["<<"]
    if not isinstance(merge, dict | list):
        return written
    merged: dict[str, Any] = {}
    for part in reversed(merge if isinstance(merge, list) else [merge]):
        merged.update(part if isinstance(part, dict) else {})
    return merged | {key: value for key, value in written.items() if key != "<<"}
