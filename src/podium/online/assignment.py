"""Assigns jobs to columns with capacities: a transport plan, rounded and then improved.

The plan is rounded job by job. What is left to gain is a ring of moves (a job from here to there,
one from there to a third place, ...) that ends where it began or at free capacity, and lowers the
cost. Rings are found as negative cycles in the small graph of columns until there are none, which
is the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podium.errors import UsageError
from podium.online.answer import Assignment
from podium.online.sinkhorn import transport_plan

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

_ROUNDING = 1e-12
"""Differences of costs below this share of the largest are rounding."""


def assign_costs(costs: Array, capacities: Sequence[int]) -> Assignment:
    """Assigns every row to one column; costs may be infinite where a row may not go.

    Raises:
        UsageError: the capacities are too small, or a number cannot be used.
    """
    _check(costs, capacities)
    if not len(costs):
        return Assignment((), 0.0, ())
    room = np.minimum(np.array(capacities, dtype=np.float64), len(costs))
    is_open = room > 0
    plan = np.zeros(costs.shape)
    _check_open(costs, is_open)
    plan[:, is_open] = transport_plan(costs[:, is_open], room[is_open])
    moves = Moves(_weighable(costs), round_plan(plan, room), room.astype(np.intp))
    moves.improve()
    columns = moves.columns
    total = costs[np.arange(len(costs)), columns]
    if not np.isfinite(total).all():
        raise _too_small("not all jobs fit on the GPU types that they may use")
    rows = tuple(tuple(row.tolist()) for row in plan)
    return Assignment(tuple(columns.tolist()), float(total.sum()), rows)


def round_plan(plan: Array, room: Array) -> Columns:
    """Assigns each row to the column with most of it that has room, the most decided rows first."""
    left = room.copy()
    columns = np.zeros(len(plan), dtype=np.intp)
    for row in np.argsort(-plan.max(axis=1), kind="stable"):
        columns[row] = np.argmax(np.where(left >= 1, plan[row], -1.0))
        left[columns[row]] -= 1
    return columns


def _weighable(costs: Array) -> Array:
    """Makes forbidden choices dearer than everything else together."""
    above = costs - costs.min(axis=1, keepdims=True)
    finite = above[np.isfinite(above)]
    return np.where(np.isfinite(above), above, (float(finite.max()) + 1.0) * (len(costs) + 1))


def _check(costs: Array, capacities: Sequence[int]) -> None:
    if costs.ndim != 2 or costs.shape[1] != len(capacities) or not len(capacities):
        raise UsageError(
            f"costs of shape {costs.shape} do not match {len(capacities)} capacities",
            where="costs",
            hint="give a row for each job and in it a number for each capacity",
        )
    if np.isnan(costs).any() or (costs == -np.inf).any():
        raise UsageError(
            "a cost is not a number", where="costs", hint="give finite numbers in every row"
        )
    if any(each < 0 for each in capacities):
        raise UsageError(
            "a capacity is negative", where="capacities", hint="give whole numbers from 0"
        )
    if sum(capacities) < len(costs):
        raise _too_small(f"{len(costs)} jobs do not fit into a capacity of {sum(capacities)}")


def _check_open(costs: Array, is_open: NDArray[np.bool_]) -> None:
    stuck = ~np.isfinite(costs[:, is_open]).any(axis=1)
    if stuck.any():
        raise _too_small(f"job {int(stuck.argmax())} may use no GPU type that has room")


def _too_small(message: str) -> UsageError:
    return UsageError(
        message, where="capacities", hint="raise the capacities or assign fewer jobs at once"
    )


class Moves:
    """An assignment and, for every two columns, the cheapest move between them.

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
        """Applies cyclic exchanges as long as they lower the cost."""
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
