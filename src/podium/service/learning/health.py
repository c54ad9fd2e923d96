"""Says whether the store takes what it is given."""

from __future__ import annotations

import time

from structlog.typing import FilteringBoundLogger

from podium.errors import PodiumError
from podium.store import LostStore


class Health:
    """Holds what the last attempt to write to the store came to; threads may share it.

    Scores need no store, so trouble alone is no reason to send nobody here any more. A file that
    was deleted is: whatever is told from then on would be lost.
    """

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._problem: PodiumError | None = None
        self._since_s = 0.0

    @property
    def is_troubled(self) -> bool:
        """Tells whether the store could not be written when that was last tried."""
        return self._problem is not None

    @property
    def is_lost(self) -> bool:
        """Tells whether the store is no longer where it was opened."""
        return isinstance(self._problem, LostStore)

    @property
    def trouble_s(self) -> float:
        """Gives how long the store could not be written."""
        return time.monotonic() - self._since_s if self.is_troubled else 0.0

    def fail(self, error: PodiumError) -> None:
        """Notes that the store could not be written, and logs what is new about it."""
        before = self._problem
        self._problem = error
        if before is None:
            self._since_s = time.monotonic()
        if before is None or type(before) is not type(error):
            message = "the store cannot be written"
            self._log.error(message, problem=str(error), hint=error.hint)

    def recover(self) -> None:
        """Notes that the store was written."""
        if self._problem is not None:
            seconds = round(self.trouble_s, 3)
            self._problem = None
            self._log.info("the store can be written again", seconds=seconds)
