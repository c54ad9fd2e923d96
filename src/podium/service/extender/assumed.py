"""Remembers where pods probably went that were scored a moment ago.

The watch of the API server lags behind kube-scheduler, which assumes a pod on its node at once.
Without this, all pods of a burst would be scored against the state before the first of them. A
call of prioritize is no placement: kube-scheduler may try a gang in one rack after another. So a
pod is assumed on the best node of its latest call alone, for a short time, until it is bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.fit import held_gpus
from podium.model.records import POD
from podium.model.state import occupied

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Assumed:
    """Is a pod that is assumed on a node."""

    record: bytes  # of POD, as the pod is on the GPUs of that node
    node: str
    slots: int  # bit mask of the GPUs
    until_s: float
    is_claimed: bool  # kube-scheduler has said so; else it is only the best node


class AssumedPods:
    """Keeps assumed pods by UID; the clock is passed in."""

    def __init__(self, lifetime_s: float, clock: Callable[[], float]) -> None:
        self._lifetime_s = lifetime_s
        self._clock = clock
        # The pod that is assumed last ends last, since all live equally long.
        self._pods: dict[str, Assumed] = {}

    def __len__(self) -> int:
        self._drop_old()
        return len(self._pods)

    def assume(
        self, uid: str, record: np.void, node: str, slots: int, *, is_claimed: bool = False
    ) -> None:
        """Assumes a pod on a node, and no longer where it was assumed before."""
        self._pods.pop(uid, None)
        until_s = self._clock() + self._lifetime_s
        self._pods[uid] = Assumed(record.tobytes(), node, slots, until_s, is_claimed)

    def uids(self) -> list[str]:
        """Lists the pods that are assumed."""
        self._drop_old()
        return list(self._pods)

    def drop(self, uid: str) -> None:
        """Forgets a pod: it is bound, or gone."""
        self._pods.pop(uid, None)

    def get(self, uid: str) -> Assumed | None:
        """Returns what is assumed of a pod."""
        self._drop_old()
        return self._pods.get(uid)

    def unclaimed(self) -> set[str]:
        """Names the pods of which only the best node is known."""
        return {uid for uid, each in self._pods.items() if not each.is_claimed}

    def applied(
        self,
        nodes: Array,
        index: Callable[[str], int | None],
        without: Collection[str] = (),
    ) -> Array:
        """Returns nodes on which assumed pods run, but for some, such as the one being scored."""
        self._drop_old()
        placed = [
            (each, number)
            for uid, each in self._pods.items()
            if uid not in without and (number := index(each.node)) is not None
        ]
        if not placed:
            return nodes
        records = np.frombuffer(b"".join([each.record for each, _ in placed]), POD)
        at = np.array([number for _, number in placed])
        slots = np.array([each.slots for each, _ in placed])
        found = occupied(nodes, records, at, slots)
        if (found["gpu_milli_left"] >= np.minimum(nodes["gpu_milli_left"], 0)).all():
            return found
        return occupied(nodes, records, at, _apart(nodes, records, at, slots))

    def _drop_old(self) -> None:
        now_s = self._clock()
        while self._pods:
            uid = next(iter(self._pods))
            if self._pods[uid].until_s > now_s:
                return
            del self._pods[uid]


def _apart(nodes: Array, records: Array, at: Array, slots: Array) -> Array:
    """Moves assumed pods to GPUs that are free.

    The watch shows that a pod was bound, seldom to which GPUs: those that are taken for its own
    may be the ones on which another pod is assumed.
    """
    left = nodes["gpu_milli_left"].tolist()
    found = slots.copy()
    for i, (record, node) in enumerate(zip(records, at.tolist(), strict=True)):
        count, milli = int(record["gpu_count"]), int(record["gpu_milli"])
        chosen = [slot for slot in range(len(left[node])) if slots[i] >> slot & 1]
        if any(left[node][slot] < milli for slot in chosen):
            held = held_gpus(count, milli, left[node])
            chosen, found[i] = [*held.slots], held.mask
        for slot in chosen:
            left[node][slot] -= milli
    return found
