"""Looks after a follower: new observations, checkpoints and retention, each in its time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from podium.store.closing import Closing
from podium.store.follower import Follower
from podium.store.observations import Observations


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How often each task of the upkeep is done."""

    poll_s: float = 1.0  # between looks for what other replicas stored
    checkpoint_s: float = 300.0
    keep: int = 1000  # observations of each pair that stay


class Upkeep(Closing):
    """Runs the upkeep in a thread of its own between `start` and `close`.

    A store that cannot be reached for a while stops nothing: the trouble is reported and the work
    done later.
    """

    def __init__(
        self,
        follower: Follower,
        observations: Observations,
        rhythm: Rhythm,
        report: Callable[[Exception], None],
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self._follower = follower
        self._observations = observations
        self._rhythm = rhythm
        self._report = report
        self._look = look  # at whatever else should be looked at, as often as for observations
        self._saved_s: float | None = None
        self._wake = threading.Event()
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="podium-upkeep", daemon=True)

    def step(self, now_s: float) -> None:
        """Does what is due at a moment; checkpoints come before what they allow to delete."""
        self._follower.catch_up()
        if self._saved_s is None:
            self._saved_s = now_s
        if now_s - self._saved_s >= self._rhythm.checkpoint_s:
            self._saved_s = now_s
            self._follower.checkpoint()
            self._observations.prune(self._rhythm.keep)

    def start(self) -> Self:
        """Begins to work."""
        self._thread.start()
        return self

    def nudge(self) -> None:
        """Wakes the upkeep, since there is something new."""
        self._wake.set()

    def close(self) -> None:
        """Stops the work, learns what is left and saves a last checkpoint."""
        self._is_closed = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        self._attempt(self._finish)

    def __enter__(self) -> Self:
        return self.start()

    def _work(self) -> None:
        while not self._is_closed:
            self._wake.clear()
            self._attempt(lambda: self.step(time.monotonic()))
            self._attempt(self._look)
            if not self._is_closed:
                self._wake.wait(self._rhythm.poll_s)

    def _finish(self) -> None:
        self._follower.catch_up()
        self._follower.checkpoint()

    def _attempt(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - a thread that ends in silence helps nobody
            self._report(error)
