"""Adds up how long pods wait for a node, by class and namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from podium.kube.pod import LivePod
from podium.model.workload import PodSpec
from podium.sim.metrics import POD_CLASSES, class_of

MOST_NAMESPACES = 20
"""Namespaces with figures of their own; all others are one."""

OTHER = "other"

_ASKED = np.dtype([("gpu_count", np.int32), ("gpu_milli", np.int32)])


class Group(NamedTuple):
    """Names pods that are counted together."""

    pod_class: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Tells of the pods of a group that wait now."""

    pods: int = 0
    longest_s: float = 0.0
    mean_s: float = 0.0


@dataclass(slots=True)
class Waited:
    """Adds up the pods of a group that have waited and got a node."""

    pods: int = 0
    total_s: float = 0.0


class NamespaceLabels:
    """Chooses the namespaces that are told apart: who has one keeps it, so that counters go on."""

    def __init__(self) -> None:
        self._labels: dict[str, None] = {}

    def begin(self, pods: Iterable[LivePod]) -> None:
        """Takes the namespaces with the most GPU pods first, then those with the most pods."""
        counts: Counter[str] = Counter()
        gpu_pods: Counter[str] = Counter()
        for pod in pods:
            counts[pod.namespace] += 1
            gpu_pods[pod.namespace] += pod.spec.gpu_count > 0
        for name in sorted(counts, key=lambda name: (-gpu_pods[name], -counts[name], name)):
            self.of(name)

    def of(self, namespace: str) -> str:
        """Gives the label of a namespace."""
        if namespace not in self._labels:
            if len(self._labels) >= MOST_NAMESPACES:
                return OTHER
            self._labels[namespace] = None
        return namespace


class Waits:
    """Counts the pods of one scheduler that waited, and measures those that wait."""

    def __init__(self, namespaces: NamespaceLabels) -> None:
        self._namespaces = namespaces
        self.waited: dict[Group, Waited] = {}

    def end(self, spec: PodSpec, wait_s: float) -> None:
        """Counts a pod that got a node."""
        (group,) = self._groups([spec])
        known = self.waited.setdefault(group, Waited())
        known.pods += 1
        known.total_s += max(0.0, wait_s)

    def waiting(self, pods: Iterable[tuple[PodSpec, float]], now_s: float) -> dict[Group, Waiting]:
        """Measures pods that wait since some time; groups that waited before have zeros."""
        listed = list(pods)
        waits: dict[Group, list[float]] = {group: [] for group in self.waited}
        groups = self._groups([spec for spec, _ in listed])
        for group, (_, since_s) in zip(groups, listed, strict=True):
            waits.setdefault(group, []).append(max(0.0, now_s - since_s))
        for group in waits:
            self.waited.setdefault(group, Waited())
        return {
            group: Waiting(len(each), max(each), sum(each) / len(each)) if each else Waiting()
            for group, each in waits.items()
        }

    def _groups(self, specs: list[PodSpec]) -> list[Group]:
        asked = np.array([(spec.gpu_count, spec.gpu_milli) for spec in specs], _ASKED)
        names = [self._namespaces.of(spec.namespace or "default") for spec in specs]
        classes = map(POD_CLASSES.__getitem__, class_of(asked).tolist())
        return [Group(*each) for each in zip(classes, names, strict=True)]


Groups = Mapping[Group, Waiting]
