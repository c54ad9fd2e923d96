"""Says how a run stands: what the store says of it, unless nobody works on it any more."""

from __future__ import annotations

from pathlib import Path

from podium.search.run.folder import RunFolder
from podium.store.records import INTERRUPTED, RUNNING, RunRecord


def standing_of(record: RunRecord) -> str:
    """Gives the status of a run; one that is said to run, and that no process holds, is cut off.

    A process that is killed writes nothing down, but the system takes its lock away. A folder
    that is not here may be on the machine that shares the store: then the store is believed.
    """
    folder = RunFolder(Path(record.folder))
    if record.status == RUNNING and record.folder and folder.path.is_dir():
        return RUNNING if folder.is_locked else INTERRUPTED
    return record.status
