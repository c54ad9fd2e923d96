"""Stores observations before they are acknowledged, and learns from what is stored."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from podium.errors import MissingError, PodiumError, UsageError
from podium.service.components import TRY_AGAIN
from podium.service.http.daemon_executor import DaemonExecutor
from podium.service.http.logs import KIND
from podium.service.learning.arrivals import Arrivals, TooLate
from podium.service.learning.learner import AgentLearner
from podium.store import (
    DamagedRow,
    Follower,
    LostStore,
    ObservationRecord,
    ObservationWriter,
    Receipt,
    Rhythm,
    Store,
    Upkeep,
)

T = TypeVar("T")

LOCK_SHARE = 0.8
"""Share of an observation's time limit that the database may wait for a lock."""

CLOSE_LIMIT_S = 15.0
"""How long shutting down waits for the store: a lock, the last observations, a checkpoint."""


class _BehindError(Exception):
    """What is stored is not learned yet, and to learn it may take seconds."""


class Journal:
    """Writes observations in groups and shows the learner all that any replica wrote.

    However long the store takes, nobody waits longer than the limit.
    """

    def __init__(
        self,
        store: Store,
        learner: AgentLearner,
        rhythm: Rhythm,
        log: FilteringBoundLogger,
        limit_s: float = 5.0,
    ) -> None:
        self._log = log
        self._limit_s = limit_s
        self._learner = learner
        self._observations = store.observations
        self._follower = Follower(store, learner, on_damage=self._note_damage)
        self._writer = ObservationWriter(store.observations)
        self.health = StoreHealth(log)
        self._upkeep = Upkeep(
            self._follower, store.observations, rhythm, self._report, self._look_at_store
        )
        self._thread = DaemonExecutor("podium-learner")
        self._newcomers = DaemonExecutor("podium-newcomers")
        self._arrivals = Arrivals()
        self._reaching: Future[None] | None = None
        self._is_started = False
        self.failure: Exception | None = None  # a bug: learning is broken

    @property
    def last_id(self) -> int:
        """Returns the id of the last observation that was learned."""
        return self._follower.progress.last_id

    @property
    def refused(self) -> int:
        """Counts observations in the store that cannot be learned."""
        return self._follower.progress.refused

    def replay(self) -> int:
        """Learns all that is in the store, and counts it; may take a while."""
        return self._follower.catch_up()

    def start(self) -> None:
        """Begins to follow other replicas and to save checkpoints."""
        self._upkeep.start()
        self._is_started = True

    async def store(self, records: Sequence[ObservationRecord]) -> list[Receipt]:
        """Stores observations, all or none; they are safe once this returns.

        Raises:
            ReusedName: a key or a job was that of another observation.
            MissingError: they are not stored, or it is not certain within the limit that they are.
        """
        with self._watched():
            promised = self._writer.submit(records)
            return await self._settled(promised, lambda: self._writer.withdraw(promised))

    async def store_new(self, record: ObservationRecord, check: Callable[[], None]) -> Receipt:
        """Stores an observation with new names, if a check still agrees when its turn comes.

        All that was stored before is learned by then, whichever replica stored it: no more names
        are stored than there is room for, however many arrive at the same time.

        Raises:
            ReusedName: a key or a job was that of another observation.
            MissingError: it is not stored, or it is not certain within the limit that it is.
            Exception: whatever the check raises; nothing is stored then.
        """
        with self._watched():
            promised = self._newcomers.submit(self._add_new, record, check)
            return await self._settled(promised, promised.cancel)

    def _add_new(self, record: ObservationRecord, check: Callable[[], None]) -> Receipt:
        """Stores an observation once all before it are learned, without holding up others."""

        def look() -> None:
            # Others cannot store anything meanwhile, and to forget a name may take seconds.
            if not self._follower.keep_up():
                raise _BehindError
            check()

        until_s = time.monotonic() + self._limit_s
        while time.monotonic() < until_s:
            self._follower.catch_up()
            with suppress(_BehindError):
                return self._observations.add_checked(record, look)
        told = f"names were still being forgotten after {self._limit_s:g} s"
        raise MissingError(told, hint=TRY_AGAIN)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except UsageError:
            raise
        except PodiumError as error:
            self.health.fail(error)
            raise

    async def _settled(self, promised: Future[T], withdraw: Callable[[], bool]) -> T:
        try:
            stored = await self._arrivals.of(promised, self._limit_s)
        except TooLate:
            is_certain = withdraw()
            raise MissingError(
                f"the database did not store the observation within {self._limit_s:g} s",
                hint="check what holds its lock, and its disk"
                + ("" if is_certain else "; the observation may still be stored"),
            ) from None
        self.health.recover()
        return stored

    async def names(
        self, job_types: Sequence[str], gpu_types: Sequence[str]
    ) -> tuple[set[str], set[str]]:
        """Finds which of the names are known by now, whether learned or merely stored."""
        loop = asyncio.get_running_loop()
        asked = loop.run_in_executor(self._thread, self._known_names, job_types, gpu_types)
        try:
            async with asyncio.timeout(self._limit_s):
                return await asyncio.shield(asked)
        except TimeoutError:
            problem = f"the database did not answer within {self._limit_s:g} s"
            raise MissingError(problem, hint="check the health of the database") from None

    def _known_names(
        self, job_types: Sequence[str], gpu_types: Sequence[str]
    ) -> tuple[set[str], set[str]]:
        self._follower.catch_up()
        jobs, gpus = self._learner.agent.names()
        jobs |= self._observations.names("job_type", job_types)
        return jobs, gpus | self._observations.names("gpu_type", gpu_types)

    async def learn(self, id: int, waited_s: float = 0.0) -> bool:
        """Waits until an observation is learned, within the rest of the time limit.

        Those that wait share the work. Returns whether it is learned: what is not is stored, and
        learned later.
        """
        until_s = time.monotonic() + self._limit_s - waited_s
        while self.last_id < id:
            if self._reaching is None or self._reaching.done():
                self._reaching = self._thread.submit(self._follower.reach, id)
            try:
                await self._arrivals.of(self._reaching, max(until_s - time.monotonic(), 0.0))
            except TooLate:
                return False
            except Exception as error:  # noqa: BLE001 - it is stored, which is what counts
                self._report(error)
                return False
        return True

    def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        """Stores what was submitted, learns it and saves a last checkpoint.

        A store that does not answer is given up: whatever was acknowledged is in it already.
        """
        closing = threading.Thread(target=self._close, name="podium-closing", daemon=True)
        closing.start()
        closing.join(limit_s)
        if closing.is_alive():
            self._log.error(
                f"the database did not finish within {limit_s:g} s",
                not_confirmed=self._writer.unsettled + self._newcomers.unsettled,
                hint="none of these was acknowledged; those that were are stored",
            )

    def _close(self) -> None:
        self._newcomers.shutdown()
        self._writer.close()
        self._thread.shutdown()
        if self._is_started:
            self._upkeep.close()

    def _look_at_store(self) -> None:
        try:
            self._observations.probe(is_thorough=self.health.is_troubled)
        except PodiumError as error:
            self.health.fail(error)
        else:
            self.health.recover()

    def _note_damage(self, damaged: DamagedRow) -> None:
        facts = {"table": damaged.table, "id": damaged.id, "problem": str(damaged)}
        facts |= {"hint": damaged.hint, KIND: "damaged rows"}
        self._log.error("a row in the database is damaged and was skipped", **facts)

    def _report(self, error: Exception) -> None:
        if not isinstance(error, PodiumError):
            self.failure = error
            self._log.error("learning failed", exc_info=error, **{KIND: "failures of learning"})
            return
        facts = {"problem": str(error), "hint": error.hint, KIND: "database error"}
        self._log.error("database error", **facts)


