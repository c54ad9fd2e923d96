"""Says whether somebody else could have written what lies on a disk."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = 0
ALL, OTHERS = 0o002, 0o022
"""Rights to write: of everybody, and of everybody and the group."""


def stranger_at(path: Path, rights: int) -> str:
    """Explains who else may have written a file or folder; empty where only this user and root can.

    Raises:
        OSError: it cannot be looked at.
    """
    return stranger_in(path.stat(), rights)


def stranger_in(about: os.stat_result, rights: int) -> str:
    """Explains it of what was looked at already."""
    if about.st_uid not in (os.getuid(), ROOT):
        return f"belongs to user {about.st_uid}"
    return "can be written to by others" if about.st_mode & rights else ""
