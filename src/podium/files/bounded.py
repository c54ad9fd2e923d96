"""Reads bytes within bounds, so that a small file cannot fill the memory.

A gzip file of a few kilobytes may hold gigabytes, a device never ends, and a line may be as long as
the file. What is refused here was never read as a whole.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
from pathlib import Path
from typing import IO, cast

from podium.errors import InputError

MIB = 1 << 20
MOST_BYTES = 4096 * MIB
"""Bytes that a file may hold, decompressed; dumps of large clusters are a tenth of it."""

LONGEST_LINE = 16 * MIB
EXPANSION = 200
"""Times that gzip data may grow; dumps of clusters grow 30 to 60 times, bombs 1,000 times."""

FREE_BYTES = MIB
"""So much may always come out."""


class NotText(Exception):  # noqa: N818 - never leaves this room
    """The bytes cannot be text."""


class BoundedBytes(io.RawIOBase):
    """Reads the bytes of a file as long as they are within the bounds."""

    def __init__(
        self, path: Path, most_bytes: int, longest_line: int, *, is_wide: bool = False
    ) -> None:
        self.is_wide = is_wide  # two bytes a character, of which one is often 0
        self.path = path
        self.most_bytes = most_bytes
        self.longest_line = longest_line
        self._file = open_file(path)
        self._source = self._file
        self._is_packed = path.suffix.lower() == ".gz"
        if self._is_packed:
            self._source = cast("IO[bytes]", gzip.GzipFile(fileobj=self._file, mode="rb"))
        self._given = 0
        self._line = 0  # bytes since the last end of a line

    def readable(self) -> bool:
        """Returns True: it can be read."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fills a buffer; raises InputError once a bound is passed."""
        view = memoryview(cast("bytearray", buffer))
        chunk = self._source.read(len(view))
        view[: len(chunk)] = chunk
        self._check(chunk)
        return len(chunk)

    def close(self) -> None:
        """Closes the file."""
        self._source.close()
        self._file.close()
        super().close()

    def _check(self, chunk: bytes) -> None:
        if b"\0" in chunk and not self.is_wide:
            raise NotText
        self._given += len(chunk)
        if self._given > self.most_bytes:
            raise too_large(self.path, self.most_bytes)
        end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
        self._line = len(chunk) - end - 1 + (self._line if end < 0 else 0)
        if self._line > self.longest_line:
            message = f"a line is longer than {_size(self.longest_line)}"
            raise InputError.at(self.path, message, hint="give a file of ordinary lines")
        if self._is_packed and self._given > FREE_BYTES + EXPANSION * self._file.tell():
            raise InputError.at(
                self.path,
                f"the gzip data grows more than {EXPANSION} times",
                hint="if you trust the file, decompress it with gunzip and use the result",
            )


def open_file(path: Path) -> IO[bytes]:
    """Opens a file for reading; a pipe that nobody writes to reads as empty, and does not wait."""
    return open(path, "rb", opener=_unblocked)


def open_regular(path: Path, flags: int) -> int:
    """Opens a file that is one: no link is followed, and no pipe or device is waited for.

    Raises:
        OSError: it is something else, or cannot be opened.
    """
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return handle


def too_large(path: Path, most_bytes: int) -> InputError:
    """Refuses a file that holds more than it may."""
    message = f"is larger than {_size(most_bytes)}"
    return InputError.at(path, message, hint="check that this is the file you meant")


def _unblocked(path: str, flags: int) -> int:
    handle = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    return handle


def _size(number_of_bytes: int) -> str:
    return f"{number_of_bytes // MIB:,} MiB" if number_of_bytes >= MIB else f"{number_of_bytes:,} B"
