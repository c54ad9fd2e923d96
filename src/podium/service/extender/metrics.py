"""Figures of the extender for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.registry import Collector

from podium.policies import Policy
from podium.service.http.metrics import FAST_S


class ExtenderMetrics:
    """Counts what was asked, what could not be scored, and whether scores were followed."""

    def __init__(self, prefix: str = "podium_extender_") -> None:
        self._prefix = prefix
        self._duration = Histogram(
            f"{prefix}duration_seconds",
            "Seconds that an answer took, without HTTP, by verb.",
            ("verb",),
            buckets=FAST_S,
            registry=None,
        )
        self._neutral = self._counter(
            "neutral", "Answers that prefer no node, by verb and reason.", ("verb", "reason")
        )
        self._binds = self._counter(
            "binds",
            "Pods that were bound after being scored, by node: best (none has more points), "
            "preference (another, while pods or nodes have preferences) or other.",
            ("node",),
        )
        self._shadow = self._counter(
            "shadow",
            "Pods that a shadow policy scored, by policy and best node: same or other.",
            ("policy", "node"),
        )
        self._held = self._counter("held", "Pods that the filter held back.", ())
        self._events = self._counter(
            "events",
            "Events about pods that were bound, by outcome: written, failed or dropped.",
            ("outcome",),
        )
        self._policy = Gauge(
            f"{prefix}policy_info",
            "Is 1 for each policy, by role (active or shadow) and whether it is validated.",
            ("policy", "role", "validated"),
            registry=None,
        )
        self._durations = {
            verb: self._duration.labels(verb) for verb in ("prioritize", "filter", "bind", "score")
        }

    def answered(self, verb: str, seconds: float) -> None:
        """Counts an answer."""
        self._durations[verb].observe(seconds)

    def neutral(self, verb: str, reason: str) -> None:
        """Counts an answer that prefers no node."""
        self._neutral.labels(verb, reason).inc()

    def bound(self, node: Literal["best", "preference", "other"]) -> None:
        """Counts a pod that was bound."""
        self._binds.labels(node).inc()

    def shadowed(self, policy: str, *, is_same: bool) -> None:
        """Counts a pod that a shadow policy scored."""
        self._shadow.labels(policy, "same" if is_same else "other").inc()

    def policies(self, policies: Sequence[Policy]) -> None:
        """Names the policy that scores, and then its shadows."""
        for place, each in enumerate(policies):
            role = "shadow" if place else "active"
            self._policy.labels(each.name, role, each.validation.word).set(1)

    def held(self) -> None:
        """Counts a pod that was held back."""
        self._held.inc()

    def event(self, outcome: Literal["written", "failed", "dropped"]) -> None:
        """Counts an Event about a pod."""
        self._events.labels(outcome).inc()

    def collectors(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> list[Collector]:
        """Lists all figures, with gauges that are read when they are asked for."""
        read: Sequence[Collector] = [self._gauge(name, *each) for name, each in gauges.items()]
        counters = (
            self._duration,
            self._neutral,
            self._binds,
            self._shadow,
            self._held,
            self._events,
            self._policy,
        )
        return [*counters, *read]

    def _counter(self, name: str, help: str, labels: tuple[str, ...]) -> Counter:
        return Counter(f"{self._prefix}{name}", help, labels, registry=None)

    def _gauge(self, name: str, help: str, read: Callable[[], float]) -> Gauge:
        gauge = Gauge(f"{self._prefix}{name}", help, registry=None)
        gauge.set_function(read)
        return gauge
