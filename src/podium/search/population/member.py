"""An accepted candidate as a member of an island."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from podium.search.candidate.verdict import STAGES
from podium.store import CandidateRecord

SEED, BRED, TUNED, REPAIR = "seed", "bred", "tuned", "repair"
"""How a candidate can be made."""

STEP = 0.02
"""Points of fitness below which a difference is noise; the simpler member wins."""

Key = tuple[int, int, int, float, int]
"""Orders members; see `Member.key`."""


@dataclass(frozen=True, slots=True)
class Member:
    """The facts about a candidate that selection uses."""

    number: int  # of the candidate in its run
    text: str
    fitness: float  # on the cases that it was run on
    complexity: int
    signature: str  # of its decisions
    behaviour: tuple[float, ...]  # its tendencies, each from 0 to 1
    case_scores: tuple[float, ...]  # the fitness on each training case that it was run on, alone
    may_hold: bool = False
    thought: str = ""
    diagnostics: str = ""
    is_whole: bool = True  # it was run on all cases; others rank below
    cases: tuple[Mapping[str, float], ...] = field(default=(), compare=False)  # as measured

    @classmethod
    def of(cls, record: CandidateRecord) -> Member | None:
        """Turns an accepted candidate into a member; returns None for any other.

        One that was stopped between two stages is a member by its figures up to there.
        """
        fitness = fitness_so_far(record)
        if not record.accepted or fitness is None:
            return None
        return cls(
            number=record.number, text=record.text, fitness=fitness,
            complexity=record.complexity, signature=record.signature, behaviour=record.behaviour,
            case_scores=tuple(record.scores["by_case"]), may_hold=record.may_hold,
            thought=record.thought, diagnostics=record.diagnostics,
            is_whole=record.fitness is not None, cases=tuple(record.cases),
        )  # fmt: skip

    def worth(self, emphasis: Sequence[float] = ()) -> float:
        """Returns the fitness, half of it from the cases that an island emphasises."""
        weights = sum(emphasis[: len(self.case_scores)])
        if not weights:
            return self.fitness
        own = sum(w * s for w, s in zip(emphasis, self.case_scores, strict=False)) / weights
        return (self.fitness + own) / 2

    def key(self, emphasis: Sequence[float] = ()) -> Key:
        """Orders members: who was run on more cases, the fitter, the simpler is greater.

        Fitness counts in steps; it decides in full between members of one size, then the earlier.
        """
        worth = self.worth(emphasis)
        step = round(worth / STEP)
        return len(self.case_scores), step, -self.complexity, worth, -self.number


def fitness_so_far(record: CandidateRecord) -> float | None:
    """Returns the fitness of a candidate, or that of the stages it was run on."""
    if record.fitness is not None:
        return record.fitness
    stages: Sequence[float] = record.scores.get(STAGES, ())
    return stages[-1] if stages else None
