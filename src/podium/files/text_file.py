"""Opens text files for reading and writing, plain or gzip by their suffix; the one door to them."""

from __future__ import annotations

import gzip
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import IO, TextIO, cast

from podium.errors import InputError
from podium.files.bounded import (
    LONGEST_LINE,
    MOST_BYTES,
    BoundedBytes,
    NotText,
    open_file,
    too_large,
)
from podium.files.draft import drafted

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 1 << 16


def is_gzip(path: Path) -> bool:
    """Returns whether the name says that the file is compressed."""
    return path.suffix.lower() == ".gz"


def is_wide(path: Path) -> bool:
    """Returns whether a file begins with the mark of UTF-16, which no other text does."""
    if not path.is_file():  # a pipe gives nothing a second time
        return False
    with path.open("rb") as file:
        return file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE)


def format_suffix(path: Path) -> str:
    """Returns the suffix that names the format, in lower case and without `.gz`.

    >>> format_suffix(Path("nodes.YAML.gz"))
    '.yaml'
    """
    return (path.with_suffix("") if is_gzip(path) else path).suffix.lower()


@contextmanager
def reading(
    path: Path,
    *,
    most_bytes: int = MOST_BYTES,
    longest_line: int = LONGEST_LINE,
    newline: str | None = "",
) -> Iterator[TextIO]:
    """Opens a UTF-8 file, or one of PowerShell in UTF-16; what cannot be read is an InputError."""
    try:
        with (
            BoundedBytes(path, most_bytes, longest_line, is_wide=is_wide(path)) as raw,
            BufferedReader(raw, _CHUNK_BYTES) as buffered,
            TextIOWrapper(
                buffered, encoding="utf-16" if raw.is_wide else "utf-8-sig", newline=newline
            ) as text,
        ):
            yield text
    except (UnicodeDecodeError, NotText) as error:
        raise _not_text(path) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError.at(
            path, f"the gzip data cannot be read: {error}", hint="copy or compress the file again"
        ) from error
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror or error}") from error


def read_text(path: Path, most_bytes: int) -> str:
    """Reads a small file as a whole, its lines ended by newlines."""
    with reading(path, most_bytes=most_bytes, longest_line=most_bytes, newline=None) as stream:
        return stream.read()


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """Reads a small file as a whole, as it is."""
    with open_file(path) as file:
        found = file.read(most_bytes + 1)
    if len(found) > most_bytes:
        raise too_large(path, most_bytes)
    return found


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Opens a file that appears under its name only when it is complete.

    The same text gives the same bytes: a gzip file carries neither name nor time.
    """
    with drafted(path) as draft, filling(draft, path) as text:
        yield text


@contextmanager
def filling(draft: Path, path: Path) -> Iterator[TextIO]:
    """Opens the draft of a file, to be written as the file's own name asks for."""
    with (
        draft.open("wb") as raw,
        _packed(raw, path) as packed,
        TextIOWrapper(packed, encoding="utf-8", newline="", write_through=True) as text,
    ):
        yield text


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if not is_gzip(path):
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        yield cast("IO[bytes]", packed)


def _not_text(path: Path) -> InputError:
    line, message, is_packed = 0, "the file is not UTF-8 text", False
    if path.is_file():  # a pipe gives nothing a second time
        with suppress(OSError, EOFError, zlib.error), _reopened(path) as raw:
            line, message = _first_bad_line(raw)
        with path.open("rb") as head:
            is_packed = head.read(2) == _GZIP_MAGIC and not is_gzip(path)
    hint = "the file looks compressed: let its name end in .gz" if is_packed else "save it as UTF-8"
    return InputError.at(path, message, line=line, hint=hint)


def _reopened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if is_gzip(path) else path.open("rb")


def _first_bad_line(raw: IO[bytes]) -> tuple[int, str]:
    number = 0
    while line := raw.readline(LONGEST_LINE):
        number += 1
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            return number, f"byte {error.start + 1} of the line is not UTF-8 text"
        if b"\0" in line:
            return number, f"byte {line.index(0) + 1} of the line is 0, which text never contains"
    return 0, "the file is not UTF-8 text"
