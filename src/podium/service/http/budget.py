"""Bounds the memory of all bodies that arrive or are worked on, whoever sends them."""

from __future__ import annotations

from podium.service.http.problem import Problem

MOST_BYTES = 2**28
"""Of all bodies together: four of the largest, or thousands of usual ones."""

FREE_BYTES = 2**16
"""Of each body, which do not count: the number of connections bounds them.

So callers of large requests cannot keep out those of small ones.
"""


class BodyBudget:
    """Has so many bytes left."""

    __slots__ = ("left",)

    def __init__(self, most: int = MOST_BYTES) -> None:
        self.left = most


class Share:
    """Is what one request takes of the budget, until it is answered or given up."""

    __slots__ = ("_budget", "_free", "_taken")

    def __init__(self, budget: BodyBudget) -> None:
        self._budget = budget
        self._free = FREE_BYTES
        self._taken = 0

    def take(self, count: int) -> None:
        """Takes room for bytes that have arrived.

        Raises:
            Problem: there is none.
        """
        self._free -= count
        if self._free >= 0:
            return
        count, self._free = -self._free, 0
        if count > self._budget.left:
            raise Problem(
                503,
                "the bodies of all requests together are too large",
                hint="try again shortly",
                headers={"retry-after": "1", "connection": "close"},
            )
        self._budget.left -= count
        self._taken += count

    def give_back(self) -> None:
        """Frees all of it; more than once changes nothing."""
        self._budget.left += self._taken
        self._taken = 0
