"""Keeps the files of a run, and lets one process at a time work on it.

Files appear whole or not at all. Others may have written to the folder: a link in it is replaced or
refused, never followed, and so is whatever else is no regular file. The lock is the system's: it
goes with the process that took it, however that ended, so that no lock is ever stale.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from podium.errors import InputError, MissingError, UsageError
from podium.files.bounded import open_regular, too_large
from podium.files.draft import in_words, unwritable
from podium.files.excerpt import excerpt
from podium.files.json_text import JsonError, parse_value
from podium.store.records import RunRecord
from podium.store.store import Store

LOCK, VERSION = "lock", "version"
MOST_BYTES = 256 << 20

NOT_A_FILE = (errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EISDIR)
"""What a system says of a link, a pipe, a socket and a folder in the place of a file."""

PATIENCE_S = 0.2
"""Who only looks whether a run is locked holds the lock for a moment too."""


class RunFolder:
    """Reads and writes the files of one run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None

    def create(self) -> None:
        """Creates the folder.

        Raises:
            UsageError: it is there already, or cannot be made.
        """
        with in_words(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self.path.mkdir()
            except FileExistsError as error:
                problem = f"the run {self.path.name} already exists"
                raise UsageError(problem, where=str(self.path)) from error

    def check_home(self, run_id: str, root: Path, verb: str) -> None:
        """Refuses a folder that is not this run's own among those that the user keeps.

        Raises:
            UsageError: only the store names it, and others may have written there.
        """
        place, home = self.path.resolve(), root.resolve()
        if (place.name, place.parent) == (run_id, home):
            return
        again = f"PODIUM_SEARCH_FOLDER={shlex.quote(str(place.parent))} {verb} {run_id}"
        raise UsageError(
            f"the store places run {run_id} outside the folder for runs, {home}",
            where=str(self.path),
            hint=f"if its files are yours: {again}"
            if place.name == run_id
            else f"a run's folder is named after its id; look for {run_id}, or begin a new run",
        )

    @property
    def is_locked(self) -> bool:
        """Returns whether a process works on the run.

        Raises:
            PermissionError: this user may not know.
        """
        import fcntl

        try:
            handle = open_regular(self.path / LOCK, os.O_RDONLY)
        except PermissionError:
            raise  # somebody else's, who may well work on it
        except OSError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    def lock(self) -> None:
        """Locks the run against other processes until `unlock`, or the end of this process.

        Raises:
            UsageError: somebody does.
            InputError: what is named like a lock is none.
        """
        with in_words(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        try:
            handle = open_regular(self.path / LOCK, os.O_CREAT | os.O_RDWR)
        except OSError as error:
            if error.errno in NOT_A_FILE:
                raise self._unopened(LOCK, error) from error
            raise unwritable(str(self.path / LOCK), error) from error
        self._take(handle)

    def lock_if_used(self) -> None:
        """Takes the lock of a run that has one; does not create one."""
        try:
            handle = open_regular(self.path / LOCK, os.O_RDWR)
        except (OSError, ValueError):  # a path may hold what no path can
            return
        self._take(handle)

    def _take(self, handle: int) -> None:
        import fcntl

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
        """Releases the lock, so that others can work on the run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def has(self, name: str) -> bool:
        """Returns whether the run has a file."""
        return os.path.lexists(self.path / name)

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Writes a JSON file."""
        self.write_text(name, json.dumps(content, indent=1, allow_nan=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Writes a text file."""
        self.write_bytes(name, text.encode("utf-8"))

    def write_bytes(self, name: str, content: bytes) -> None:
        """Writes a file; it is on the disk once this returns."""
        draft = self.path / f".{name}.{secrets.token_hex(8)}.partial"
        try:
            with in_words(self.path / name):
                self.path.mkdir(parents=True, exist_ok=True)
                with draft.open("xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                draft.replace(self.path / name)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)

    def read_bytes(self, name: str, most_bytes: int = MOST_BYTES) -> bytes:
        """Reads a file of the run.

        Raises:
            InputError: it is no regular file, too large, or cannot be read.
        """
        try:
            with os.fdopen(open_regular(self.path / name, os.O_RDONLY), "rb") as file:
                found = file.read(most_bytes + 1)
        except OSError as error:
            raise self._unopened(name, error) from error
        if len(found) > most_bytes:
            raise too_large(self.path / name, most_bytes)
        return found

    def read(self, name: str, version: int = 1) -> dict[str, Any]:
        """Reads a JSON file of the run; one without a "version" is of version 1.

        Raises:
            MissingError: there is none.
            UsageError: it has another version.
            InputError: nothing wrote it so.
        """
        if not self.has(name):
            raise MissingError(
                f"the run has no {name}", where=str(self.path),
                hint="the folder of the run was moved or emptied; begin a new run",
            )  # fmt: skip
        try:
            found = parse_value(self.read_bytes(name).decode("utf-8-sig"))
        except (JsonError, UnicodeDecodeError) as error:
            raise self.corrupt(name, str(error)) from error
        if not isinstance(found, dict):
            raise self.corrupt(name, "it is not an object")
        if (theirs := found.get(VERSION, 1)) != version:
            raise UsageError(
                f"{name} has version {excerpt(theirs)}, but this Podium reads version {version}",
                where=str(self.path), hint="use the Podium that wrote it, or begin a new run",
            )  # fmt: skip
        return found

    @contextmanager
    def reading(self, name: str) -> Iterator[None]:
        """Reports what is wrong with the content of a file as an error of the file."""
        try:
            yield
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise self.corrupt(name, excerpt(error, 200)) from error

    def _unopened(self, name: str, error: OSError) -> InputError:
        if error.errno in NOT_A_FILE:
            return self.corrupt(name, "it is not a regular file")
        return InputError.at(self.path / name, f"cannot be read: {error.strerror or error}")

    def corrupt(self, name: str, problem: str) -> InputError:
        """Builds the error for a file that no run can have written."""
        path = self.path / name
        return InputError.at(path, f"corrupt run file: {problem}", hint="begin a new run")


def create_run(
    store: Store, record: RunRecord, folder: RunFolder, files: Mapping[str, Mapping[str, Any]]
) -> None:
    """Creates the folder of a new run with its first files, and enters the run: both or neither."""
    folder.create()
    try:
        for name, content in files.items():
            folder.write(name, content)
        store.runs.create(record)
    except BaseException:
        shutil.rmtree(folder.path, ignore_errors=True)
        raise


def _taken(path: Path) -> UsageError:
    return UsageError(
        "another process is working on this run",
        where=str(path),
        hint="podium runs list shows it; wait for it, or stop it first",
    )
