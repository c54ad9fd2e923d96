"""Assigns jobs to columns with capacities, at the lowest total cost.

Jobs come one by one. Each takes the cheapest way to free capacity: into a column, or into a full
one whose cheapest mover makes room in another, and so on (successive shortest paths; Jonker and
Volgenant, 1987, for columns that hold many). Columns have prices that keep every such move from
being cheaper than none, so that the search is Dijkstra's and the assignment optimal at every step.
Differences of costs are compared as they are: nothing is rounded to a share of the largest cost,
so that a cost of 1e15 hides no other. An infinite cost marks what may not be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.errors import UsageError

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

_LARGE, _SCALE = 1e280, 2.0**-200
"""Costs beyond could not be added up; a power of two takes nothing from their digits."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """Which column each job gets, and what that costs."""

    columns: tuple[int, ...]  # for each job
    cost: float
    gpu_types: tuple[str, ...] = ()  # of the columns, where they are known

    def as_object(self) -> dict[str, Any]:
        """Returns the assignment as JSON types: names of GPU types where they are known."""
        named: Sequence[int | str] = self.columns
        if self.gpu_types:
            named = [self.gpu_types[column] for column in self.columns]
        return {"assignment": list(named), "cost": self.cost}


def assign_costs(costs: Array, capacities: Sequence[int]) -> Assignment:
    """Assigns every row to one column; costs may be infinite where a row may not go.

    Raises:
        UsageError: the capacities are too small, or a number cannot be used.
    """
    _check(costs, capacities)
    if not len(costs):
        return Assignment((), 0.0)
    room = np.minimum(capacities, len(costs)).astype(np.intp)
    _check_open(costs, room > 0)
    filling = _Filling(_above_cheapest(costs), room)
    for row in range(len(costs)):
        if not filling.add(row):
            raise _too_small("not all jobs fit on the GPU types that they may use")
    columns = filling.columns
    total = math.fsum(costs[np.arange(len(costs)), columns].tolist())
    return Assignment(tuple(columns.tolist()), total)


def _above_cheapest(costs: Array) -> Array:
    """Takes the costs of each row above its cheapest, which changes no difference."""
    finite = costs[np.isfinite(costs)]
    scaled = costs * _SCALE if np.abs(finite).max() > _LARGE else costs
    return np.asarray(scaled - scaled.min(axis=1, keepdims=True))


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


class _Filling:
    """An assignment of the first rows, with the cheapest move between every two columns."""

    def __init__(self, costs: Array, room: Columns) -> None:
        self.columns = np.full(len(costs), -1, dtype=np.intp)
        self._costs = np.where(room > 0, costs, np.inf)
        self._room = room
        self._load = np.zeros(len(room), dtype=np.intp)
        self._price = np.zeros(len(room))  # never above zero
        self._move = np.full((len(room), len(room)), np.inf)  # cost of the cheapest, from and to
        self._mover = np.zeros((len(room), len(room)), dtype=np.intp)

    def add(self, row: int) -> bool:
        """Adds a row along the cheapest path to free capacity; returns whether there is one."""
        distance = self._costs[row] - self._price
        before = np.full(len(self._room), -1)
        is_settled = np.zeros(len(self._room), dtype=bool)
        while True:
            column = int(np.where(is_settled, np.inf, distance).argmin())
            length = distance[column]
            if is_settled[column] or length == np.inf:
                return False
            if self._load[column] < self._room[column]:
                break
            is_settled[column] = True
            # Prices keep moves from being cheaper than none; what is below zero is rounding.
            step = np.maximum(self._move[column] + self._price[column] - self._price, 0.0)
            is_shorter = ~is_settled & (length + step < distance)
            distance[is_shorter] = length + step[is_shorter]
            before[is_shorter] = column
        self._price[is_settled] += distance[is_settled] - length
        self._take(row, column, before.tolist())
        return True

    def _take(self, row: int, column: int, before: list[int]) -> None:
        """Moves one row along each edge of the path that ends in a column, and adds another."""
        self._load[column] += 1
        changed = [column]
        while (source := before[column]) >= 0:
            self.columns[self._mover[source, column]] = column
            changed.append(source)
            column = source
        self.columns[row] = column
        for each in changed:
            self._weigh(each)

    def _weigh(self, column: int) -> None:
        """Finds the cheapest moves out of a column."""
        rows = np.flatnonzero(self.columns == column)
        extra = self._costs[rows] - self._costs[rows, column][:, None]
        best = extra.argmin(axis=0)
        self._mover[column] = rows[best]
        self._move[column] = extra[best, np.arange(len(self._room))]
