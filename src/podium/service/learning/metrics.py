"""Figures of online learning for Prometheus, under names of our own and, if asked, of old."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from podium.online import Answer, Candidate
from podium.service.http.metrics import FAST_S, BoundedCounter
from podium.service.learning.journal import Journal
from podium.service.learning.learner import AgentLearner

WINDOW, MOST_CANDIDATES = 1000, 16
"""Last decisions whose regret is estimated, and candidates that are kept of each."""

LEGACY = {
    "podium_online_decisions": "scheduler_decisions",
    "podium_online_observed": "scheduler_observe_events",
    "podium_online_scoring_seconds": "scheduler_scoring_duration_seconds",
    "podium_online_exploration_ratio": "scheduler_exploration_ratio",
    "podium_online_uncertainty_seconds": "scheduler_avg_uncertainty",
    "podium_online_exploration_price_ratio": "scheduler_regret_estimate",
}
"""Names that earlier agents gave to figures that are still there."""


class Decision(NamedTuple):
    """Is what is kept of one decision."""

    chosen: Candidate
    candidates: tuple[Candidate, ...]  # all of them, or of many the one that saves the most


class LearningMetrics:
    """Counts decisions and observations."""

    def __init__(self) -> None:
        self._decisions = BoundedCounter(
            Counter(
                "podium_online_decisions",
                "Decisions by GPU type and kind.",
                ("gpu_type", "decision_type"),
                registry=None,
            )
        )
        self._observed = BoundedCounter(
            Counter(
                "podium_online_observed",
                "Observations that were stored, by job type and GPU type.",
                ("job_type", "gpu_type"),
                registry=None,
            )
        )
        self._failed = BoundedCounter(
            Counter(
                "podium_online_failed",
                "Observed runs that failed or timed out, by job type and GPU type.",
                ("job_type", "gpu_type"),
                registry=None,
            )
        )
        self.scoring = Histogram(
            "podium_online_scoring_seconds",
            "Seconds that a decision took, without HTTP.",
            buckets=FAST_S,
            registry=None,
        )
        self.committing = Histogram(
            "podium_observe_commit_seconds",
            "Seconds until an observation was stored.",
            registry=None,
        )
        self._recent: deque[Decision] = deque(maxlen=WINDOW)

    def decided(self, answer: Answer) -> None:
        """Counts a decision."""
        self._decisions.increase(answer.chosen_gpu_type, answer.decision_type)
        self._recent.append(decision_of(answer))

    def observed(self, job_type: str, gpu_type: str, outcome: str) -> None:
        """Counts an observation."""
        self._observed.increase(job_type, gpu_type)
        if outcome:
            self._failed.increase(job_type, gpu_type)

    def collectors(
        self, learner: AgentLearner, journal: Journal, *, is_legacy: bool
    ) -> Sequence[Collector]:
        """Lists all figures, with those that are read when they are asked for."""
        agent = AgentFigures(learner, self._recent)
        own = [self._decisions.counter, self._observed.counter, self.scoring, agent]
        legacy = [Renamed(each) for each in own] if is_legacy else []
        return [*own, self._failed.counter, self.committing, *legacy, *_journal_gauges(journal)]


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


class Renamed(Collector):
    """Shows figures under the names that they had before."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def describe(self) -> Iterable[Metric]:
        """Lists nothing: names are known when figures are read."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Reads those that have such a name."""
        for metric in self._collector.collect():
            name = LEGACY.get(metric.name)
            if name is None:
                continue
            made = Metric(name, metric.documentation, metric.type, metric.unit)
            made.samples = [
                each._replace(name=name + each.name.removeprefix(metric.name))
                for each in metric.samples
            ]
            yield made


class AgentFigures(Collector):
    """Reads an agent's figures when they are asked for."""

    def __init__(self, learner: AgentLearner, recent: deque[Decision]) -> None:
        self._learner = learner
        self._recent = recent

    def describe(self) -> Iterable[Metric]:
        """Lists nothing, so that metrics can be registered before the agent is ready."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Reads the current figures."""
        figures = self._learner.agent.figures()
        rows = (
            (
                "podium_online_exploration_ratio",
                "Share of exploratory decisions in the window.",
                figures.exploration_ratio,
            ),
            (
                "podium_online_uncertainty_seconds",
                "Mean standard deviation of the expected run time over known pairs.",
                figures.average_uncertainty_s,
            ),
            (
                "podium_online_exploration_price_ratio",
                "Price of exploration: expected time of choices above that of the best known "
                "candidates, as a share. What nobody has tried costs nothing here.",
                figures.exploration_price,
            ),
            (
                "podium_online_regret_ratio",
                f"Estimated regret of the last {WINDOW:,} decisions: how much longer than on the "
                "fastest candidate, whichever that may be, choices are expected to take at least, "
                "as a share. Candidates that nobody has tried count.",
                regret(list(self._recent)),
            ),
            (
                "podium_observations",
                "Observations that were learned from.",
                float(figures.observations),
            ),
            (
                "podium_online_in_flight",
                "Jobs that were scored under an id and not observed yet.",
                float(figures.in_flight),
            ),
            (
                "podium_online_changes",
                "Changes of run times, of pairs and of whole GPU types, that were noticed.",
                float(figures.changes),
            ),
            ("podium_job_types", "Known job types.", float(figures.job_types)),
            ("podium_pairs", "Known pairs of job type and GPU type.", float(figures.pairs)),
        )
        return [GaugeMetricFamily(name, help, value=value) for name, help, value in rows]


def decision_of(answer: Answer) -> Decision:
    """Keeps of an answer what its regret is estimated from; of many candidates the one that tells.

    To estimate it at once takes longer than to keep a few candidates.
    """
    chosen, candidates = answer.chosen, answer.candidates
    if len(candidates) > MOST_CANDIDATES:
        candidates = (max(candidates, key=lambda each: _saving(chosen, each)),)
    return Decision(chosen, candidates)


def regret(decisions: Sequence[Decision]) -> float:
    """Estimates how much longer choices take than the fastest candidates, at least, as a share.

    Of each decision it is the most that any one other candidate is expected to save, where it turns
    out to be faster: the best of several may save more.
    """
    lost = math.fsum(
        max((_saving(each.chosen, other) for other in each.candidates), default=0.0)
        for each in decisions
    )
    spent = math.fsum(each.chosen.mu for each in decisions)
    return lost / (spent - lost) if spent > lost else 0.0


def _saving(chosen: Candidate, other: Candidate) -> float:
    """Returns the expectation of max(chosen - other, 0) where both are log-normal (Margrabe)."""
    variance = _log_variance(chosen) + _log_variance(other)
    if other is chosen or variance <= 0.0:
        return 0.0
    spread = math.sqrt(variance)
    upper = (math.log(chosen.mu / other.mu) + 0.5 * variance) / spread
    return chosen.mu * _normal(upper) - other.mu * _normal(upper - spread)


def _log_variance(known: Candidate) -> float:
    return math.log1p((known.sigma / known.mu) ** 2)


def _normal(value: float) -> float:
    return 0.5 * math.erfc(-value / math.sqrt(2.0))
