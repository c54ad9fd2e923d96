"""Improves an assignment by rings of moves, until none lowers the cost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

_ROUNDING = 1e-12
"""Differences of costs below this share of the largest are rounding."""


class Moves:
    """Holds an assignment and, for every two columns, the cheapest move between them.

    The last node of the graph is free capacity: a ring through it changes how full columns are.
    """

    def __init__(self, costs: Array, columns: Columns, room: Columns) -> None:
        self.columns = columns
        self._costs = costs
        self._room = room
        self._load = np.bincount(columns, minlength=len(room))
        size = len(room)
        self._weight = np.full((size + 1, size + 1), np.inf)
        self._mover = np.zeros((size, size), dtype=np.intp)
        self._least = _ROUNDING * max(float(costs.max()), np.finfo(float).tiny)
        for column in range(size):
            self._weigh(column)

    def improve(self) -> None:
        """Takes rings as long as they lower the cost."""
        most = 50 * (len(self.columns) + len(self._room))
        for _ in range(most):
            ring = self._ring()
            if not ring:
                return
            self._take(ring)

    def _weigh(self, column: int) -> None:
        size = len(self._room)
        self._weight[column, size] = 0.0 if self._load[column] < self._room[column] else np.inf
        rows = np.flatnonzero(self.columns == column)
        self._weight[size, column] = 0.0 if len(rows) else np.inf
        self._weight[column, :size] = np.inf
        if len(rows):
            gain = self._costs[rows] - self._costs[rows, column][:, None]
            best = gain.argmin(axis=0)
            self._mover[column] = rows[best]
            self._weight[column, :size] = gain[best, np.arange(size)]
            self._weight[column, column] = np.inf

    def _ring(self) -> list[int]:
        """Finds a negative cycle by Bellman and Ford's algorithm from all nodes at once."""
        size = len(self._weight)
        nodes = np.arange(size)
        distance, before = np.zeros(size), np.full(size, -1)
        for _ in range(size + 1):
            paths = distance[:, None] + self._weight
            via = paths.argmin(axis=0)
            reached = paths[via, nodes]
            is_shorter = reached < distance - self._least
            if not is_shorter.any():
                return []
            distance = np.where(is_shorter, reached, distance)
            before = np.where(is_shorter, via, before)
            ring = _cycle(before.tolist())
            if ring:
                return ring
        return []

    def _take(self, ring: list[int]) -> None:
        """Moves a job along each edge of a ring."""
        size = len(self._room)
        edges = list(zip(ring, [*ring[1:], ring[0]], strict=True))
        movers = [(self._mover[a, b], b) for a, b in edges if a < size and b < size]
        for job, column in movers:
            self.columns[job] = column
        self._load = np.bincount(self.columns, minlength=size)
        for column in ring:
            if column < size:
                self._weigh(column)


def _cycle(before: list[int]) -> list[int]:
    """Finds a cycle among the predecessors, in the order of the edges."""
    seen = [-1] * len(before)
    for start in range(len(before)):
        node = start
        while node >= 0 and seen[node] < 0:
            seen[node] = start
            node = before[node]
        if node >= 0 and seen[node] == start:
            ring = [node]
            step = before[node]
            while step != node:
                ring.append(step)
                step = before[step]
            return ring[::-1]
    return []
