"""Reads what kube-scheduler asks of an extender, and writes the answers it expects.

The Go types (k8s.io/kube-scheduler/extender/v1) have no JSON tags: their fields are capitalised,
whereas the pods and nodes inside are ordinary objects of the API. A score that is not a whole
number fails to decode there, so that scores are written as digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import msgspec

from podium.files.excerpt import excerpt
from podium.kube.objects import UNREADABLE
from podium.service.extender.scale import MOST

MOST_NODES = 20_000
"""Nodes that one request may name; Kubernetes is made for clusters of 5,000."""

MOST_NAME_BYTES = 256 * MOST_NODES
MOST_PARTS = 200 * MOST_NODES
"""Lists and objects of all nodes together, and braces in their texts; most nodes have a hundred."""

MOST_POD_BYTES = 3 << 20
"""Twice what the API server keeps of one object."""


class MalformedError(ValueError):
    """A body is not what kube-scheduler sends."""


class ObjectMeta(msgspec.Struct, frozen=True):
    """Names an object."""

    name: Annotated[str, msgspec.Meta(max_length=253)] = ""
    namespace: Annotated[str, msgspec.Meta(max_length=253)] = ""
    uid: Annotated[str, msgspec.Meta(max_length=128)] = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


class _NodeList(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] | None = None


class _Args(
    msgspec.Struct, frozen=True, rename={"pod": "Pod", "nodes": "Nodes", "node_names": "NodeNames"}
):
    pod: msgspec.Raw
    nodes: _NodeList | None = None
    node_names: list[str] | None = None


class _Outline(
    msgspec.Struct, frozen=True, rename={"pod": "Pod", "nodes": "Nodes", "node_names": "NodeNames"}
):
    """Is the same without anything being made of it."""

    pod: msgspec.Raw
    nodes: _NodeList | None = None
    node_names: msgspec.Raw = msgspec.Raw(b"")


class BindingArgs(
    msgspec.Struct,
    frozen=True,
    rename={
        "pod_name": "PodName",
        "pod_namespace": "PodNamespace",
        "pod_uid": "PodUID",
        "node": "Node",
    },
):
    """Says which pod to bind to which node."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    node: str


@dataclass(frozen=True, slots=True)
class ExtenderArgs:
    """Holds a pod and the nodes that are feasible for it so far."""

    pod: ObjectMeta
    raw_pod: bytes  # the whole object
    node_names: Sequence[str]
    nodes: list[bytes]  # the whole objects, where nodeCacheCapable is false; else empty


# What the API server takes for names; everything else might mean another path there.
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAMESPACE = re.compile(_LABEL, re.ASCII)
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*", re.ASCII)

_read_args = msgspec.json.Decoder(_Args).decode
_outline = msgspec.json.Decoder(_Outline).decode
_read_named = msgspec.json.Decoder(_Named).decode
_read_binding = msgspec.json.Decoder(BindingArgs).decode
_write = msgspec.json.Encoder().encode


Find = Callable[[bytes], Sequence[str] | None]
"""Finds the nodes that a JSON list names, or None where it cannot: then the list is read."""


def read_args(body: bytes, find: Find | None = None) -> ExtenderArgs:
    """Reads the body of filter and prioritize.

    Raises:
        MalformedError: it is something else.
    """
    try:
        if len(body) > MOST_POD_BYTES:
            _check_parts(body)
            _check_sizes(_outline(body))
        elif find is not None:
            known = _found_args(_outline(body), find)
            if known is not None:
                return known
        args = _read_args(body)
        pod = _read_named(args.pod).metadata
        _check_number(args.node_names, args.nodes)
        if args.node_names is not None:
            return ExtenderArgs(pod, bytes(args.pod), args.node_names, [])
        nodes = [bytes(each) for each in args.nodes.items or ()] if args.nodes else []
        names = [_read_named(each).metadata.name for each in nodes]
    except UNREADABLE as error:
        raise MalformedError(str(error)) from error
    return ExtenderArgs(pod, bytes(args.pod), names, nodes)


