"""Opens text files for reading and writing, plain or gzip by their suffix."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TextIO, cast

from podium.errors import InputError
from podium.traces.draft import drafted

_GZIP_MAGIC = b"\x1f\x8b"


def is_gzip(path: Path) -> bool:
    """Tells whether the name says that the file is compressed."""
    return path.suffix.lower() == ".gz"


def format_suffix(path: Path) -> str:
    """Gives the suffix that names the format, in lower case and without `.gz`.

    >>> format_suffix(Path("nodes.YAML.gz"))
    '.yaml'
    """
    return (path.with_suffix("") if is_gzip(path) else path).suffix.lower()


@contextmanager
def reading(path: Path) -> Iterator[TextIO]:
    """Opens a UTF-8 file; what cannot be read becomes an InputError that says why."""
    try:
        with _opened(path) as raw, TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
            yield text
    except UnicodeDecodeError as error:
        raise _not_text(path) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError.at(
            path, f"the gzip data cannot be read: {error}", hint="copy or compress the file again"
        ) from error
    except OSError as error:
        raise InputError.at(path, f"cannot be read: {error.strerror or error}") from error


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Opens a file that appears under its name only when it is complete.

    The same text gives the same bytes: a gzip file carries neither name nor time.
    """
    with (
        drafted(path) as draft,
        draft.open("wb") as raw,
        _packed(raw, path) as packed,
        TextIOWrapper(packed, encoding="utf-8", newline="", write_through=True) as text,
    ):
        yield text


def _opened(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path, "rb")) if is_gzip(path) else path.open("rb")


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    if not is_gzip(path):
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        yield cast("IO[bytes]", packed)


def _not_text(path: Path) -> InputError:
    try:
        with _opened(path) as raw:
            line, message = _first_bad_line(raw)
    except (OSError, EOFError, zlib.error):
        line, message = 0, "the file is not UTF-8 text"
    with path.open("rb") as head:
        is_packed = head.read(2) == _GZIP_MAGIC and not is_gzip(path)
    hint = "the file looks compressed: let its name end in .gz" if is_packed else "save it as UTF-8"
    return InputError.at(path, message, line=line, hint=hint)


def _first_bad_line(raw: IO[bytes]) -> tuple[int, str]:
    for number, line in enumerate(raw, start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            return number, f"byte {error.start + 1} of the line is not UTF-8 text"
    return 0, "the file is not UTF-8 text"
