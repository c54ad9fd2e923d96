"""Keeps what no other point beats: the front over several figures, and the best of each size."""

from __future__ import annotations

from collections.abc import Sequence

SENSES = {
    "allocation_130": +1, "allocation_100": +1, "fragmentation": -1, "wait_mean_s": -1,
    "complexity": -1,
}  # fmt: skip
"""The figures of a front of candidates, and which way is better."""


def front(points: Sequence[Sequence[float]], senses: Sequence[int]) -> list[int]:
    """Lists the points that no other beats: as good everywhere and better somewhere.

    A sense is +1 where more is better and -1 where less is. Equal points stay together.

    >>> front([(90, 5), (95, 9), (89, 6)], [+1, -1])
    [0, 1]
    """
    turned = [_turned(point, senses) for point in points]
    return [
        index
        for index, point in enumerate(turned)
        if not any(_beats(other, point) for other in turned)
    ]


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


def _turned(point: Sequence[float], senses: Sequence[int]) -> tuple[float, ...]:
    return tuple(sense * value for sense, value in zip(senses, point, strict=True))


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))
