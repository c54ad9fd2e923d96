"""Figures of online learning for Prometheus, under the names of earlier agents and our own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podium.service.http.metrics import FAST_S, BoundedCounter
from podium.service.learning.journal import Journal
from podium.service.learning.learner import AgentLearner


class LearningMetrics:
    """Counts decisions and observations."""

    def __init__(self) -> None:
        self._decisions = BoundedCounter(
            Counter(
                "scheduler_decisions",
                "Decisions by GPU type and kind.",
                ("gpu_type", "decision_type"),
                registry=None,
            )
        )
        self._observed = BoundedCounter(
            Counter(
                "scheduler_observe_events",
                "Observations that were stored, by job type and GPU type.",
                ("job_type", "gpu_type"),
                registry=None,
            )
        )
        self.scoring = Histogram(
            "scheduler_scoring_duration_seconds",
            "Seconds that a decision took, without HTTP.",
            buckets=FAST_S,
            registry=None,
        )
        self.committing = Histogram(
            "podium_observe_commit_seconds",
            "Seconds until an observation was stored.",
            registry=None,
        )

    def decided(self, gpu_type: str, decision_type: str) -> None:
        """Counts a decision."""
        self._decisions.increase(gpu_type, decision_type)

    def observed(self, job_type: str, gpu_type: str) -> None:
        """Counts an observation."""
        self._observed.increase(job_type, gpu_type)

    def collectors(self, learner: AgentLearner, journal: Journal) -> Sequence[Collector]:
        """Lists all figures, with those that are read when they are asked for."""
        counted = (self._decisions.counter, self._observed.counter, self.scoring, self.committing)
        return [*counted, AgentFigures(learner), *_journal_gauges(journal)]


def _journal_gauges(journal: Journal) -> list[Collector]:
    rows: tuple[tuple[str, str, Callable[[], float]], ...] = (
        (
            "podium_learned_id",
            "Id of the last observation that was learned.",
            lambda: journal.last_id,
        ),
        ("podium_refused", "Observations that cannot be learned from.", lambda: journal.refused),
        (
            "podium_store_trouble_seconds",
            "Seconds since the store was last writable; 0 while it is.",
            lambda: journal.health.trouble_s,
        ),
    )
    gauges: list[Collector] = []
    for name, help, read in rows:
        gauge = Gauge(name, help, registry=None)
        gauge.set_function(read)
        gauges.append(gauge)
    return gauges


class AgentFigures(Collector):
    """Reads an agent's figures when they are asked for."""

    def __init__(self, learner: AgentLearner) -> None:
        self._learner = learner

    def describe(self) -> Iterable[Metric]:
        """Lists nothing, so that metrics can be registered before the agent is ready."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Reads the current figures."""
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
                "Excess of the expected run time of choices over the best known types, as a share.",
                figures.regret,
            ),
            (
                "podium_observations",
                "Observations that were learned from.",
                float(figures.observations),
            ),
            ("podium_job_types", "Known job types.", float(figures.job_types)),
            ("podium_pairs", "Known pairs of job type and GPU type.", float(figures.pairs)),
        )
        return [GaugeMetricFamily(name, help, value=value) for name, help, value in rows]
