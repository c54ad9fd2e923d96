"""Gathers what the application is made of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from structlog.typing import FilteringBoundLogger

from podium.errors import MissingError, PodiumError
from podium.service.learner import AgentLearner
from podium.service.memory import Memory
from podium.service.metrics import Metrics
from podium.service.phase import DRAINING, FAILED, REPLAYING, Phase
from podium.service.workshop import Workshop
from podium.settings import Settings

RETRY_S = 1.0


@dataclass(slots=True)
class Parts:
    """Holds the parts of one service; the application only connects them."""

    settings: Settings
    learner: AgentLearner
    memory: Memory
    log: FilteringBoundLogger
    token: str | None = None
    metrics: Metrics = field(default_factory=Metrics)
    phase: Phase = field(default_factory=Phase)
    failure: PodiumError | None = None  # why the service cannot go on

    async def wake(self) -> None:
        """Replays what is in the store; the service is ready afterwards."""
        loop, workshop = asyncio.get_running_loop(), Workshop("podium-replay")
        while self.phase.name == REPLAYING:
            try:
                count = await loop.run_in_executor(workshop, self._replay)
            except MissingError as error:
                self.log.warning("the store cannot be reached", problem=str(error), hint=error.hint)
                await asyncio.sleep(RETRY_S)
            except PodiumError as error:
                self.failure, self.phase.name = error, FAILED
                return
            else:
                self.memory.start()
                self.phase.wake()
                self.log.info("ready", replayed=count, last_id=self.memory.last_id)

    def _replay(self) -> int:
        count = self.memory.replay()
        self.learner.agent.figures()  # or the first request would wait for the posterior
        return count

    async def rest(self) -> None:
        """Stores and saves what is left."""
        self.phase.name = DRAINING
        await asyncio.to_thread(self.memory.close)
        self.log.info("stopped", last_id=self.memory.last_id)
