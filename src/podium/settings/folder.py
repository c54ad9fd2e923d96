"""Says what a podium.toml may set that merely stands in a folder: data, and nothing beyond."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

Rule = Callable[[object, Path], bool]
"""Returns whether a value is data, in a file of this folder."""

_NAME = re.compile(r"[\w-]*")


def no_value(_value: object, _folder: Path) -> bool:
    """Takes nothing: the setting reaches beyond data."""
    return False


def any_value(_value: object, _folder: Path) -> bool:
    """Takes everything: whatever it is, it is data."""
    return True


def names(value: object, _folder: Path) -> bool:
    """Takes names of what ships with Podium, separated by commas, and no file or run.

    >>> [names(text, Path()) for text in ("fgd", "fgd, first-fit", "fgd.py", "run:3f2a")]
    [True, True, False, False]
    """
    return all(_NAME.fullmatch(part.strip()) for part in str(value).split(","))


def inside(value: object, folder: Path) -> bool:
    """Takes names, and files of the folder: no link and no `..` leads out of it."""
    try:
        home = folder.resolve()
        parts = [str(value), *(part.strip() for part in str(value).split(","))]
        return all(
            not part.startswith("~") and (home / part).resolve().is_relative_to(home)
            for part in parts
        )
    except (OSError, RuntimeError, ValueError):  # a loop of links, a zero byte
        return False
