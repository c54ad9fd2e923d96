"""Writes Events about pods that were bound after being scored, beside the answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from structlog.typing import FilteringBoundLogger

from podium.service.extender.history import Entry, summary
from podium.service.extender.metrics import ExtenderMetrics
from podium.service.http.logs import KIND

REASON = "PodiumScored"
COMPONENT = "podium"
MOST_WAITING = 1000
"""Pods that wait for their Event; more get none."""

PAUSE_S = 0.1
"""Between two Events: the API server has other things to do."""

LONGEST_NAME = 253
"""Of an object, in Kubernetes."""

Write = Callable[[Mapping[str, Any]], Awaitable[str]]
"""Creates an Event; returns what went wrong, or nothing."""


class EventWriter:
    """Writes one Event after another, and none twice: a pod is scheduled whether it has one."""

    def __init__(
        self, metrics: ExtenderMetrics, log: FilteringBoundLogger, pause_s: float = PAUSE_S,
        most_waiting: int = MOST_WAITING,
    ) -> None:  # fmt: skip
        self._metrics = metrics
        self._log = log
        self._pause_s = pause_s
        self._waiting: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue(most_waiting)

    def bound(self, entry: Entry) -> None:
        """Hears of a pod that was bound; never waits."""
        try:
            self._waiting.put_nowait(event_of(entry, time.time()))
        except asyncio.QueueFull:
            self._metrics.event("dropped")

    async def run(self, write: Write) -> None:
        """Writes Events until it is cancelled."""
        while True:
            event = await self._waiting.get()
            try:
                problem = await write(event)
            except Exception as error:  # noqa: BLE001 - the next one may go better
                problem = f"{type(error).__name__}: {error}"
            self._metrics.event("failed" if problem else "written")
            if problem:
                facts = {"pod": _pod_of(event), "problem": problem, KIND: "unwritten events"}
                self._log.warning("an Event was not written", **facts)
            await asyncio.sleep(self._pause_s)


def event_of(entry: Entry, now_s: float) -> dict[str, Any]:
    """Describes how a pod was scored, as an Event on it."""
    pod = entry.decision.pod
    at = datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    unique = f".{int(now_s * 1e6):x}"  # as kube-scheduler names its own
    name = pod.name[: LONGEST_NAME - len(unique)].rstrip(".-")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}{unique}", "namespace": pod.namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace, "name": pod.name,
            "uid": pod.uid,
        },
        "type": "Normal",
        "reason": REASON,
        "message": summary(entry),
        "source": {"component": COMPONENT},
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }  # fmt: skip


def _pod_of(event: Mapping[str, Any]) -> str:
    return f"{event['involvedObject']['namespace']}/{event['involvedObject']['name']}"
