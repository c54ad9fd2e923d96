"""Remembers recent pods of a live cluster: what a policy takes for the demand to come."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from podium.kube.pod import Request
from podium.model.cluster import GpuKind
from podium.model.workload import Shapes
from podium.policies.demand import RecentPods

_LONGEST_SPEC = 4096
"""Characters of the GPU models that a pod may name; anybody can write them."""


class LiveWindow:
    """Keeps the window of a live cluster, by the UIDs of pods."""

    def __init__(self, most: int) -> None:
        self._pods = RecentPods[str](most)
        self._kinds: tuple[GpuKind, ...] = ()  # of which the last table was prepared

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: object) -> bool:
        return uid in self._pods

    def add(self, request: Request, uid: str = "") -> None:
        """Adds a pod; one that is known already keeps its place.

        A pod that the watch has not shown yet goes by the UID under which it was asked about.
        """
        if len(request.spec.gpu_spec) <= _LONGEST_SPEC:
            self._pods.add(request.uid or uid, request.record, request.spec.gpu_spec)

    def records(self) -> npt.NDArray[Any]:
        """Lists what the pods asked for, whatever GPU models they name."""
        return self._pods.records()

    def is_due(self, kinds: tuple[GpuKind, ...]) -> bool:
        """Tells whether a table must be prepared: many pods are new, or GPUs have new numbers."""
        return self._pods.is_due or kinds != self._kinds

    def prepared(self, kinds: tuple[GpuKind, ...]) -> None:
        """Notes for which GPUs there is a table now: with others, their numbers would be wrong."""
        self._kinds = kinds

    def shapes(self, kinds: tuple[GpuKind, ...] = ()) -> Shapes:
        """Counts the pods for a table that is prepared now, with GPU models as numbered now."""
        return self._pods.shapes(tuple(kind.model for kind in kinds))
