"""Writes files that appear whole or not at all, and says what stands in the way."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podium.errors import MissingError, PodiumError, UsageError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a system says when there is no room for what is written."""


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Yields a path to write to; the file takes its name when the block succeeds.

    A device or a pipe is written to as it is.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        with in_words(path):
            yield target
        return
    draft = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with in_words(path):
            yield draft
            draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def in_words(path: Path) -> Iterator[None]:
    """Turns what stands in the way of writing a file into an error for people."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read it has seen enough
    except OSError as error:
        raise unwritable(str(path), error) from error


def unwritable(where: str, error: OSError) -> PodiumError:
    """Builds the error for a full disk, or for whatever else the system refuses."""
    if error.errno in FULL:
        return MissingError(
            f"no space left to write: {error.strerror}", where=where,
            hint="free some space, or write to another disk",
        )  # fmt: skip
    return UsageError(
        f"cannot be written: {error.strerror or error}",
        where=where,
        hint="choose a file in a folder that exists and that you may write to",
    )
