"""Lists the nodes and GPUs that a pod may go to, as the net sees them; this imports Numba.

It is the arithmetic of the network itself, compiled together with the loops over nodes and GPUs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.records import GPU_MILLI, POD
from podium.policies.jit import COMPILING, compiled, keep_on_disk, stamp_of
from podium.policies.networks import mlp
from podium.policies.networks.mlp import NUM_FEATURES, features
from podium.sim.stepping import Offer

Floats = npt.NDArray[np.float32]


MOST_LISTED = 2048
"""Places that are listed for one pod, at most."""


class Places:
    """Lists the places for an offered pod; places that look alike are listed once."""

    def __init__(self, table: npt.NDArray[np.float64], most: int = MOST_LISTED) -> None:
        self._table = table
        self._seen = np.zeros((most, NUM_FEATURES), np.float32)
        self.where = np.zeros((most, 2), np.int64)
        """Node and slot of each place that was listed last."""

    def all(self, offer: Offer) -> Floats:
        """Lists all that differ, by their lowest nodes."""
        pod = np.array([tuple(offer.pod)], POD)
        return self.listed(pod, offer.nodes, offer.feasible)

    def one(self, offer: Offer, node: int, slot: int) -> Floats:
        """Describes one place."""
        pod, left = np.array([tuple(offer.pod)], POD), offer.nodes[node]["gpu_milli_left"]
        rows = self.listed(pod, offer.nodes, np.arange(len(offer.nodes)) == node)
        # Of GPUs with as much left, the lowest is listed.
        slots = self.where[: len(rows), 1]
        same = [slot < 0 or bool(left[each] == left[slot]) for each in slots]
        place: Floats = rows[same.index(True)].copy()
        return place

    def listed(
        self, pod: npt.NDArray[Any], nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_]
    ) -> Floats:
        """Lists the places for the only pod of an array; the rows are overwritten by the next."""
        count = _lister()(pod, nodes, feasible, self._table, self._seen, self.where)
        return self._seen[:count]


def _list(pod: Any, nodes: Any, feasible: Any, table: Any, seen: Any, where: Any) -> int:
    """Writes features into `seen` and (node, slot) into `where`, and returns how many rows."""
    count, asked = 0, pod[0]
    by_slot = 0 < asked.gpu_milli < GPU_MILLI
    for node in range(len(nodes)):
        if not feasible[node] or count == len(seen):
            continue
        record = nodes[node]
        for slot in range(record.gpu_count if by_slot else 1):
            if by_slot and _is_twin_or_full(record, slot, asked.gpu_milli):
                continue
            values = features(asked, record, slot if by_slot else -1, table)
            if count < len(seen):
                for index in range(NUM_FEATURES):
                    seen[count, index] = values[index]
                if not _is_known(seen, count):
                    where[count, 0] = node
                    where[count, 1] = slot if by_slot else -1
                    count += 1
    return count


def _is_twin_or_full(record: Any, slot: int, gpu_milli: int) -> bool:
    if record.gpu_milli_left[slot] < gpu_milli:
        return True
    for lower in range(slot):  # noqa: SIM110 - the only form Numba compiles
        if record.gpu_milli_left[lower] == record.gpu_milli_left[slot]:
            return True
    return False


def _is_known(seen: Any, count: int) -> bool:
    """Tells whether an earlier row has the same features as the row at `count`."""
    for row in range(count):
        index = 0
        while index < NUM_FEATURES and seen[row, index] == seen[count, index]:
            index += 1
        if index == NUM_FEATURES:
            return True
    return False


@cache
def _lister() -> Any:
    loop: Any = _list
    with COMPILING:
        sources = (Path(__file__), Path(mlp.__file__))
        stamp = stamp_of([path.read_text(encoding="utf-8") for path in sources])
        made = compiled(loop, stamp[:24])
        keep_on_disk(made, loop, stamp)
        return made
