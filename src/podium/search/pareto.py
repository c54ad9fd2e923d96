"""Keeps what no other point beats: the front over several figures, and the best of each size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SENSES = {
    "allocation_130": +1, "allocation_100": +1, "fragmentation": -1, "wait_mean_s": -1,
    "wait_p95_s": -1, "fragmentation_arriving": -1, "complexity": -1,
}  # fmt: skip
"""The figures of a front of candidates, and which way is better."""


def front(points: npt.ArrayLike, senses: Sequence[int]) -> list[int]:
    """Lists the points that no other beats: as good everywhere and better somewhere.

    A sense is +1 where more is better and -1 where less is. Equal points stay together.

    >>> front([(90, 5), (95, 9), (89, 6)], [+1, -1])
    [0, 1]
    """
    given = np.asarray(points, np.float64)
    if given.size == 0:
        return []
    turned = given * np.asarray(senses)
    different, which = np.unique(turned, axis=0, return_inverse=True)
    is_kept = np.zeros(len(different), np.bool_)
    is_kept[_unbeaten(_ranks(different))] = True
    return [int(index) for index in np.flatnonzero(is_kept[which.ravel()])]


def best_per_complexity(fitness: Sequence[float], complexity: Sequence[int]) -> list[int]:
    """Lists the best of each complexity that is better than all that are simpler, in that order.

    The first of equals is taken.

    >>> best_per_complexity([90, 92, 91, 95], [3, 5, 7, 7])
    [0, 1, 3]
    """
    order = sorted(range(len(fitness)), key=lambda i: (complexity[i], -fitness[i], i))
    found: list[int] = []
    for index in order:
        if not found or fitness[index] > fitness[found[-1]]:
            found.append(index)
    return found


def _ranks(points: npt.NDArray[np.float64]) -> npt.NDArray[np.integer]:
    """Numbers the values of each figure from the worst up: small numbers compare the fastest."""
    columns = [np.unique(column, return_inverse=True)[1] for column in points.T]
    return np.stack(columns).astype(np.min_scalar_type(len(points)))


def _unbeaten(ranks: npt.NDArray[np.integer]) -> list[int]:
    """Lists the columns that no other beats; no two are equal."""
    # What beats another has the larger sum: the first that is left is always unbeaten.
    left = np.argsort(-ranks.sum(axis=0, dtype=np.int64), kind="stable")
    ranks = ranks[:, left]
    found: list[int] = []
    while len(left):
        best, others = ranks[:, 0], ranks[:, 1:]
        found.append(int(left[0]))
        is_beaten = others[0] <= best[0]
        for mine, theirs in zip(best[1:], others[1:], strict=True):
            is_beaten &= theirs <= mine
        left, ranks = left[1:], others
        if is_beaten.any():
            left, ranks = left[~is_beaten], others[:, ~is_beaten]
    return found
