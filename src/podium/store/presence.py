"""Looks whether the files of a SQLite store are still where they were opened.

A process goes on writing to a file that was deleted or moved, and nobody will ever read what it
writes. So every transaction that writes looks: before it begins, and again after it is committed,
before anybody is told.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from podium.errors import MissingError

FILES = ("", "-wal", "-shm")
"""What is added to the name of the database for each of its files."""

_KEY = "podium files"

File = tuple[Path, tuple[int, int] | None]
"""The path of a file, with the device and the number that it has there."""


class LostStore(MissingError):  # noqa: N818 - reads as the sentence it makes
    """The file of the store was deleted, moved or replaced while it was open."""


def note_presence(info: MutableMapping[Any, Any], file: Path) -> None:
    """Notes the files that a new connection has opened."""
    paths = [Path(f"{file.absolute()}{end}") for end in FILES]
    info[_KEY] = tuple((path, _identity(path)) for path in paths)


def check_presence(info: MutableMapping[Any, Any]) -> None:
    """Looks whether the files of a connection are where they were; other databases have none.

    Raises:
        LostStore: one of them is not.
    """
    files: tuple[File, ...] = info.get(_KEY, ())
    for path, identity in files:
        if _identity(path) != identity:
            raise LostStore(
                "the file of the store was deleted, moved or replaced while it was open",
                where=str(path),
                hint="put it back, or start again: what is written meanwhile would be lost",
            )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
