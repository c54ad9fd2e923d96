"""Keeps the Pareto front of a run: accepted candidates that no other beats in every figure.

It is computed from the stored candidates, so that it is right whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from podium.search.pareto import SENSES, best_per_complexity, front
from podium.store import CandidateRecord

COMPLEXITY = "complexity"


@dataclass(frozen=True, slots=True)
class Front:
    """Holds the front of the candidates that play by the same rules."""

    may_hold: bool
    names: tuple[str, ...]  # of the figures that were measured
    records: tuple[CandidateRecord, ...]  # unbeaten, the fittest first
    by_complexity: tuple[CandidateRecord, ...]  # the best of each size, where larger is better

    def figures(self, record: CandidateRecord) -> dict[str, float]:
        """Gives the figures that a candidate is compared by."""
        return {name: _figure(record, name) for name in self.names}

    def shortened(self, most: int) -> list[CandidateRecord]:
        """Takes some candidates: the best in each figure, then the fittest."""
        leaders = [self._leader(name) for name in self.names]
        wanted = list(dict.fromkeys(each.number for each in (*leaders, *self.records)))[:most]
        return [each for each in self.records if each.number in wanted]

    def as_object(self) -> dict[str, Any]:
        """Describes the front in what JSON knows."""
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
