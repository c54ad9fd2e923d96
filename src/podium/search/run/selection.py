"""Chooses the winner of a run on seeds of their own, from the best by training.

The best of thousands on the training cases is partly lucky there. What was chosen by neither is
validated on a third set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.evaluation.cases import TrainingSet
from podium.search.judging.judge import Judge
from podium.search.judging.machine_code import Parted
from podium.search.population import Archive, Member
from podium.search.population.member import STEP
from podium.search.run.progress import Chosen
from podium.search.sandbox.limits import Limits

MOST_ALIKE = 3
"""Finalists of one program that differ in their constants alone."""


@dataclass(frozen=True, slots=True)
class Finalist:
    """What one of the best by training reaches on the selection set."""

    number: int
    fitness: float | None  # None: it fails there, or holds pods where none may be held
    baseline: float  # of fgd


Measure = Callable[[int, str], Finalist]
"""Measures the candidate of a number and text on the selection set."""


class Selector:
    """Judges on selection seeds, in a process of its own that starts when it is needed."""

    def __init__(
        self, training: TrainingSet, fitness: str, limits: Limits, *, may_hold: bool = False
    ) -> None:
        self._cases, self._fitness, self._limits = training.selection(), fitness, limits
        self._may_hold = may_hold
        self._judge: Judge | None = None

    def measure(self, number: int, text: str) -> Finalist:
        """Measures one candidate."""
        if self._judge is None:
            self._judge = Judge(self._cases, self._fitness, 1, self._limits)
        scores = self._judge.judge(text, may_hold=self._may_hold).scores
        fitness = scores["fitness"] if scores else None
        return Finalist(number, fitness, self._judge.baseline_fitness())

    def close(self) -> None:
        """Ends the process."""
        if self._judge is not None:
            self._judge.pool.close()


@dataclass(slots=True)
class Selection:
    """Chooses among the best by training; what was measured before is known."""

    measure: Measure | None  # None: nobody chooses, so that the best by training wins
    most: int  # finalists
    most_alike: int | None = None  # of which so many may differ in their constants alone
    measured: dict[int, Finalist] = field(default_factory=dict)  # by number

    def restore(self, saved: Iterable[Mapping[str, Any]]) -> None:
        """Takes what earlier sessions measured."""
        found = [Finalist(**each) for each in saved]
        self.measured = {each.number: each for each in found}

    def choose(self, archive: Archive) -> Chosen | None:
        """Returns the winner; nothing where there is no choice."""
        finalists = finalists_of(archive, self.most, self.most_alike)
        if self.measure is None or not finalists:
            return None
        for each in finalists:
            if each.number not in self.measured:
                self.measured[each.number] = self.measure(each.number, each.text)
        return chosen_of(finalists, [self.measured[each.number] for each in finalists])


def finalists_of(archive: Archive, count: int, most_alike: int | None = None) -> list[Member]:
    """Lists the best by training that decide differently, the best first.

    The best may all be variants of one program: then so many of them leave room for others.
    """
    known: dict[str, Member] = {}
    if archive.best is not None:
        known[archive.best.signature] = archive.best
    for member in _ranked(each for island in archive.islands for each in island.members):
        if member.is_whole:
            known.setdefault(member.signature, member)
    ranked = _ranked(known.values())
    return (ranked if most_alike is None else _differing(ranked, most_alike))[:count]


def _differing(members: Iterable[Member], most_alike: int) -> list[Member]:
    programs: Counter[str] = Counter()
    found = []
    for member in members:
        program = Parted.of(member.text).program
        programs[program] += 1
        if programs[program] <= most_alike:
            found.append(member)
    return found


def chosen_of(members: Sequence[Member], measured: Sequence[Finalist]) -> Chosen | None:
    """Returns the best on the selection set; of equals the better by training."""
    found = [
        Chosen(member, each.fitness, each.baseline, len(members))
        for member, each in zip(members, measured, strict=True)
        if each.fitness is not None
    ]
    return max(
        found,
        key=lambda each: (round(each.fitness / STEP), each.member.key()),
        default=None,
    )


def _ranked(members: Iterable[Member]) -> list[Member]:
    return sorted(members, key=Member.key, reverse=True)
