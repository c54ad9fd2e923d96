"""Follows all kinds of objects of a cluster at once, and knows how current that is."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from podium.kube.client import KubeClient, KubeError
from podium.kube.reflector import Backoff, Clock, Health, Reflector, Sink, Sleep
from podium.kube.resources import Resource, served

DISCOVERY_S = 600.0
"""How often the cluster is asked which kinds it has: operators are installed later."""


@dataclass(slots=True)
class ClusterWatch:
    """Runs a reflector for each kind that the cluster has; to be entered like a file."""

    client: KubeClient
    sink: Sink
    resources: Sequence[Resource] = ()  # empty: all that Podium reads and the cluster has
    namespace: str = ""
    random: random.Random = field(default_factory=random.Random)
    clock: Clock = time.monotonic
    sleep: Sleep = asyncio.sleep
    problem: KubeError | None = None  # why the cluster does not say which kinds it has
    reflectors: dict[str, Reflector] = field(default_factory=dict)  # by kind
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __aenter__(self) -> ClusterWatch:
        if self.resources:
            self._follow(self.resources)
        else:
            self._start(self._discover())
        return self

    async def __aexit__(self, *exit_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def synced(self) -> None:
        """Waits until every kind was listed that can be.

        Raises:
            KubeError: a kind without which nothing goes is refused.
        """
        while not self._is_synced():
            self.check()
            self._changed.clear()
            await self._changed.wait()

    @property
    def is_synced(self) -> bool:
        """Tells whether every kind was listed that can be."""
        with suppress(KubeError):
            return self._is_synced()
        return False

    def _is_synced(self) -> bool:
        needed = [each for each in self.reflectors.values() if each.resource.is_needed]
        for problem in (self.problem, *(each.health.problem for each in needed)):
            if problem is not None and problem.is_final and not self._has_begun:
                raise problem
        return bool(self.reflectors) and all(
            each.health.is_synced or each.health.is_refused for each in self.reflectors.values()
        )

    @property
    def _has_begun(self) -> bool:
        """Tells whether the cluster has shown what is needed, so that refusals will pass."""
        needed = [each for each in self.reflectors.values() if each.resource.is_needed]
        return bool(needed) and all(each.health.is_synced for each in needed)

    @property
    def age_s(self) -> float:
        """Tells how long nothing was heard of the kind of which that is longest, of those needed.

        An idle cluster says about once a minute that nothing happened. What no longer follows
        will never hear anything.
        """
        needed = [each.health for each in self.reflectors.values() if each.resource.is_needed]
        heard = [health.heard_s for health in needed]
        known = [time_s for time_s in heard if time_s is not None]
        if self.failure is not None:
            return float("inf")
        return self.clock() - min(known) if known and len(known) == len(heard) else float("inf")

    def health(self) -> dict[str, Health]:
        """Gives the health of every kind by its name."""
        return {name: each.health for name, each in self.reflectors.items()}

    def refused(self) -> list[str]:
        """Says which kinds are there and may not be read."""
        found = []
        for each in self.reflectors.values():
            problem = each.health.problem
            if each.health.is_refused and problem is not None and problem.is_forbidden:
                found.append(f"{each.resource.plural} are not read: {problem.message}")
        return found

    @property
    def failure(self) -> Exception | None:
        """Gives what ended a reflector; none ends by itself."""
        for task in self._tasks:
            if task.done() and not task.cancelled():
                error = task.exception()
                return error if isinstance(error, Exception) else RuntimeError("a watch has ended")
        return None

    def problems(self) -> list[str]:
        """Says of which kinds the cluster is not heard now, and why."""
        ended = [] if self.failure is None else [f"a watch has ended: {self.failure!r}"]
        found = [] if self.problem is None else [str(self.problem)]
        known = [each for each in self.health().values() if not each.is_refused]
        return [*ended, *found, *(str(each.problem) for each in known if each.problem is not None)]

    async def _discover(self) -> None:
        backoff = Backoff(self.random)
        while True:
            try:
                self._follow(await served(self.client))
                self.problem = None
                backoff.reset()
                wait_s = DISCOVERY_S
            except KubeError as error:
                self.problem = error
                wait_s = max(error.wait_s, backoff.next_s())
                self._changed.set()
            await self.sleep(wait_s)

    def _follow(self, resources: Sequence[Resource]) -> None:
        for resource in resources:
            if resource.name not in self.reflectors:
                reflector = Reflector(
                    self.client, resource, self.sink, self.random, self.namespace, self.clock,
                    self.sleep, changed=self._changed,
                )  # fmt: skip
                self.reflectors[resource.name] = reflector
                self._start(reflector.run())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(lambda _: self._changed.set())

    def check(self) -> None:
        """Raises what ended a reflector: a sink that takes no more, or a bug. Nothing else does."""
        if self.failure is not None:
            raise self.failure
