"""Counts for Prometheus, under the names of the scheduler agent before and under our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podium.service.learning.learner import AgentLearner
from podium.service.learning.journal import Memory

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"
MOST_LABELS = 1000
"""Callers choose names; beyond so many label sets all others are counted together."""

_FAST_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Children:
    """Keeps the label sets of a counter at hand, and bounds their number."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._known: dict[tuple[str, ...], Counter] = {}

    def increase(self, *labels: str) -> None:
        """Counts one; the name that is counted together with others is the first label."""
        known = self._known.get(labels)
        if known is None:
            if len(self._known) >= MOST_LABELS:
                labels = (OTHER,) * len(labels)
            known = self._known.setdefault(labels, self._counter.labels(*labels))
        known.inc()


class Metrics:
    """Holds the counters and histograms of one service."""

    def __init__(self) -> None:
        # There is no need for series that only say when another one began.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=False)
        self._decisions = Children(
            Counter(
                "scheduler_decisions",
                "Decisions by GPU type and kind.",
                ("gpu_type", "decision_type"),
                registry=self.registry,
            )
        )
        self._observed = Children(
            Counter(
                "scheduler_observe_events",
                "Observations that were kept, by job type and GPU type.",
                ("job_type", "gpu_type"),
                registry=self.registry,
            )
        )
        self.scoring = Histogram(
            "scheduler_scoring_duration_seconds",
            "Seconds that a decision took, without HTTP.",
            buckets=_FAST_S,
            registry=self.registry,
        )
        self.committing = Histogram(
            "podium_observe_commit_seconds",
            "Seconds until an observation was safe in the store.",
            registry=self.registry,
        )
        self.in_flight = Gauge(
            "podium_requests_in_flight", "Requests being answered.", registry=self.registry
        )
        self._requests = Histogram(
            "podium_request_duration_seconds",
            "Seconds that a request took, by route and status.",
            ("route", "status"),
            buckets=_FAST_S,
            registry=self.registry,
        )
        self._by_route: dict[tuple[str, int], Histogram] = {}

    def decided(self, gpu_type: str, decision_type: str) -> None:
        """Counts a decision."""
        self._decisions.increase(gpu_type, decision_type)

    def observed(self, job_type: str, gpu_type: str) -> None:
        """Counts an observation."""
        self._observed.increase(job_type, gpu_type)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Counts an answer; routes and statuses are few."""
        known = self._by_route.get((route, status))
        if known is None:
            known = self._requests.labels(route, str(status))
            self._by_route[route, status] = known
        known.observe(seconds)

    def watch(self, learner: AgentLearner, memory: Memory) -> None:
        """Adds what is known at the time it is asked."""
        self.registry.register(AgentFigures(learner))
        rows: tuple[tuple[str, str, Callable[[], float]], ...] = (
            ("podium_learned_id", "Last observation that is learned.", lambda: memory.last_id),
            ("podium_refused", "Observations that cannot be learned.", lambda: memory.refused),
            (
                "podium_store_trouble_seconds",
                "Seconds since the store could not be written; 0: it can.",
                lambda: memory.health.trouble_s,
            ),
        )
        for name, help, read in rows:
            Gauge(name, help, registry=self.registry).set_function(read)

    def text(self) -> bytes:
        """Gives all figures in Prometheus's text format."""
        return generate_latest(self.registry)


class AgentFigures(Collector):
    """Reads an agent's figures when they are asked for."""

    def __init__(self, learner: AgentLearner) -> None:
        self._learner = learner

    def describe(self) -> Iterable[Metric]:
        """Lists nothing: names need no agent that is ready."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Gives the figures of this moment."""
        figures = self._learner.agent.figures()
        rows = (
            (
                "scheduler_exploration_ratio",
                "Share of exploratory decisions in the window.",
                figures.exploration_ratio,
            ),
            (
                "scheduler_avg_uncertainty",
                "Mean standard deviation of the expected run time over known pairs, in seconds.",
                figures.average_uncertainty_s,
            ),
            (
                "scheduler_regret_estimate",
                "Expected run time of choices above that of the best known types, as a share.",
                figures.regret,
            ),
            (
                "podium_observations",
                "Observations that were learned from.",
                float(figures.observations),
            ),
            ("podium_job_types", "Job types that are known.", float(figures.job_types)),
            ("podium_pairs", "Known pairs of job type and GPU type.", float(figures.pairs)),
        )
        return [GaugeMetricFamily(name, help, value=value) for name, help, value in rows]
