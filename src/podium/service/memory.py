"""Keeps observations before they are acknowledged, and learns from what is kept."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from structlog.typing import FilteringBoundLogger

from podium.errors import PodiumError
from podium.service.learner import AgentLearner
from podium.store import Follower, ObservationRecord, ObservationWriter, Rhythm, Store, Upkeep


class Memory:
    """Writes observations in groups and shows the learner all that any replica wrote."""

    def __init__(
        self, store: Store, learner: AgentLearner, rhythm: Rhythm, log: FilteringBoundLogger
    ) -> None:
        self._log = log
        self._follower = Follower(store, learner)
        self._writer = ObservationWriter(store.observations)
        self._upkeep = Upkeep(self._follower, store.observations, rhythm, self._report)
        self._thread = ThreadPoolExecutor(1, "podium-learner")
        self._reaching: asyncio.Future[None] | None = None
        self._is_started = False

    @property
    def last_id(self) -> int:
        """Gives the number of the last observation that is learned."""
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

    async def keep(self, record: ObservationRecord) -> int:
        """Stores an observation and gives its number; it is safe once this returns."""
        ids = await asyncio.wrap_future(self._writer.submit([record]))
        return ids[0]

    async def learn(self, id: int) -> None:
        """Waits until an observation is learned; those that wait share the work."""
        loop = asyncio.get_running_loop()
        while self.last_id < id:
            if self._reaching is None or self._reaching.done():
                work = loop.run_in_executor(self._thread, self._follower.reach, id)
                self._reaching = asyncio.ensure_future(work)
            try:
                await asyncio.shield(self._reaching)
            except PodiumError as error:
                self._report(error)
                return  # it is kept, and learned when the store can be read again

    def close(self) -> None:
        """Stores what was submitted, learns it and saves a last checkpoint."""
        self._writer.close()
        self._thread.shutdown()
        if self._is_started:
            self._upkeep.close()

    def _report(self, error: PodiumError) -> None:
        self._log.error("the store is in trouble", problem=str(error), hint=error.hint)
