"""Records what happens in a cluster, into a file to which lines are only ever added.

Each line is written whole before the next event is looked at, so that whoever kills the recorder
loses at most the line that was being written. Objects come in full once; later lines about a pod
hold its life alone: where it is bound, when it started, how it ended.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from msgspec import Raw

from podium.errors import InputError, UsageError
from podium.kube.hashing import Hasher, salt_file
from podium.kube.heads import node_heads, pod_heads
from podium.kube.objects import decode, without_strange_marks
from podium.kube.reflector import Seen, SinkFull
from podium.kube.resources import Resource
from podium.traces.kubernetes.documents import RECORDING
from podium.traces.kubernetes.recording import FORMAT, Recording, load_recording, object_key

ALIVE_S = 30.0
"""How often a line says that nothing happened."""

_LIFE_CONDITIONS = ("PodScheduled", "DisruptionTarget")

Key = tuple[str, str, str]
"""Kind with group, namespace and name of an object, as the recording names it."""


@dataclass(slots=True)
class Recorder:
    """Takes the objects of a cluster and writes lines; to be entered like a file."""

    path: Path
    hasher: Hasher | None = None  # of names; None: they are written as they are
    now: Callable[[], float] = time.time
    lines: int = 0
    _file: IO[bytes] | None = None
    _marks: dict[Hashable, int] = field(default_factory=dict)  # of objects, as written last
    _lives: dict[str, int] = field(default_factory=dict)  # of pods by UID, as written last
    _keys: dict[str, set[Key]] = field(default_factory=dict)  # of other objects that are there

    def __enter__(self) -> Recorder:
        known, mark = _known(self.path), "" if self.hasher is None else self.hasher.mark
        if known is not None:
            _check_names(known, mark, self.path)
        try:
            self._file = self.path.open("ab", buffering=0)
            if known is not None and not _ends_with_newline(self.path):
                _append(self._file.fileno(), b"\n")
        except OSError as error:
            raise InputError.at(self.path, f"cannot be written: {error.strerror}") from error
        if known is not None:
            self._remember(known)
        salted = {"salt": mark} if mark else {}
        self._write({"event": "began", "format": FORMAT, **salted})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is None:
            return
        try:
            # A file that could not be written to takes no last line either.
            if not isinstance(error, SinkFull):
                self.alive()
        finally:
            self._file.close()

    def alive(self) -> None:
        """Says that somebody still looks."""
        self._write({"event": "alive"})

    def apply(self, resource: Resource, type_: str, raw: bytes | Raw) -> Seen:
        """Takes one object."""
        if resource.name == "Pod":
            return self._apply_pod(resource, type_, raw)
        value = self._object(resource, raw)
        version = str((value.get("metadata") or {}).pop("resourceVersion", ""))
        key = self._key(value)
        mark = node_heads.decode(raw).mark() if resource.name == "Node" else hash(repr(value))
        if type_ == "DELETED":
            self._gone(key)
        elif self._marks.get(key) != mark:
            self._marks[key] = mark
            self._keys.setdefault(resource.name, set()).add(key)
            self._write({"event": "put", "object": self._hidden(value)})
        return Seen(key, version)

    def retain(self, resource: Resource, seen: set[Hashable]) -> None:
        """Takes a list to be complete: what is not among those seen went while nobody looked."""
        if resource.name == "Pod":
            for uid in sorted(self._lives.keys() - seen):
                self._pod_gone(uid, is_lost=True)
            return
        for key in sorted(self._keys.get(resource.name, set()) - seen):
            self._gone(key)

    def _apply_pod(self, resource: Resource, type_: str, raw: bytes | Raw) -> Seen:
        head = pod_heads.decode(raw)
        uid, mark = self._hidden_uid(head.metadata.uid), hash(head.pattern())
        value = self._object(resource, raw)
        life = _life(value)
        told = hash(repr(life))
        if self._marks.get(uid) != mark:
            value.get("metadata", {}).pop("resourceVersion", None)
            whole = self._hidden({**value, "status": life["status"]})
            self._write({"event": "put", "object": whole})
        elif self._lives.get(uid) != told:
            hidden = self._hidden({"kind": "Pod", **life})
            self._write({"event": "life", "uid": uid, "object": hidden})
        self._marks[uid], self._lives[uid] = mark, told
        if type_ == "DELETED":
            self._pod_gone(uid, is_lost=False)
        return Seen(uid, head.metadata.resource_version)

    def _object(self, resource: Resource, raw: bytes | Raw) -> dict[str, Any]:
        known = {"apiVersion": resource.api_version, "kind": resource.kind}
        return without_strange_marks(known | decode(resource.name, raw))

    def _hidden(self, value: Mapping[str, Any]) -> dict[str, Any]:
        return dict(value) if self.hasher is None else self.hasher.object(value)

    def _hidden_uid(self, uid: str) -> str:
        return uid if self.hasher is None else self.hasher.name(uid)

    def _key(self, value: Mapping[str, Any]) -> Key:
        kind = {name: value[name] for name in ("apiVersion", "kind")}
        metadata = value.get("metadata") or {}
        names = {name: metadata.get(name) for name in ("namespace", "name")}
        return object_key(self._hidden({**kind, "metadata": names}))

    def _pod_gone(self, uid: str, *, is_lost: bool) -> None:
        del self._lives[uid]
        self._marks.pop(uid, None)
        lost = {"lost": True} if is_lost else {}
        self._write({"event": "gone", "kind": "Pod", "uid": uid, **lost})

    def _gone(self, key: Key) -> None:
        kind, namespace, name = key
        self._marks.pop(key, None)
        if key in self._keys.get(kind, ()):
            self._keys[kind].discard(key)
            self._write({"event": "gone", "kind": kind, "namespace": namespace, "name": name})

    def _remember(self, known: Recording) -> None:
        """Knows the objects of an earlier recording: those that are gone by now are missed."""
        self._lives = {uid: 0 for uid, pod in known.pods.items() if pod.gone_s is None}
        for key in known.here:
            self._keys.setdefault(key[0], set()).add(key)

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is None:
            raise RuntimeError("the recording is not open")
        text = json.dumps({"at": round(self.now(), 3), **line}, separators=(",", ":"))
        try:
            _append(self._file.fileno(), text.encode() + b"\n")
        except OSError as error:
            raise SinkFull.at(
                self.path, f"cannot be written: {error.strerror}",
                hint="the recording ends here; make room and start it again with the same file",
            ) from error  # fmt: skip
        self.lines += 1


def _append(file: int, line: bytes) -> None:
    """Adds a line, unbuffered: it is there or it is not, also where a disk takes half of it."""
    begin = os.fstat(file).st_size
    try:
        written = 0
        while written < len(line):
            written += os.write(file, line[written:])
    except OSError:
        os.ftruncate(file, begin)
        raise


def _life(value: Mapping[str, Any]) -> dict[str, Any]:
    """Takes from a pod what changes while it lives."""
    metadata, spec, status = (value.get(part) or {} for part in ("metadata", "spec", "status"))
    conditions = [
        each for each in status.get("conditions") or () if each.get("type") in _LIFE_CONDITIONS
    ]
    parts = ("phase", "reason", "startTime", "containerStatuses", "initContainerStatuses")
    kept: dict[str, Any] = {name: status[name] for name in parts if name in status}
    return {
        "metadata": {n: metadata[n] for n in ("deletionTimestamp",) if n in metadata},
        "spec": {n: spec[n] for n in ("nodeName", "schedulingGates") if spec.get(n)},
        "status": kept | ({"conditions": conditions} if conditions else {}),
    }


def _known(path: Path) -> Recording | None:
    """Reads the recording that is to go on; None where there is none."""
    if path.suffix.lower() != RECORDING:
        raise UsageError(
            f"a recording is a {RECORDING} file", where=str(path),
            hint=f"let its name end in {RECORDING}",
        )  # fmt: skip
    if not path.exists() or path.stat().st_size == 0:
        return None
    return load_recording(path)


def _check_names(known: Recording, mark: str, path: Path) -> None:
    """Refuses to write names in two ways into one recording."""
    if known.salt == mark:
        return
    if not mark:
        problem, hint = "its names are hashed", "add --hash-names, or give another file"
    elif not known.salt:
        problem, hint = "its names are not hashed", "leave out --hash-names, or give another file"
    else:
        problem = "its names are hashed with another salt"
        hint = f"put back {salt_file(path)}, or give another file"
    raise UsageError(problem, where=str(path), hint=hint)


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
