"""Reads a trace from standard input or from a pipe of the shell, through a file of its own."""

from __future__ import annotations

import atexit
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from podium.errors import InputError, UsageError
from podium.files.bounded import MOST_BYTES, too_large
from podium.traces.trace import Trace

STANDARD_INPUT = "-"

_CHUNK_BYTES = 1 << 20
_SNIFFED_BYTES = 1 << 12
# Only streams that were handed to this process: a pipe with a name may never end.
_HANDED = re.compile(r"/dev/stdin|(/dev|/proc/self|/proc/[0-9]+)/fd/[0-9]+")
_HINT = "pipe a dump into it: kubectl get nodes,pods -A -o json | podium traces info -"


@dataclass(frozen=True, slots=True)
class Buffered:
    """Is what came out of a stream, as a file whose name says its format."""

    path: Path
    shown: str

    def renamed(self, trace: Trace) -> Trace:
        """Lets a trace speak of the stream instead of the file."""
        return replace(
            trace,
            cluster=trace.cluster and replace(trace.cluster, name=self.shown),
            workload=trace.workload and replace(trace.workload, name=self.shown),
            notes=tuple(note.replace(str(self.path), self.shown) for note in trace.notes),
        )


def is_stream(reference: str) -> bool:
    """Tells whether a reference is standard input, or something that the shell opened for us."""
    return reference == STANDARD_INPUT or bool(_HANDED.fullmatch(reference))


_KEPT: dict[tuple[int, int], Buffered] = {}
"""What came out of pipes, until the process ends: a comparison loads its trace many times."""


@contextmanager
def buffered(reference: str) -> Iterator[Buffered]:
    """Reads a stream to its end; errors speak of the stream, not of the file that holds it."""
    shown = "standard input" if reference in (STANDARD_INPUT, "/dev/stdin") else reference
    pipe = _pipe(reference)
    with ExitStack() as stack:
        file = None if pipe is None else _KEPT.get(pipe)
        if file is None:
            folder = tempfile.TemporaryDirectory(prefix="podium-")
            with ExitStack() as unsaved:
                unsaved.enter_context(folder)
                file = Buffered(_saved(reference, Path(folder.name), shown), shown)
                unsaved.pop_all()
            if pipe is None:
                stack.callback(folder.cleanup)
            else:
                _KEPT[pipe] = file
                atexit.register(folder.cleanup)
        yield from _renaming(file)


def _renaming(file: Buffered) -> Iterator[Buffered]:
    try:
        yield file
    except InputError as error:
        error.message = error.message.replace(str(file.path), file.shown)
        error.where = error.where.replace(str(file.path), file.shown)
        raise


def _pipe(reference: str) -> tuple[int, int] | None:
    """Names the pipe behind a reference, None where something else is."""
    try:
        if reference == STANDARD_INPUT:
            status = os.fstat(sys.stdin.fileno())
        else:
            status = Path(reference).stat()
    except (OSError, ValueError, AttributeError):  # none, closed, or no file at all
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISFIFO(status.st_mode) else None


def _saved(reference: str, folder: Path, shown: str) -> Path:
    raw = folder / "stream"
    _copy(reference, raw, shown)
    return raw.rename(raw.with_suffix(_suffix(raw, shown)))


def _copy(reference: str, target: Path, shown: str) -> None:
    with target.open("wb") as output:
        if reference != STANDARD_INPUT:
            try:
                with Path(reference).open("rb") as stream:
                    _drain(stream, output, shown)
            except OSError as error:
                raise InputError.at(shown, f"cannot be read: {error.strerror or error}") from error
        elif sys.stdin is None or sys.stdin.isatty():
            raise UsageError("nothing is piped into standard input", where=shown, hint=_HINT)
        else:
            _drain(sys.stdin.buffer, output, shown)


def _drain(stream: IO[bytes], output: IO[bytes], shown: str) -> None:
    size = 0
    while chunk := stream.read(_CHUNK_BYTES):
        size += len(chunk)
        if size > MOST_BYTES:
            raise too_large(Path(shown), MOST_BYTES)
        output.write(chunk)


def _suffix(path: Path, shown: str) -> str:
    """Tells the format by how the text begins."""
    with path.open("rb") as stream:
        head = stream.read(_SNIFFED_BYTES)
    if not head.strip():
        raise InputError.at(shown, "is empty", hint=_HINT)
    if head.startswith(b"\x1f\x8b"):
        raise InputError.at(shown, "is compressed", hint="pipe it through gunzip first")
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"["):
        return ".json"
    first = head.split(b"\n", 1)[0]
    return ".csv" if b"cpu_milli," in first and b":" not in first else ".yaml"
