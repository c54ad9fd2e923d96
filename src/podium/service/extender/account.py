"""Says what a scheduler has made of the cluster: to Prometheus, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from prometheus_client.core import GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric

from podium.service.extender.capacity import Capacity
from podium.service.extender.waits import Group, Waited, Waiting


@dataclass(frozen=True, slots=True)
class Account:
    """Is what one scheduler has made of the cluster and its pods by now."""

    scheduler: str
    policy: str  # of a twin; empty: this is the real cluster
    started_s: float  # when the twin was like the cluster, since 1970; 0: the real cluster
    capacity: Capacity
    waiting: Mapping[Group, Waiting]
    waited: Mapping[Group, Waited]  # the same groups

    def as_object(self) -> dict[str, Any]:
        """Writes the figures down as `GET /v1/outcome` gives them."""
        return {
            "scheduler": self.scheduler,
            "policy": self.policy,
            "started_s": self.started_s,
            **asdict(self.capacity),
            "pods": [
                {
                    **group._asdict(),
                    "waiting": now.pods,
                    "waiting_longest_s": now.longest_s,
                    "waiting_mean_s": now.mean_s,
                    "waited": self.waited[group].pods,
                    "waited_total_s": self.waited[group].total_s,
                }
                for group, now in sorted(self.waiting.items())
            ],
        }


def families(accounts: Sequence[Account]) -> Iterator[Metric]:
    """Gives the figures of all schedulers to Prometheus."""
    yield from _capacities(accounts)
    yield from _waits(accounts)
    yield _starts(accounts)


def _starts(accounts: Sequence[Account]) -> Metric:
    starts = _gauge(
        "twin_start_time_seconds",
        "When a twin was last made like the cluster, in seconds since 1970, by its policy.",
        "policy",
    )
    for each in accounts:
        if each.policy:
            starts.add_metric([each.scheduler, each.policy], each.started_s)
    return starts


def _gauge(name: str, help: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"podium_cluster_{name}", help, labels=("scheduler", *labels))


def _capacities(accounts: Sequence[Account]) -> Iterator[Metric]:
    gpus = _gauge("gpus", "GPUs of all nodes that are modelled.")
    allocated = _gauge("gpus_allocated", "GPUs that pods hold; parts count as such.")
    free = _gauge("gpus_free", "GPUs that are not allocated: stranded, broken or idle.", "kind")
    largest = _gauge("largest_pod_gpus", "The most whole GPUs that one pod could get on one node.")
    fitting = _gauge("fitting_pods", "Pods with so many whole GPUs that would find room.", "gpus")
    for each in accounts:
        name, capacity = each.scheduler, each.capacity
        gpus.add_metric([name], capacity.gpus)
        allocated.add_metric([name], capacity.gpus_allocated)
        largest.add_metric([name], capacity.largest_pod_gpus)
        for kind, amount in capacity.gpus_free.items():
            free.add_metric([name, kind], amount)
        for size, count in capacity.fitting_pods.items():
            fitting.add_metric([name, str(size)], count)
    yield from (gpus, allocated, free, largest, fitting)


def _waits(accounts: Sequence[Account]) -> Iterator[Metric]:
    # Prometheus calls the namespace of whom it asks "namespace".
    by = ("pod_class", "pod_namespace")
    waiting = _gauge("waiting_pods", "Pods that wait for a node.", *by)
    longest = _gauge("waiting_longest_seconds", "How long the first of those waits.", *by)
    mean = _gauge("waiting_mean_seconds", "How long those wait by now, on average.", *by)
    waited = SummaryMetricFamily(
        "podium_cluster_wait_seconds",
        "How long pods waited that got a node.",
        labels=("scheduler", *by),
    )
    for each in accounts:
        for group, now in each.waiting.items():
            labels = [each.scheduler, *group]
            waiting.add_metric(labels, now.pods)
            longest.add_metric(labels, now.longest_s)
            mean.add_metric(labels, now.mean_s)
        for group, past in each.waited.items():
            waited.add_metric([each.scheduler, *group], past.pods, past.total_s)
    yield from (waiting, longest, mean, waited)