class StoreHealth:
    """Tracks whether the last attempt to write to the store succeeded; threads may share it.

    Scores need no store, so trouble alone does not make the service unready. A file that was
    deleted does: whatever is observed from then on would be lost.
    """

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._problem: PodiumError | None = None
        self._since_s = 0.0

    @property
    def is_troubled(self) -> bool:
        """Returns whether the last attempt to write to the store failed."""
        return self._problem is not None

    @property
    def is_lost(self) -> bool:
        """Returns whether the store is no longer where it was opened."""
        return isinstance(self._problem, LostStore)

    @property
    def trouble_s(self) -> float:
        """Returns for how many seconds the store could not be written."""
        return time.monotonic() - self._since_s if self.is_troubled else 0.0

    def fail(self, error: PodiumError) -> None:
        """Notes that the store could not be written, and logs each new failure."""
        before = self._problem
        self._problem = error
        if before is None:
            self._since_s = time.monotonic()
        if before is None or type(before) is not type(error):
            message = "cannot write to the database"
            self._log.error(message, problem=str(error), hint=error.hint)

    def recover(self) -> None:
        """Notes that the store was written."""
        if self._problem is not None:
            seconds = round(self.trouble_s, 3)
            self._problem = None
            self._log.info("the database can be written again", seconds=seconds)
