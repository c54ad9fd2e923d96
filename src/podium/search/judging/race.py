"""Decides how far a candidate is run: it races against its own island, case by case.

What it races against is fixed when its batch is planned, so that the same candidate goes equally
far whoever judges it, and whenever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podium.evaluation.measures import Values
from podium.search.candidate.verdict import Rejected
from podium.search.judging.fitness import Fitness, Outcome

RACE_MARGIN = 0.5
"""Points of fitness by which a candidate may trail its rival and still go on."""

Cell = tuple[int, ...]
Cases = tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """The least fitness with which a candidate goes on after so many cases."""

    cases: int
    fitness: float


@dataclass(frozen=True, slots=True)
class Rivals:
    """What the candidates of one island race against: measurements of members, case by case.

    The usual rival is the member at a quantile of the island. A candidate that behaves like an
    elite below that one races against the elite; one that behaves like nobody, against the last.
    """

    usual: Cases = ()
    last: Cases = ()
    edges: tuple[tuple[float, ...], ...] = ()  # between the cells, axis by axis
    elites: tuple[tuple[Cell, Cases], ...] = ()  # without cases where the usual rival is below
    bars: tuple[Bar, ...] = ()  # at the ends of stages

    def against(self, axes: Sequence[float]) -> tuple[Cases, tuple[Bar, ...]]:
        """Chooses the rival of a candidate by its cell; bars are for those with the usual one."""
        if not self.edges:
            return self.usual, self.bars
        cell = cell_of(axes, self.edges)
        elite = dict(self.elites).get(cell, self.last)
        return (elite, ()) if elite else (self.usual, self.bars)

    def as_object(self) -> dict[str, Any]:
        """Describes the rivals as JSON types."""
        return {
            "usual": [dict(each) for each in self.usual],
            "last": [dict(each) for each in self.last],
            "edges": [list(each) for each in self.edges],
            "elites": [[list(cell), [dict(e) for e in cases]] for cell, cases in self.elites],
            "bars": [asdict(each) for each in self.bars],
        }

    @classmethod
    def from_object(cls, source: Mapping[str, Any]) -> Rivals:
        """Reads what `as_object` wrote."""
        return cls(
            tuple(source["usual"]),
            tuple(source["last"]),
            tuple(tuple(each) for each in source["edges"]),
            tuple((tuple(cell), tuple(cases)) for cell, cases in source["elites"]),
            tuple(Bar(**each) for each in source["bars"]),
        )


def cell_of(axes: Sequence[float], edges: Sequence[Sequence[float]]) -> Cell:
    """Returns the cell in which a behaviour lies."""
    return tuple(
        sum(value >= edge for edge in between) for value, between in zip(axes, edges, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Race:
    """The rival of one candidate, beside fgd on the same cases, and the bars that it must take."""

    rival: tuple[Outcome, ...] = ()
    bars: tuple[Bar, ...] = ()

    @property
    def cases(self) -> int:
        """Counts the cases over which anything is compared."""
        return max([len(self.rival), *(bar.cases for bar in self.bars)])

    def check(self, found: Sequence[Outcome], fitness: Fitness) -> None:
        """Refuses a candidate that trails its rival beyond chance, or does not take a bar."""
        if len(found) <= len(self.rival):
            check_race(found, self.rival, fitness)
        for bar in self.bars:
            if bar.cases == len(found) and (own := fitness.score(found)) < bar.fitness:
                raise Rejected(stopped(own, bar))

    def is_stopped(self, found: Sequence[Outcome], fitness: Fitness) -> bool:
        """Returns whether a candidate was stopped at a bar after exactly these cases."""
        return any(
            bar.cases == len(found) and fitness.score(found) < bar.fitness for bar in self.bars
        )

    def as_object(self) -> dict[str, Any]:
        """Describes the race as JSON types."""
        rival = [
            (each.kind, dict(each.values), dict(each.baseline), each.family) for each in self.rival
        ]
        return {"rival": rival, "bars": [asdict(each) for each in self.bars]}

    @classmethod
    def from_object(cls, source: Mapping[str, Any]) -> Race:
        """Reads what `as_object` wrote."""
        rival = tuple(Outcome(*each) for each in source["rival"])
        return cls(rival, tuple(Bar(**each) for each in source["bars"]))


NO_RACE = Race()


def stopped(fitness: float, bar: Bar) -> str:
    """Explains why a candidate went no further."""
    return (
        f"not among those that go on after {_cases(bar.cases)}: fitness {fitness:.2f}, and "
        f"{bar.fitness:.2f} is needed"
    )


def check_race(found: Sequence[Outcome], incumbent: Sequence[Outcome], fitness: Fitness) -> None:
    """Refuses a candidate that trails the incumbent on the same cases, beyond what is chance."""
    apart = [
        fitness.score([own]) - fitness.score([best])
        for own, best in zip(found, incumbent, strict=False)
    ]
    if hopeful(apart) < -RACE_MARGIN:
        own, best = fitness.score(found), fitness.score(incumbent[: len(found)])
        raise Rejected(
            f"trails the incumbent after {_cases(len(found))}: fitness {own:.2f} against {best:.2f}"
        )


def hopeful(apart: Sequence[float]) -> float:
    """Returns an optimistic mean of paired differences: two standard errors above the mean.

    A single difference says little about its own error, so only a third of it counts.
    """
    mean = sum(apart) / len(apart)
    if len(apart) == 1:
        return mean / 3
    variance = sum((each - mean) ** 2 for each in apart) / (len(apart) - 1)
    return mean + 2 * math.sqrt(variance / len(apart))


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"
