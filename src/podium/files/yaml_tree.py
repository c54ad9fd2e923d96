"""Parses YAML into trees that remember where each part stands in the text.

PyYAML's own composer recurses in C and crashes the interpreter on deep nesting, turns
unquoted texts into dates and numbers, and forgets positions. This one is built on the same
parser's events: any depth up to a limit, texts as they were written, lines for messages, and
offsets so that a file can be edited in place.

Everything is counted before it is built. Aliases let a kilobyte stand for gigabytes: what they
stand for counts as if it were written out, and may be ten times what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TextIO

from podium.errors import InputError
from podium.files.excerpt import excerpt
from podium.files.json_items import repeated_key

MAX_DEPTH = 100
"""Nesting beyond which a document is refused; Kubernetes objects stay below 30."""

LONGEST_VALUE = 16 * 1024 * 1024
"""Characters of one text, key or comment."""

FREE_PARTS = 200_000
CHARACTERS_PER_PART = 5
"""A document has at most so many keys and values, or one for so many of its characters."""

FREE_COPIES = 100_000
COPIES_PER_PART = 10
"""Aliases may stand for so many parts, and for so many times the parts that are written."""

ORDINARY = "check that this is the file you meant"
_INVALID_HINT = (
    "correct the file there, it may be truncated; YAML indents with spaces and ends quotes and "
    "brackets"
)
_CHARACTERS_PER_COPY = 32  # of a text that an alias stands for: it counts by its length
_LONGEST_NUMBER = 100

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TAGS = "tag:yaml.org,2002:"
NULL_TAG, _TEXT_TAG = f"{_TAGS}null", f"{_TAGS}str"
_BY_LOOKS = "?"


@dataclass(slots=True, eq=False)
class YamlNode:
    """One scalar, list or mapping of a document."""

    kind: str  # scalar, list or mapping
    line: int  # from 1
    column: int  # from 0
    start: int  # offset in characters from the start of the file
    end: int = 0
    text: str | None = None  # a scalar's text, None for null
    is_flow: bool = False  # written with brackets
    is_block_text: bool = False  # written with | or >
    is_alias: bool = False  # stands for a part that is written elsewhere
    is_open: bool = False  # still being parsed
    height: int = 0  # levels below it, those behind aliases included
    weight: int = 1  # parts in it, those behind aliases included
    items: list[YamlNode] = field(default_factory=list)  # a mapping's are key, value, key, value
    tag: str = ""  # what a scalar stands for, where that may be something else than its text
    value_memo: Any = None

    def get(self, key: str) -> YamlNode | None:
        """Finds the value of a key that is written out in a mapping."""
        return next((value for name, value in self.pairs() if name.text == key), None)

    def pairs(self) -> list[tuple[YamlNode, YamlNode]]:
        """Lists the keys and values of a mapping."""
        if self.kind != "mapping":
            return []
        return list(zip(self.items[::2], self.items[1::2], strict=True))

    def value(self) -> Any:
        """Returns plain dicts, lists, texts and None; shared parts stay shared."""
        if self.kind == "scalar":
            return self.text
        if self.value_memo is None:
            if self.kind == "list":
                self.value_memo = [item.value() for item in self.items]
            else:
                self.value_memo = self._mapping_value()
        return self.value_memo

    def typed_value(self, path: Path) -> Any:
        """Returns plain values with numbers and booleans as YAML means them; nothing is shared."""
        if self.kind == "list":
            return [item.typed_value(path) for item in self.items]
        if self.kind == "mapping":
            return _merged(self.pairs(), lambda node: node.typed_value(path))
        return _typed(self, path)

    def _mapping_value(self) -> dict[str, Any]:
        return _merged(self.pairs(), YamlNode.value)


def _merged(
    pairs: list[tuple[YamlNode, YamlNode]], value_of: Callable[[YamlNode], Any]
) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    written: dict[str, Any] = {}
    for key, value in pairs:
        if key.text == "<<" and value.kind != "scalar":
            sources = value.items if value.kind == "list" else [value]
            for source in reversed(sources):
                part = value_of(source)
                merged.update(part if isinstance(part, dict) else {})
        else:
            written[key.text or ""] = value_of(value)
    return merged | written


def _typed(node: YamlNode, path: Path) -> Any:
    import yaml

    if not node.tag or node.text is None or len(node.text) > _LONGEST_NUMBER:
        return node.text
    loader: Any = yaml.SafeLoader("")
    tag = node.tag
    if tag == _BY_LOOKS:
        tag = loader.resolve(yaml.ScalarNode, node.text, (True, False))
    try:
        return loader.construct_object(yaml.ScalarNode(tag, node.text))
    except (yaml.YAMLError, ValueError) as error:
        message = f"{excerpt(node.text)} cannot be read as {excerpt(tag.removeprefix(_TAGS))}"
        raise InputError.at(path, message, line=node.line) from error


def parse_yaml(stream: TextIO, path: Path) -> Iterator[YamlNode]:
    """Yields the documents of a stream one by one as trees, empty ones left out."""
    composer = _Composer(path)
    for event in yaml_events(Feed(stream, path)):
        root = composer.take(event)
        if root is not None:
            yield root


def yaml_events(feed: Feed) -> Iterator[Any]:
    """Yields the events of the parser; the one door to YAML."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    reader: Any = feed
    try:
        for event in yaml.parse(reader, Loader=loader):
            feed.waiting = 0
            yield event
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = mark.line + 1 if mark is not None else 0
        message = f"is not valid YAML: {what}"
        raise InputError.at(feed.path, message, line=line, hint=_INVALID_HINT) from error


