"""Follows runs over several sessions: who is at work, how long, how fast, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from podium.store.records import FAILED, FINISHED, INTERRUPTED, RUNNING, RunRecord
from podium.store.run_folder import RunFolder
from podium.store.runs import Runs

RATE_SPAN_S = 20
"""The rate is that of so many seconds."""

MOST_MARKS = 500


@dataclass(slots=True)
class Stopwatch:
    """Measures the time at work on a run, from the moment it is made."""

    clock: Callable[[], float]
    before_s: float = 0.0  # of earlier sessions
    _began: float = field(init=False)
    _marks: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = self.clock()

    @property
    def seconds(self) -> float:
        """Counts the time at work, earlier sessions included."""
        return self.before_s + self.clock() - self._began

    def rate(self, count: int) -> float:
        """Notes how many steps are done by now; returns how many a second there were lately."""
        now = self.clock()
        self._marks = [each for each in self._marks if now - each[0] < RATE_SPAN_S][-MOST_MARKS:]
        self._marks.append((now, count))
        first = self._marks[0]
        return (count - first[1]) / max(1e-6, now - first[0])


def status_of(record: RunRecord) -> str:
    """Returns the status of a run; one stored as running that no process has locked is interrupted.

    A process that is killed writes nothing down, but the system takes its lock away. A folder
    that is not here, or that this user may not read, may be on the machine of whoever shares the
    store: then the store is believed.
    """
    folder = RunFolder(Path(record.folder))
    with suppress(OSError):
        if record.status == RUNNING and record.folder and folder.path.is_dir():
            return RUNNING if folder.is_locked else INTERRUPTED
    return record.status


@contextmanager
def session(
    runs: Runs, run_id: str, stops: tuple[type[BaseException], ...] = (KeyboardInterrupt,)
) -> Iterator[None]:
    """Records that a run is worked on for the length of a block, and how that ended.

    A run that is stopped by one of `stops` counts as interrupted, by any other error as failed.
    """
    runs.update(run_id, status=RUNNING)
    try:
        yield
    except stops:
        runs.update(run_id, status=INTERRUPTED)
        raise
    except BaseException:
        runs.update(run_id, status=FAILED)
        raise
    runs.update(run_id, status=FINISHED)
