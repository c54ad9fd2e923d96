"""Figures for Prometheus: those of all requests, and whatever the components add."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
MOST_LABELS = 1000
"""Callers choose names; beyond this many label sets all others are counted together."""

FAST_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""Buckets of durations that are usually below a millisecond."""


class BoundedCounter:
    """Keeps the label sets of a counter at hand, and bounds their number."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._known: dict[tuple[str, ...], Counter] = {}

    def increase(self, *labels: str) -> None:
        """Counts one, under labels of its own or together with all others."""
        known = self._known.get(labels)
        if known is None:
            if len(self._known) >= MOST_LABELS:
                labels = (OTHER,) * len(labels)
            known = self._known.setdefault(labels, self.counter.labels(*labels))
        known.inc()


class Metrics:
    """Counts the requests of one service, and prints the figures of all its components."""

    def __init__(self) -> None:
        # There is no need for series that only say when another one began.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=False)
        self.in_flight = Gauge(
            "podium_requests_in_flight", "Requests being answered.", registry=self.registry
        )
        self._requests = Histogram(
            "podium_request_duration_seconds",
            "Seconds that a request took, by route and status.",
            ("route", "status"),
            buckets=FAST_S,
            registry=self.registry,
        )
        self._by_route: dict[tuple[str, int], Histogram] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Counts an answer; routes and statuses are few."""
        known = self._by_route.get((route, status))
        if known is None:
            known = self._requests.labels(route, str(status))
            self._by_route[route, status] = known
        known.observe(seconds)

    def add(self, collectors: Iterable[Collector]) -> None:
        """Adds figures of a component; a name that is taken is a bug, and raises ValueError."""
        for each in collectors:
            self.registry.register(each)

    def text(self) -> bytes:
        """Prints all figures in Prometheus's text format."""
        return generate_latest(self.registry)