class Text(Protocol):
    """Gives the text of a file in parts."""

    def read(self, size: int = -1, /) -> str:
        """Reads the next part, empty at the end."""


class Feed:
    """Feeds the parser as long as it turns what it reads into something."""

    def __init__(self, stream: Text, path: Path) -> None:
        self.stream = stream
        self.path = path
        self.waiting = 0  # characters since the last event

    def read(self, size: int = -1) -> str:
        """Reads for the parser."""
        chunk = self.stream.read(size)
        self.waiting += len(chunk)
        if self.waiting > LONGEST_VALUE:
            message = f"a text is longer than {LONGEST_VALUE:,} characters"
            raise InputError.at(self.path, message, hint=ORDINARY)
        return chunk


class _Composer:
    """Builds one tree at a time from parser events."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.stack: list[YamlNode] = []
        self.anchors: dict[str, YamlNode] = {}
        self.root: YamlNode | None = None
        self.start = 0  # of the document
        self.written = 0  # parts of the document
        self.copied = 0  # parts that its aliases stand for

    def take(self, event: Any) -> YamlNode | None:
        """Adds an event; returns the tree when its document ends."""
        kind = type(event).__name__
        if kind == "ScalarEvent":
            self._place(_scalar(event), event.anchor)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            self._open(event, "mapping" if kind == "MappingStartEvent" else "list")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            self._close(event)
        elif kind == "AliasEvent":
            self._place(self._anchored(event), None)
        elif kind == "DocumentStartEvent":
            self.anchors, self.root, self.start = {}, None, event.start_mark.index
            self.written = self.copied = 0
        elif kind == "DocumentEndEvent":
            root, self.root = self.root, None
            return None if root is None or (root.kind == "scalar" and root.text is None) else root
        return None

    def _open(self, event: Any, kind: str) -> None:
        mark = event.start_mark
        node = YamlNode(kind, mark.line + 1, mark.column, mark.index, is_open=True)
        node.is_flow = bool(event.flow_style)
        self._place(node, event.anchor)
        self.stack.append(node)

    def _close(self, event: Any) -> None:
        node = self.stack.pop()
        self._refuse_repeated(node)
        node.end, node.is_open = event.end_mark.index, False
        if self.stack:
            self.stack[-1].height = max(self.stack[-1].height, node.height + 1)
            self.stack[-1].weight += node.weight

    def _refuse_repeated(self, node: YamlNode) -> None:
        keys = [] if node.kind == "list" else node.items[::2]
        if len({key.text for key in keys}) == len(keys):
            return
        seen: set[str | None] = set()
        for key in keys:
            if key.text in seen:
                raise repeated_key(self.path, key.text or "", key.line)
            seen.add(key.text)

    def _count(self, node: YamlNode) -> None:
        if node.is_alias:
            self.copied += node.weight
            if self.copied > FREE_COPIES + COPIES_PER_PART * self.written:
                message = "its aliases stand for far more than is written"
                hint = "write out what is repeated, or split the file"
                raise InputError.at(self.path, message, line=node.line, hint=hint)
            return
        self.written += 1
        length = node.start - self.start
        if self.written > FREE_PARTS and CHARACTERS_PER_PART * self.written > length:
            message = f"a document has more than {FREE_PARTS:,} parts of almost nothing"
            raise InputError.at(self.path, message, line=node.line, hint=ORDINARY)

    def _place(self, node: YamlNode, anchor: str | None) -> None:
        self._count(node)
        if anchor is not None:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        if len(self.stack) + node.height >= MAX_DEPTH:
            message = f"is nested more than {MAX_DEPTH} levels deep"
            raise InputError.at(self.path, message, line=node.line, hint=ORDINARY)
        parent = self.stack[-1]
        parent.height = max(parent.height, node.height + 1)
        parent.weight += 0 if node.is_open else node.weight  # what is open counts when it ends
        is_key = parent.kind == "mapping" and len(parent.items) % 2 == 0
        if is_key and node.kind != "scalar":
            message = "a key is expected to be a string, not a list or a mapping"
            raise InputError.at(self.path, message, line=node.line)
        parent.items.append(node)

    def _anchored(self, event: Any) -> YamlNode:
        node = self.anchors.get(event.anchor)
        start, end = event.start_mark, event.end_mark
        line = start.line + 1
        if node is None:
            raise InputError.at(self.path, f"no anchor is named &{event.anchor}", line=line)
        if node.is_open:
            message = f"*{event.anchor} stands inside the part that it names"
            raise InputError.at(self.path, message, line=line)
        return replace(
            node, line=line, column=start.column, start=start.index, end=end.index, is_alias=True
        )


def _scalar(event: Any) -> YamlNode:
    start, end = event.start_mark, event.end_mark
    node = YamlNode("scalar", start.line + 1, start.column, start.index, end.index)
    is_plain = event.implicit[0] and not event.style
    is_null = event.tag == NULL_TAG or (is_plain and event.value in NULLS)
    node.text = None if is_null else event.value
    node.weight = 1 + len(event.value) // _CHARACTERS_PER_COPY
    node.tag = _tag(event, is_plain)
    node.is_block_text = event.style in ("|", ">")
    return node


def _tag(event: Any, is_plain: bool) -> str:
    if event.tag not in (None, "!", _TEXT_TAG):
        return str(event.tag)
    return _BY_LOOKS if is_plain and event.tag is None else ""