def _found_args(outline: _Outline, find: Find) -> ExtenderArgs | None:
    """Reads a body that names nodes which are all known; None: it is another."""
    if outline.nodes is not None:
        return None
    names = find(bytes(outline.node_names))
    if names is None:
        return None
    pod = _read_named(outline.pod).metadata
    return ExtenderArgs(pod, bytes(outline.pod), names, [])


def _check_number(names: list[str] | None, nodes: _NodeList | None) -> None:
    listed = len(nodes.items or ()) if nodes else 0
    if max(len(names or ()), listed) > MOST_NODES:
        raise MalformedError(f"there are more than {MOST_NODES:,} nodes")


def _check_parts(body: bytes) -> None:
    """Refuses what would become millions of objects before it can be counted."""
    if body.count(b"{") + body.count(b"[") > MOST_PARTS:
        raise MalformedError(f"there are more than {MOST_PARTS:,} lists and objects")


def _check_sizes(outline: _Outline) -> None:
    _check_number(None, outline.nodes)
    if memoryview(outline.node_names).nbytes > MOST_NAME_BYTES:
        raise MalformedError(f"there are more than {MOST_NODES:,} nodes")
    if memoryview(outline.pod).nbytes > MOST_POD_BYTES:
        raise MalformedError(f"the pod is larger than {MOST_POD_BYTES:,} bytes")


def read_binding(body: bytes) -> BindingArgs:
    """Reads the body of bind.

    Raises:
        MalformedError: it is something else.
    """
    try:
        args = _read_binding(body)
    except UNREADABLE as error:
        raise MalformedError(str(error)) from error
    names = (_NAME, args.pod_name), (_NAMESPACE, args.pod_namespace), (_NAME, args.node)
    for form, name in names:
        if not form.fullmatch(name):
            raise MalformedError(f"{excerpt(name)} is no name of an object")
    return args


# Beyond the documented 0 to 10; kube-scheduler neither checks nor clamps scores of extenders.
_SCORES = [b"%d}" % score for score in (*range(MOST + 1), *range(-MOST, 0))]


def host(name: str) -> bytes:
    """Writes how the entry of a node begins in the answer of prioritize."""
    return b',{"Host":' + _write(name) + b',"Score":'


def priorities(hosts: Iterable[bytes], scores: Sequence[int]) -> bytes:
    """Writes the answer of prioritize, a HostPriorityList.

    >>> priorities(map(host, ["a", "b"]), [7, 0])
    b'[{"Host":"a","Score":7},{"Host":"b","Score":0}]'
    """
    pieces = [b""] * (2 * len(scores))
    pieces[::2] = hosts
    pieces[1::2] = map(_SCORES.__getitem__, scores)
    return b"[" + b"".join(pieces)[1:] + b"]"


NEUTRAL = b"[]"
"""The answer of prioritize that prefers no node: who is not named has no points."""


def filtered(args: ExtenderArgs, refused: Mapping[str, str]) -> bytes:
    """Writes the answer of filter: the nodes that stay, and why others do not."""
    nodes = None
    if args.nodes:
        kept = zip(args.node_names, args.nodes, strict=True)
        items = [msgspec.Raw(node) for name, node in kept if name not in refused]
        nodes = {"metadata": {}, "items": items}
    return _write(
        {
            "Nodes": nodes,
            "NodeNames": [name for name in args.node_names if name not in refused],
            "FailedNodes": refused,
            "FailedAndUnresolvableNodes": {},
            "Error": "",
        }
    )


def failed(error: str) -> bytes:
    """Writes the answer of filter that fails: kube-scheduler skips an ignorable extender."""
    return _write({"NodeNames": None, "FailedNodes": {}, "Error": error})


def bound(error: str = "") -> bytes:
    """Writes the answer of bind."""
    return _write({"Error": error})
