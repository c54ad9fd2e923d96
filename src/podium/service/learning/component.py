"""The component that learns online: its agent, its journal of observations and its routes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

from prometheus_client.registry import Collector
from pydantic import Field
from structlog.typing import FilteringBoundLogger

from podium.errors import MissingError
from podium.online import Parameters
from podium.service.components import Component, Facts, JsonRoute, Readiness
from podium.service.http.daemon_executor import DaemonExecutor
from podium.service.http.logs import KIND
from podium.service.learning.journal import Journal
from podium.service.learning.learner import AgentLearner
from podium.service.learning.metrics import LearningMetrics
from podium.service.learning.routes import LearningRoutes
from podium.service.learning.selector import Selector
from podium.settings import Settings, shown
from podium.store import Rhythm, Store

RETRY_S = 1.0
"""Seconds between attempts to reach a store that is unavailable at the start."""


class Learning(Component):
    """Answers where jobs should run, and learns from how long they ran."""

    name = "learning"
    description = "Scores jobs on GPU types and learns from how long they ran."
    sections = ("online", "store")
    ready_fields = MappingProxyType(
        {
            "store": Annotated[
                Literal["ok", "unavailable"],
                Field(description="unavailable: the last attempt to write to the store failed."),
            ]
        }
    )

    def __init__(self, settings: Settings, store: Store, log: FilteringBoundLogger) -> None:
        serve = settings.serve
        self._log = log
        self._settings = settings
        self._is_loaded = False
        self.learner = AgentLearner(Parameters.of(settings.online))
        rhythm = Rhythm(serve.poll_s, serve.checkpoint_interval_s, serve.retention_observations)
        self.journal = Journal(store, self.learner, rhythm, log, serve.store_limit_s)
        self.metrics = LearningMetrics()
        self.selector = Selector(settings.online.gpu_label)
        self._routes: LearningRoutes | None = None

    @property
    def failure(self) -> Exception | None:
        """Returns the bug that broke learning while the service ran."""
        return self.journal.failure

    def routes(self) -> Sequence[JsonRoute]:
        """Lists score, observe, assign and forget."""
        serve = self._settings.serve
        parts = (self.learner, self.journal, self.metrics, self.selector)
        self._routes = LearningRoutes(*parts, self._log, serve)
        return self._routes.listed()

    def collectors(self) -> Sequence[Collector]:
        """Lists counters of decisions and observations, and figures of the agent."""
        is_legacy = self._settings.online.legacy_metrics
        return self.metrics.collectors(self.learner, self.journal, is_legacy=is_legacy)

    def config(self) -> Mapping[str, Any]:
        """Returns the parameters of the agent, under the names that they have always had."""
        values = {
            row.path.removeprefix("online."): row.value
            for row in shown(self._settings)
            if row.path.startswith("online.")
        }
        # Assignment is always there; callers of the agent before looked at this switch.
        return {**values, "enable_sinkhorn": True}

    async def start(self) -> Facts:
        """Learns all that is stored, as soon as the store can be reached."""
        replayed = await self._replay()
        self.journal.start()
        self._is_loaded = True
        return {"replayed": replayed, "last_id": self.journal.last_id}

    async def stop(self) -> Facts:
        """Stores what was submitted, and saves what was learned."""
        if self._routes is not None:
            self._routes.close()
        await asyncio.to_thread(self.journal.close)
        return {"last_id": self.journal.last_id}

    def readiness(self) -> Readiness:
        """Reports whether observations can be stored.

        Scores need no store, so one that cannot be written for a while is reported but leaves the
        service ready. A file that was deleted does not: what is observed from then on is lost.
        """
        health = self.journal.health
        if not self._is_loaded:
            return Readiness("stored observations are still being loaded")
        if self.failure is not None:
            return Readiness(
                f"learning failed: {type(self.failure).__name__}",
                hint="see the service's log, and restart it",
            )
        if health.is_lost:
            return Readiness(
                "the database file was deleted, moved or replaced",
                hint="put it back, or restart the service",
            )
        return Readiness(details={"store": "unavailable" if health.is_troubled else "ok"})

    async def _replay(self) -> int:
        loop, executor = asyncio.get_running_loop(), DaemonExecutor("podium-replay")
        try:
            while True:
                try:
                    return await loop.run_in_executor(executor, self._load)
                except MissingError as error:
                    facts = {"problem": str(error), "hint": error.hint, KIND: "unreachable"}
                    self._log.warning("cannot reach the database", **facts)
                    await asyncio.sleep(RETRY_S)
        finally:
            executor.shutdown(wait=False)

    def _load(self) -> int:
        count = self.journal.replay()
        self.learner.agent.figures()  # or the first request would wait for the posterior
        return count
