"""Gives a control plane a temporary folder, and removes those of others that were killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "podium-kube-"
LOCK = "lock"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Gives a new folder for as long as the block.

    Its lock is held until then. The system releases it with the process, however that ends, so
    a folder that nobody holds has been left behind.
    """
    remove_abandoned()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        with (folder / "unlocked").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Only now do others see it.
            (folder / "unlocked").rename(folder / LOCK)
            yield folder


def remove_abandoned() -> None:
    """Removes the folders whose processes were killed before they could."""
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        # Of another user, or just being removed.
        with suppress(OSError), lock.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file.fileno()).st_uid == os.getuid():
                shutil.rmtree(lock.parent, ignore_errors=True)
