"""Holds what a source gives: a cluster, a workload, and what was left out on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from podium.model.cluster import Cluster, NodeSpec
from podium.model.workload import Workload
from podium.traces.kubernetes.contest import Contest, PodName
from podium.traces.kubernetes.documents import Document
from podium.traces.notes import WAITING, untried


@dataclass(frozen=True, slots=True)
class Experiment:
    """Says how a `simon/v1alpha1` Config wants its pods offered."""

    ratio: float | None  # arrived GPU demand as a share of the cluster, None = the pods as they are
    seed: int | None
    is_shuffled: bool


@dataclass(frozen=True, slots=True)
class Doubt:
    """Says why an answer about a pod may be wrong, as not all that it asks for is read."""

    text: str
    is_of_yes: bool  # what is not read keeps it off nodes; otherwise it opens some to it


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Holds nodes, pods, or both, as one source gave them."""

    name: str
    cluster: Cluster | None
    workload: Workload | None
    experiment: Experiment | None = None
    notes: tuple[str, ...] = ()  # rows left out, settings not honoured
    left_out: Mapping[str, int] = field(default_factory=dict)  # pods of a dump, by what they are
    gaps: tuple[str, ...] = ()  # what is not known of pods, in a sentence each
    doubts: Mapping[PodName, Doubt] = field(default_factory=dict)
    suspended: Mapping[str, int] = field(default_factory=dict)  # jobs left out so, by kind
    lost: tuple[NodeSpec, ...] = ()  # nodes that could not be modelled, as far as they are known
    of_nodes: tuple[tuple[Path, Document], ...] = field(default=(), repr=False)  # as manifests say
    contest: Contest | None = None  # of pods that wait, for volumes
    on: Trace | None = None  # whose nodes stand in for those of the file

    @property
    def is_of_cluster(self) -> bool:
        """Tells whether the pods are those of a Kubernetes cluster, of no published experiment."""
        has_names = self.workload is not None and bool(self.workload.namespaces)
        return has_names and self.experiment is None

    @property
    def untried(self) -> tuple[str, ...]:
        """Says in words what waits for something else than a node, and was left out."""
        return untried(self.left_out, self.suspended)

    @property
    def waiting(self) -> str:
        """Names the kinds of that, as --waiting takes them."""
        return ",".join(each for each in WAITING if self.left_out.get(each))
