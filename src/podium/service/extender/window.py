"""Remembers recent pods: what a policy takes for the demand to come."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.kube.pod import Request
from podium.model.cluster import GpuKind
from podium.model.records import POD
from podium.model.workload import Shapes, model_mask

_LONGEST_SPEC = 4096
"""Characters of the GPU models that a pod may name; anybody can write them."""


class RecentPods:
    """Keeps what the latest pods asked for, each pod once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked: OrderedDict[str, tuple[bytes, str]] = OrderedDict()
        self.changes = 0

    def __len__(self) -> int:
        return len(self._asked)

    def add(self, request: Request, uid: str = "") -> None:
        """Adds a pod; one that is known already keeps its place.

        A pod that the watch has not shown yet goes by the UID under which it was asked about.
        """
        uid = request.uid or uid
        if uid in self._asked or len(request.spec.gpu_spec) > _LONGEST_SPEC:
            return
        self._asked[uid] = (request.record.tobytes(), request.spec.gpu_spec)
        self.changes += 1
        if len(self._asked) > self._most:
            self._asked.popitem(last=False)

    def records(self) -> npt.NDArray[Any]:
        """Lists what the pods asked for; GPU models are numbered as they were then."""
        return np.frombuffer(b"".join(record for record, _ in self._asked.values()), POD)

    def shapes(self, kinds: Sequence[GpuKind] = ()) -> Shapes:
        """Counts the distinct pods, with GPU models as they are numbered now."""
        gpu_models = tuple(kind.model for kind in kinds)
        counts = Counter(self._asked.values())
        pods = np.array([np.frombuffer(record, POD)[0] for record, _ in counts], POD)
        for pod, (_, gpu_spec) in zip(pods, counts, strict=True):
            pod["gpu_models"] = model_mask(gpu_spec, gpu_models)
        specs = tuple(gpu_spec for _, gpu_spec in counts)
        return Shapes(pods, specs, np.array(list(counts.values()), np.float64))
