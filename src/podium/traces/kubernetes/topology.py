"""Writes rack and server labels on the Node objects of a manifest file, in order.

YAML is edited in place: whatever is not a label of a node is copied letter by letter,
comments included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from podium.errors import InputError, UsageError
from podium.files.bounded import MOST_BYTES
from podium.files.json_text import JsonError, parse_value
from podium.files.text_file import format_suffix, reading, writing
from podium.files.yaml_tree import YamlNode, parse_yaml
from podium.traces.kubernetes.documents import SUFFIXES, YAML_SUFFIXES, is_list_kind
from podium.traces.kubernetes.keys import RACK_LABELS, SERVER_LABEL

RACK_LABEL = RACK_LABELS[0]


def write_topology(source: Path, target: Path, servers_per_rack: int) -> int:
    """Copies a manifest file with `rack` and `server` labels on its nodes; counts the nodes."""
    if servers_per_rack < 1:
        raise UsageError(
            f"a rack cannot hold {servers_per_rack} servers",
            hint="give --servers-per-rack 1 or more",
        )
    _check_formats(source, target)
    racks = _Racks(servers_per_rack)
    with writing(target) as output, reading(source, longest_line=MOST_BYTES) as stream:
        if format_suffix(source) in YAML_SUFFIXES:
            _copy_yaml(stream, output, source, racks)
        else:
            _copy_json(stream, output, source, racks)
        if racks.count == 0:
            raise InputError.at(source, "no Node was found", hint="give a file with Node objects")
    return racks.count


def _check_formats(source: Path, target: Path) -> None:
    for path in (source, target):
        if format_suffix(path) not in SUFFIXES:
            raise UsageError(
                "labels are written on Kubernetes manifests: .yaml, .yml or .json, also with .gz",
                where=str(path),
                hint="turn other formats into manifests with `podium traces convert`",
            )
    if (format_suffix(source) in YAML_SUFFIXES) != (format_suffix(target) in YAML_SUFFIXES):
        raise UsageError(
            f"{source.name} and {target.name} are of different formats",
            hint="use the same ending for both, or `podium traces convert` first",
        )


@dataclass(slots=True)
class _Racks:
    """Hands out the labels of one node after the other."""

    servers_per_rack: int
    count: int = 0

    def next_labels(self) -> dict[str, str]:
        rack, server = divmod(self.count, self.servers_per_rack)
        self.count += 1
        return {RACK_LABEL: f"rack-{rack}", SERVER_LABEL: f"srv-{server}"}


class _Window:
    """Lets the parser read a stream while keeping the text that is not yet written."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.text = ""
        self.start = 0  # offset of the kept text in the file

    def read(self, size: int = -1) -> str:
        """Reads for the parser."""
        chunk = self.stream.read(size)
        self.text += chunk
        return chunk

    def take(self, end: int) -> str:
        """Gives up the text before an offset."""
        cut = max(0, end - self.start)
        taken, self.text = self.text[:cut], self.text[cut:]
        self.start += len(taken)
        return taken


def _copy_yaml(stream: TextIO, output: TextIO, source: Path, racks: _Racks) -> None:
    window: Any = _Window(stream)
    for root in parse_yaml(window, source):
        for node in _nodes(root):
            for start, end, text in sorted(_edits(node, racks.next_labels(), source)):
                output.write(window.take(start))
                window.take(end)
                output.write(text)
        output.write(window.take(root.end))
    output.write(window.text)


def _nodes(root: YamlNode) -> Iterator[YamlNode]:
    """Finds the Node objects of a document, in the order in which they are written."""
    if root.kind == "list":
        yield from (item for item in root.items if _kind(item) == "Node")
        return
    kind = _kind(root)
    items = root.get("items")
    if kind == "Node":
        yield root
    elif is_list_kind(kind) and items is not None and items.kind == "list":
        default = kind.removesuffix("List")
        yield from (item for item in items.items if (_kind(item) or default) == "Node")


def _kind(node: YamlNode) -> str:
    kind = node.get("kind")
    return (kind.text or "") if kind is not None else ""


def _edits(node: YamlNode, labels: dict[str, str], source: Path) -> Iterator[tuple[int, int, str]]:
    metadata = node.get("metadata")
    if metadata is None or metadata.kind != "mapping" or not metadata.items:
        message = "metadata: a mapping with the node's name is expected"
        raise InputError.at(source, message, line=node.line)
    present = metadata.get("labels")
    for part in (node, metadata, present):
        if part is not None and part.is_alias:
            message = "one node cannot be labelled where an alias shares the labels of several"
            hint = "write the labels out for every node"
            raise InputError.at(source, message, line=part.line, hint=hint)
    if present is None:
        _check_first_key(metadata, source)
        yield _insertion(metadata, "labels", labels)
    elif present.kind == "mapping" and present.items:
        _check_first_key(present, source)
        yield from _label_edits(present, labels, source)
    elif present.kind == "list" or present.text is not None:
        message = "metadata.labels: a mapping is expected"
        raise InputError.at(source, message, line=present.line)
    else:
        yield _replacement(present, _flow(labels))


def _check_first_key(parent: YamlNode, source: Path) -> None:
    first = parent.items[0]
    if not parent.is_flow and parent.line == first.line and parent.start != first.start:
        message = "a key written as `name:` is expected, not with a question mark"
        raise InputError.at(source, message, line=first.line)


def _label_edits(
    present: YamlNode, labels: dict[str, str], source: Path
) -> Iterator[tuple[int, int, str]]:
    missing = {}
    for key, text in labels.items():
        value = present.get(key)
        if value is None:
            missing[key] = text
        elif value.kind != "scalar":
            message = f"metadata.labels.{key}: a string is expected"
            raise InputError.at(source, message, line=value.line)
        elif value.text != text:
            yield _replacement(value, text)
    if missing:
        first = present.items[0]
        glue = ", " if present.is_flow else "\n" + " " * first.column
        yield first.start, first.start, "".join(f"{k}: {v}{glue}" for k, v in missing.items())


def _insertion(parent: YamlNode, key: str, labels: dict[str, str]) -> tuple[int, int, str]:
    first = parent.items[0]
    if parent.is_flow:
        return first.start, first.start, f"{key}: {_flow(labels)}, "
    indent = "\n" + " " * first.column
    lines = "".join(f"{indent}  {name}: {text}" for name, text in labels.items())
    return first.start, first.start, f"{key}:{lines}{indent}"


def _replacement(node: YamlNode, text: str) -> tuple[int, int, str]:
    if node.start == node.end:
        text = " " + text
    return node.start, node.end, text + ("\n" if node.is_block_text else "")


def _flow(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {text}" for key, text in labels.items()) + "}"


def _copy_json(stream: TextIO, output: TextIO, source: Path, racks: _Racks) -> None:
    try:
        value = parse_value(stream.read())
    except JsonError as error:
        raise InputError.at(source, f"is not valid JSON: {error}", line=error.line) from error
    for node in _json_nodes(value):
        metadata = node.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if not isinstance(metadata, dict) or not isinstance(labels, dict | None):
            raise InputError.at(source, "metadata and its labels are expected to be mappings")
        metadata["labels"] = (labels or {}) | racks.next_labels()
    json.dump(value, output, indent=4, ensure_ascii=False)
    output.write("\n")


def _json_nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        items, default = value, ""
    elif isinstance(value, dict) and is_list_kind(value.get("kind")):
        items = value.get("items") or []
        default = value["kind"].removesuffix("List")
    else:
        items, default = [value], ""
    for item in items:
        if isinstance(item, dict) and item.get("kind", default) == "Node":
            yield item
