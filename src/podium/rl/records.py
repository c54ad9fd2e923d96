"""Records the figures of a training: one JSON object a line, and TensorBoard's event files.

A training that is resumed goes back to its last checkpoint, and so do its records. Others may have
written to the folder: a link in the place of what is recorded is refused, never followed.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import ExitStack
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from podium.errors import InputError
from podium.files.bounded import open_regular, too_large
from podium.files.draft import drafted, in_words

FIGURES = "figures.jsonl"
TENSORBOARD = "tensorboard"
MOST_BYTES = 1 << 30
_NOT_A_FILE = (errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EISDIR)
"""What a system says of a link, a pipe, a socket and a folder in the place of a file."""


class FigureRecords:
    """Writes figures by iteration into the folder of a run."""

    def __init__(self, folder: Path, iteration: int = 0, episodes: int = 0) -> None:
        self._path = folder / FIGURES
        self._file = self._kept_until(iteration)
        try:
            self._board = _board(folder / TENSORBOARD, episodes)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        with ExitStack() as closing:
            if self._board is not None:
                closing.callback(self._board.close)
            with in_words(self._path):
                self._file.close()

    def add(self, iteration: int, episodes: int, kind: str, figures: Mapping[str, float]) -> None:
        """Records the figures of an iteration; `episodes` counts all that were played until then.

        A learner's own figure of that name counts those of its last iteration.
        """
        head = {"iteration": iteration, "episodes": episodes, "kind": kind}
        with in_words(self._path):
            self._file.write(json.dumps({**head, **figures, **head}) + "\n")
        if self._board is not None:
            for name, value in figures.items():
                self._board.add(f"{kind}/{name}", value, episodes)

    def flush(self) -> None:
        """Hands everything to the system."""
        with in_words(self._path):
            self._file.flush()
        if self._board is not None:
            self._board.flush()

    def _kept_until(self, iteration: int) -> IO[str]:
        """Opens the figures for more of them, without those of later iterations."""
        rows = [row for row in read_figures(self._path) if row["iteration"] <= iteration]
        # A full disk must not cost what was recorded before.
        with drafted(self._path) as draft, _writer(draft, os.O_CREAT | os.O_TRUNC) as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        with in_words(self._path):
            return _writer(self._path, os.O_APPEND)


def _writer(path: Path, flags: int) -> IO[str]:
    """Opens a file that is no link for writing."""
    return os.fdopen(open_regular(path, os.O_WRONLY | flags), "a", encoding="utf-8")


def read_figures(path: Path) -> list[dict[str, Any]]:
    """Reads what was recorded; lines that were cut off by a crash, or are no text, are left out.

    Raises:
        InputError: it is a link or another thing than a file, or cannot be read.
    """
    found = []
    for line in _content(path).splitlines():
        try:
            row = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("iteration"), int):
            found.append(row)
    return found


def _content(path: Path) -> bytes:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        is_other = error.errno in _NOT_A_FILE
        problem = "is not a regular file" if is_other else f"cannot be read: {error.strerror}"
        raise InputError.at(path, problem, hint="remove it; figures are recorded anew") from error
    if len(content) > MOST_BYTES:
        raise too_large(path, MOST_BYTES)
    return content


def has_tensorboard() -> bool:
    """Returns whether TensorBoard's event files can be written here."""
    return find_spec("tensorboardX") is not None


class _EventFile:
    """TensorBoard's event file, written by this thread alone.

    The library's usual writer has a thread of its own. That thread dies of a full disk, and whoever
    adds a figure after that, or ends, waits for it for ever.
    """

    def __init__(self, folder: Path, episodes: int) -> None:
        self._kinds = import_module("tensorboardX.proto.event_pb2")
        self._scalar = import_module("tensorboardX.summary").scalar
        writer = import_module("tensorboardX.record_writer").RecordWriter
        host = f"{socket.gethostname()}.{os.getpid()}.{episodes}"
        self._path = folder / f"events.out.tfevents.{time.time():.0f}.{host}"
        with in_words(self._path):
            folder.mkdir(parents=True, exist_ok=True)
            self._writer = writer(str(self._path))
        self._write(wall_time=time.time(), file_version="brain.Event:2")
        if episodes:  # whatever is later was recorded before a crash
            started = self._kinds.SessionLog(status=self._kinds.SessionLog.START)
            self._write(step=episodes + 1, session_log=started)

    def add(self, name: str, value: float, step: int) -> None:
        """Writes a figure."""
        self._write(step=step, wall_time=time.time(), summary=self._scalar(name, value))

    def flush(self) -> None:
        """Hands everything to the system."""
        with in_words(self._path):
            self._writer.flush()

    def close(self) -> None:
        """Writes what is left; on a full disk the file is closed all the same."""
        with in_words(self._path):
            self._writer.close()

    def _write(self, **event: Any) -> None:
        with in_words(self._path):
            self._writer.write(self._kinds.Event(**event).SerializeToString())


def _board(folder: Path, episodes: int) -> _EventFile | None:
    """Opens TensorBoard's event file; None where the extra is not installed."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError.at(
            folder, "is not a folder of its own", hint="remove it; event files are written anew"
        )
    return _EventFile(folder, episodes) if has_tensorboard() else None
