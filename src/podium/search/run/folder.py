"""Keeps the files of a run: its plan, its best policy, the state of its generators, and a lock."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podium.errors import InputError, MissingError, UsageError
from podium.files.draft import drafted, in_words
from podium.files.excerpt import excerpt
from podium.files.json_text import JsonError, parse_value
from podium.files.text_file import read_text

BEST = "best.py"
"""The best policy so far."""

PLAN, STATE, LOCK, CASSETTE = "plan.json", "state.json", "lock", "cassette.jsonl"
MOST_BYTES = 256 << 20
MOST_BATCHES = 100_000

PATIENCE_S = 0.2
"""Who only looks whether a run is locked holds the lock for a moment too."""


class RunFolder:
    """Reads and writes the files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    @property
    def cassette(self) -> Path:
        """Names the file of recorded traffic with language models."""
        return self.path / CASSETTE

    @property
    def is_locked(self) -> bool:
        """Tells whether a process is at work on the run; a dead one holds nothing."""
        import fcntl

        try:
            handle = os.open(self.path / LOCK, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def lock(self) -> None:
        """Makes sure that nobody else works on this run; the system lets go when we die."""
        import fcntl

        self.path.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR)
        deadline_s = time.monotonic() + PATIENCE_S
        while self._lock is None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._lock = handle
            except OSError as error:
                if time.monotonic() < deadline_s:
                    time.sleep(PATIENCE_S / 10)
                    continue
                os.close(handle)
                raise _taken(self.path) from error

    def unlock(self) -> None:
        """Lets others work on the run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Writes a JSON file whole, or not at all."""
        self.write_text(name, json.dumps(content, indent=1, allow_nan=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Writes a text file whole, or not at all."""
        with in_words(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with (
            drafted(self.path / name) as draft,
            draft.open("w", encoding="utf-8") as file,
        ):
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def state(self) -> dict[str, Any]:
        """Reads how far the run was when its last batch ended; nothing for a new one."""
        found = self.read(STATE) if (self.path / STATE).exists() else {}
        batches = found.get("batches", 0)
        if type(batches) is not int or not 0 <= batches <= MOST_BATCHES:
            raise _broken(self.path / STATE, f"batches is {excerpt(batches)}")
        return found

    @contextmanager
    def reading_state(self) -> Iterator[None]:
        """Blames the file for what is wrong with its content."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _broken(self.path / STATE, excerpt(error, 200)) from error

    def read(self, name: str) -> dict[str, Any]:
        """Reads a JSON file of the run."""
        if not (self.path / name).exists():
            raise MissingError(
                f"the run has no {name}", where=str(self.path),
                hint="the folder of the run was moved or emptied; begin a new run",
            )  # fmt: skip
        try:
            found = parse_value(read_text(self.path / name, MOST_BYTES))
        except JsonError as error:
            raise _broken(self.path / name, str(error)) from error
        if not isinstance(found, dict):
            raise _broken(self.path / name, "it is no object")
        return found


def _taken(path: Path) -> UsageError:
    return UsageError(
        "another process works on this run",
        where=str(path),
        hint="podium search status shows it; wait for it, or stop it first",
    )


def _broken(path: Path, problem: str) -> InputError:
    return InputError.at(path, f"not as a run wrote it: {problem}", hint="begin a new run")
