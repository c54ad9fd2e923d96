"""Keeps the Pareto front of a run: accepted candidates that no other beats in every figure.

It is computed from the stored candidates, so it is always up to date.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.store import CandidateRecord

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


COMPLEXITY = "complexity"


@dataclass(frozen=True, slots=True)
class Front:
    """The front of the candidates that follow the same rules."""

    may_hold: bool
    names: tuple[str, ...]  # of the figures that were measured
    records: tuple[CandidateRecord, ...]  # unbeaten, the fittest first
    by_complexity: tuple[CandidateRecord, ...]  # the best of each size, where larger is better

    def figures(self, record: CandidateRecord) -> dict[str, float]:
        """Returns the figures that a candidate is compared by."""
        return {name: _figure(record, name) for name in self.names}

    def shortened(self, most: int) -> list[CandidateRecord]:
        """Selects some candidates: the best in each figure, then the fittest."""
        leaders = [self._leader(name) for name in self.names]
        wanted = list(dict.fromkeys(each.number for each in (*leaders, *self.records)))[:most]
        return [each for each in self.records if each.number in wanted]

    def as_object(self) -> dict[str, Any]:
        """Describes the front as JSON types."""
        return {
            "may_hold": self.may_hold,
            "figures": list(self.names),
            "candidates": [self._row(each) for each in self.records],
            "best_per_complexity": [self._row(each) for each in self.by_complexity],
        }

    def _leader(self, name: str) -> CandidateRecord:
        return max(self.records, key=lambda each: SENSES[name] * _figure(each, name))

    def _row(self, record: CandidateRecord) -> dict[str, Any]:
        return {
            "number": record.number, "fitness": record.fitness, **self.figures(record),
            "source": record.source, "kind": record.kind,
        }  # fmt: skip


def fronts_of(records: Iterable[CandidateRecord]) -> list[Front]:
    """Finds the front of those that place whatever fits, and that of those that may hold pods.

    They are never compared with one another. Of candidates with equal figures the first is taken.
    """
    measured = [each for each in records if each.accepted and each.fitness is not None]
    kinds = [[each for each in measured if each.may_hold is may_hold] for may_hold in (False, True)]
    return [_front(group) for group in kinds if group]


def _front(records: Sequence[CandidateRecord]) -> Front:
    names = _measured_in_all(records)
    points = [tuple(_figure(each, name) for name in names) for each in records]
    unbeaten = front(points, [SENSES[name] for name in names])
    first = {points[index]: records[index] for index in reversed(unbeaten)}
    fittest = sorted(first.values(), key=lambda each: (-_fitness(each), each.number))
    best = best_per_complexity([_fitness(e) for e in records], [e.complexity for e in records])
    return Front(records[0].may_hold, names, tuple(fittest), tuple(records[i] for i in best))


def _measured_in_all(records: Sequence[CandidateRecord]) -> tuple[str, ...]:
    means = [each.scores.get("mean", {}) for each in records]
    shared = set.intersection(*(set(each) for each in means))
    return tuple(name for name in SENSES if name == COMPLEXITY or name in shared)


def _figure(record: CandidateRecord, name: str) -> float:
    return float(record.complexity if name == COMPLEXITY else record.scores["mean"][name])


def _fitness(record: CandidateRecord) -> float:
    assert record.fitness is not None  # those without are left out
    return record.fitness
