"""Streams the objects of YAML and JSON files, lists taken apart, each with its line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from podium.errors import InputError
from podium.files.bounded import MOST_BYTES
from podium.files.json_items import Piece, parse_json
from podium.files.text_file import format_suffix, is_gzip, reading
from podium.files.yaml_items import parse_yaml_items
from podium.traces.fields import shown
from podium.traces.kubernetes.printed import Printed
from podium.traces.notes import TRUNCATED

YAML_SUFFIXES = frozenset({".yaml", ".yml"})
SUFFIXES = YAML_SUFFIXES | {".json"}
"""Suffixes of the files that hold objects; `.gz` may follow."""

_HEAD_CHARACTERS = 1 << 12
_OBJECTS = re.compile(r"^(?:- )?(?:apiVersion|kind|items|metadata):", re.MULTILINE)

RECORDING = ".jsonl"
"""The suffix of a file to which `podium kube record` adds lines."""


@dataclass(frozen=True, slots=True)
class Document:
    """Holds one object and the line on which it begins."""

    value: Mapping[str, Any]
    line: int
    notes: tuple[str, ...] = ()  # on the whole file, beside its first object

    @property
    def kind(self) -> str:
        """Names the kind of the object, empty where it has none."""
        kind = self.value.get("kind")
        return kind if isinstance(kind, str) else ""


Follow = Callable[[str, int, int], None]
"""Is told the name of a file, and how many of its MiB are read, of how many."""

MIB = 1 << 20
LONG_BYTES = 8 * MIB
"""A file from which on reading it takes long enough to speak of it."""


def read_documents(path: Path, follow: Follow | None = None) -> Iterator[Document]:
    """Yields every object of a file; those in a List come one by one."""
    if format_suffix(path) == RECORDING:
        from podium.traces.kubernetes.recording import read_recording

        yield from read_recording(path)
        return
    is_named = format_suffix(path) in SUFFIXES
    head = "" if is_named else first_text(path)
    # Dumps in one line are common; the parsers have bounds of their own.
    with reading(path, longest_line=MOST_BYTES) as stream:
        if format_suffix(path) == ".json" or (head and head.lstrip()[:1] in ("{", "[")):
            pieces = parse_json(_Followed(stream, path, follow).read(), path)
        else:
            pieces = parse_yaml_items(Printed(_Followed(stream, path, follow)), path)
        yield from _documents(pieces, path)


def first_text(path: Path) -> str:
    """Gives how the text of a file begins, which tells its format where its name does not."""
    with reading(path, longest_line=MOST_BYTES) as stream:
        return stream.read(_HEAD_CHARACTERS)


def looks_like_objects(head: str) -> bool:
    """Tells the beginning of JSON, or of YAML that holds objects, from that of other files."""
    return head.lstrip()[:1] in ("{", "[") or _OBJECTS.search(head) is not None


class _Followed:
    """Reads a text, and tells how far it is."""

    def __init__(self, stream: TextIO, path: Path, follow: Follow | None) -> None:
        self._stream = stream
        self._name = path.name
        self._size = 0 if is_gzip(path) or not path.is_file() else path.stat().st_size
        self._follow = follow if self._size >= LONG_BYTES else None
        self._done = 0

    def read(self, size: int = -1) -> str:
        """Reads the next part; nearly all of a dump is ASCII, a byte a character."""
        self._tell()
        chunk = self._stream.read(size)
        self._done += len(chunk)
        self._tell()
        return chunk

    def _tell(self) -> None:
        if self._follow is not None:
            self._follow(self._name, min(self._done, self._size) // MIB, self._size // MIB)


def is_list_kind(kind: Any) -> bool:
    """Tells whether objects of this kind are lists of others: List, NodeList, PodList."""
    return isinstance(kind, str) and kind.endswith("List")


def _documents(pieces: Iterable[Piece], path: Path) -> Iterator[Document]:
    """Takes lists apart; members without a kind wait until that of their list is known."""
    waiting: list[tuple[int, Any]] = []
    for line, value, is_item in pieces:
        if is_item and isinstance(value, Mapping) and "kind" in value:
            yield _document(value, line, path)
        elif is_item:
            waiting.append((line, value))
        else:
            yield from _parent(_document(value, line, path), waiting, path)
            waiting = []


def _parent(document: Document, members: list[tuple[int, Any]], path: Path) -> Iterator[Document]:
    if not is_list_kind(document.kind) or not isinstance(document.value.get("items"), list):
        yield document
        return
    for line, value in members:
        yield _member(value, line, document, path)


def _member(value: Any, line: int, parent: Document, path: Path) -> Document:
    document = _document(value, line, path)
    if "kind" in document.value or parent.kind == "List":
        return document
    # The API server leaves version and kind out of the members of a NodeList or PodList.
    known = {"kind": parent.kind.removesuffix("List")}
    if "apiVersion" in parent.value:
        known["apiVersion"] = parent.value["apiVersion"]
    return Document({**known, **document.value}, line)


def _document(value: Any, line: int, path: Path) -> Document:
    if not isinstance(value, Mapping):
        raise InputError.at(
            path,
            f"an object with a kind is expected, not {shown(value)}"
            if value is not None
            else f"the object is empty: {TRUNCATED}",
            line=line,
            hint="give Node and Pod objects, as `kubectl get nodes,pods -A -o yaml` prints them",
        )
    return Document(value, line)
