"""Adds up how long pods wait for a node, by class and namespace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
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
        known = self.waited.setdefault(self._group(*_asked(spec)), Waited())
        known.pods += 1
        known.total_s += max(0.0, wait_s)

    def waiting(self, pods: Iterable[tuple[PodSpec, float]], now_s: float) -> dict[Group, Waiting]:
        """Measures pods that wait since some time; groups that waited before have zeros."""
        since: dict[tuple[int, int, str], list[float]] = {}  # few ask for something different
        for spec, since_s in pods:
            since.setdefault(_asked(spec), []).append(since_s)
        waits: dict[Group, list[float]] = {group: [] for group in self.waited}
        for asked, each in since.items():
            waits.setdefault(self._group(*asked), []).extend(each)
        for group in waits:
            self.waited.setdefault(group, Waited())
        return {group: _summary(each, now_s) for group, each in waits.items()}

    def _group(self, gpu_count: int, gpu_milli: int, namespace: str) -> Group:
        return Group(_class_name(gpu_count, gpu_milli), self._namespaces.of(namespace))


@lru_cache(maxsize=1024)
def _class_name(gpu_count: int, gpu_milli: int) -> str:
    (number,) = class_of(np.array([(gpu_count, gpu_milli)], _ASKED)).tolist()
    return POD_CLASSES[number]


def _asked(spec: PodSpec) -> tuple[int, int, str]:
    return spec.gpu_count, spec.gpu_milli, spec.namespace or "default"


def _summary(since_s: list[float], now_s: float) -> Waiting:
    if not since_s:
        return Waiting()
    longest_s, mean_s = now_s - min(since_s), now_s - sum(since_s) / len(since_s)
    return Waiting(len(since_s), max(0.0, longest_s), max(0.0, mean_s))
