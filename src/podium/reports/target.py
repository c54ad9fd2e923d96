"""Judges a file that is to be written before the work for it begins."""

from __future__ import annotations

import os
from pathlib import Path

from podium.errors import InputError, UsageError


def checked_target(path: Path, suffixes: tuple[str, ...]) -> str:
    """Gives the suffix that names the format; refuses a file that could not be written."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise UsageError(
            f'the format "{path.suffix or path.name}" cannot be written',
            where=str(path),
            hint=f"name a file that ends in {' or '.join(suffixes)}",
        )
    if not path.parent.is_dir():
        raise InputError.at(path, "its folder is not there", hint=f"make the folder {path.parent}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError.at(path, "it cannot be written", hint="name another file")
    return suffix
