"""Keeps the pods that a policy takes for the demand to come: one rule, simulated and live.

The window holds the latest distinct pods that could be placed, up to and including the one that is
scored. A pod that comes again keeps its place. A table is prepared anew, before a pod is scored,
once an eighth of the window is new. Nothing here goes by a clock, so a run can be repeated.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from podium.model.records import POD
from podium.model.workload import Shapes, TypicalPods, model_mask

Name = TypeVar("Name", bound=Hashable)

Demand = Literal["trace", "seen", "warm"]
"""Which pods a table is prepared from: all of the trace, or those seen so far; `warm`: as if a day
of the same pods had come before."""

WINDOW_PODS = 2000
"""Pods in the window, unless a live service is told otherwise."""

_PART = 8


class RecentPods(Generic[Name]):
    """Keeps what the latest pods asked for, each pod once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._asked: OrderedDict[Name, tuple[bytes, str]] = OrderedDict()
        self._new = 0  # pods added since the last preparation

    def __len__(self) -> int:
        return min(len(self._asked), self._most)

    def __contains__(self, pod: object) -> bool:
        return pod in self._asked

    def __iter__(self) -> Iterator[Name]:
        return iter(self._asked)

    def add(self, pod: Name, record: Any, gpu_spec: str) -> None:
        """Adds a pod, by whatever names it; one that is known already keeps its place."""
        if pod in self._asked:
            return
        asked = record.copy()
        asked["gpu_models"] = 0  # numbered when they are counted
        self._asked[pod] = (asked.tobytes(), gpu_spec)
        self._new += 1
        # Who leaves is forgotten when a table is prepared, or here where none ever is.
        if len(self._asked) > self._most + _step(self._most):
            self._asked.popitem(last=False)

    def records(self) -> npt.NDArray[Any]:
        """Lists what the pods asked for, whatever GPU models they name."""
        return np.frombuffer(b"".join(record for record, _ in self._asked.values()), POD)

    @property
    def is_due(self) -> bool:
        """Tells whether enough pods are new for a table to be prepared before the next score."""
        return self._new >= _step(len(self))

    @property
    def lacking(self) -> int:
        """Counts how many more pods make a table due."""
        more = 0
        while self._new + more < _step(min(len(self._asked) + more, self._most)):
            more += 1
        return more

    def shapes(
        self, gpu_models: tuple[str, ...] = (), typical: TypicalPods | None = None
    ) -> Shapes:
        """Counts the distinct pods for a table that is prepared now, those seen first at first."""
        while len(self._asked) > self._most:
            self._asked.popitem(last=False)
        self._new = 0
        counts = Counter(self._asked.values())
        pods = np.frombuffer(b"".join(record for record, _ in counts), POD).copy()
        specs = tuple(gpu_spec for _, gpu_spec in counts)
        pods["gpu_models"] = [model_mask(gpu_spec, gpu_models) for gpu_spec in specs]
        weights = np.array(list(counts.values()), np.float64)
        return Shapes(pods, specs, weights, typical or TypicalPods())


def _step(size: int) -> int:
    return max(1, size // _PART)
