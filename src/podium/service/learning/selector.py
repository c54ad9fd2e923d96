"""Writes the pod fields that send a job to the nodes with a GPU type."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from podium.settings import GPU_LABELS

REFRESH_S = 10.0
"""For so long the labels of nodes are taken to be the same."""

MOST_SELECTIONS = 1000
"""GPU types whose selections are remembered; callers choose their names."""

_WORD = re.compile("[a-z0-9]+")

LabelValues = Callable[[str], Collection[str]]
"""Lists the values that nodes have under a label; none where no cluster is known."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Fields of a pod, and whether nodes have the label's value; None: nobody knows."""

    fields: dict[str, Any]
    is_on_nodes: bool | None


class Selector:
    """Selects nodes by the label under which a cluster names its GPU types.

    Where the cluster is known, a GPU type that no node has to the letter stands for the values that
    contain all of its words: A100-80GB for NVIDIA-A100-SXM4-80GB.
    """

    def __init__(self, label: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.label = GPU_LABELS.get(label, label)
        self.label_values: LabelValues = lambda _label: ()
        self._clock = clock
        self._read_s = -REFRESH_S
        self._known: frozenset[str] = frozenset()
        self._found: dict[str, Selection] = {}

    def select(self, gpu_type: str) -> Selection:
        """Returns the fields of a pod for a GPU type."""
        now_s = self._clock()
        if now_s - self._read_s >= REFRESH_S or len(self._found) >= MOST_SELECTIONS:
            self._known = frozenset(self.label_values(self.label))
            self._read_s = now_s
            self._found.clear()
        found = self._found.get(gpu_type)
        if found is None:
            found = self._found[gpu_type] = self._selection(gpu_type)
        return found

    def _selection(self, gpu_type: str) -> Selection:
        if not self._known:
            return Selection(self._fields([gpu_type]), None)
        values = [gpu_type] if gpu_type in self._known else self._alike(gpu_type)
        return Selection(self._fields(values or [gpu_type]), bool(values))

    def _alike(self, gpu_type: str) -> list[str]:
        words = set(_WORD.findall(gpu_type.lower()))
        return sorted(value for value in self._known if words <= set(_WORD.findall(value.lower())))

    def _fields(self, values: list[str]) -> dict[str, Any]:
        vendor = "amd.com" if self.label.startswith("amd.com/") else "nvidia.com"
        toleration = {"key": f"{vendor}/gpu", "operator": "Exists", "effect": "NoSchedule"}
        if len(values) == 1:
            return {"nodeSelector": {self.label: values[0]}, "tolerations": [toleration]}
        term = {"matchExpressions": [{"key": self.label, "operator": "In", "values": values}]}
        required = {"nodeSelectorTerms": [term]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return {"affinity": affinity, "tolerations": [toleration]}
