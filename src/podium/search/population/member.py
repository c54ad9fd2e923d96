"""An accepted candidate as a member of an island."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.store import CandidateRecord

SEED, BRED, TUNED, REPAIR = "seed", "bred", "tuned", "repair"
"""How a candidate can be made."""

ROUNDED = 3
"""Differences in fitness beyond these digits are noise; the simpler member wins."""


@dataclass(frozen=True, slots=True)
class Member:
    """The facts about a candidate that selection uses."""

    number: int  # of the candidate in its run
    text: str
    fitness: float
    complexity: int
    signature: str  # of its decisions
    behaviour: tuple[float, ...]  # its tendencies, each from 0 to 1
    case_scores: tuple[float, ...]  # the fitness on each training case alone
    may_hold: bool = False
    thought: str = ""
    diagnostics: str = ""

    @classmethod
    def of(cls, record: CandidateRecord) -> Member | None:
        """Turns an accepted candidate into a member; returns None for any other."""
        if not record.accepted or record.fitness is None:
            return None
        return cls(
            number=record.number, text=record.text, fitness=record.fitness,
            complexity=record.complexity, signature=record.signature, behaviour=record.behaviour,
            case_scores=tuple(record.scores["by_case"]), may_hold=record.may_hold,
            thought=record.thought, diagnostics=record.diagnostics,
        )  # fmt: skip

    def worth(self, emphasis: Sequence[float] = ()) -> float:
        """Returns the fitness, half of it from the cases that an island emphasises."""
        if not emphasis:
            return self.fitness
        weights = sum(emphasis)
        own = sum(w * s for w, s in zip(emphasis, self.case_scores, strict=True)) / weights
        return (self.fitness + own) / 2

    def key(self, emphasis: Sequence[float] = ()) -> tuple[float, int, int]:
        """Orders members: the fitter, then the simpler, then the earlier is greater."""
        return round(self.worth(emphasis), ROUNDED), -self.complexity, -self.number
