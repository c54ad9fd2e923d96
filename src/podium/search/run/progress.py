"""Counts what a search has done, and says how far it is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from podium.search.generators.generator import UNANSWERED
from podium.search.judging.panel import Ranking
from podium.search.population import Archive, Member
from podium.search.run.plan import PROMPTED
from podium.store import CandidateRecord
from podium.store.records import JUDGED

NO_ANSWER = "no answer"
"""What proposals are counted under that a model was asked for in vain."""


@dataclass(slots=True)
class Tally:
    """Counts what a run has done; candidates may be counted in any order."""

    candidates: int = 0
    judged: int = 0
    accepted: int = 0
    evaluations: int = 0
    refused: dict[str, int] = field(default_factory=dict)  # by gate, or NO_ANSWER
    sources: dict[str, int] = field(default_factory=dict)  # candidates by generator
    usd: float = 0.0
    tokens: int = 0
    calls: int = 0
    unpriced: int = 0  # calls whose price nobody knows
    writing_s: float = 0.0  # that calls took
    judging_s: float = 0.0  # that workers took

    @property
    def asked(self) -> int:
        """Counts the candidates that a model or a command was asked for."""
        of = self.sources.items()
        return sum(count for source, count in of if source.partition(":")[0] in PROMPTED)

    @property
    def seconds_per_call(self) -> float:
        """Returns how long an answer takes on average."""
        return self.writing_s / self.calls if self.calls else 0.0

    @property
    def seconds_per_evaluation(self) -> float:
        """Returns how long a worker takes on average."""
        return self.judging_s / self.evaluations if self.evaluations else 0.0

    def count_proposal(self, record: CandidateRecord) -> None:
        """Counts what a proposal cost."""
        self.candidates += 1
        self.sources[record.source] = self.sources.get(record.source, 0) + 1
        self.usd += record.cost.get("usd") or 0.0
        self.tokens += record.cost.get("tokens_in", 0) + record.cost.get("tokens_out", 0)
        calls = record.cost.get("calls", 0)
        self.calls += calls
        self.writing_s += record.cost.get("seconds", 0.0) if calls else 0.0
        self.unpriced += calls if record.cost.get("usd") is None else 0

    def count_judgement(self, record: CandidateRecord) -> None:
        """Counts a judgement and the evaluations it took."""
        self.judged += 1
        self.judging_s += record.seconds
        self.evaluations += record.cost.get("evaluations", 0)
        self.accepted += record.accepted
        if not record.accepted:
            # Nothing is wrong with the syntax of what nobody wrote.
            gate = NO_ANSWER if record.reason.startswith(UNANSWERED) else record.gate
            self.refused[gate] = self.refused.get(gate, 0) + 1

    @classmethod
    def of(cls, records: Iterable[CandidateRecord]) -> Tally:
        """Counts the candidates of a run."""
        tally = cls()
        for record in records:
            tally.count_proposal(record)
            if record.state == JUDGED:
                tally.count_judgement(record)
        return tally


@dataclass(frozen=True, slots=True)
class Validated:
    """What the best candidate reaches on cases that were not used to choose it."""

    number: int
    fitness: float
    baseline: float  # of fgd


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which candidate won on the selection set, and what it reaches there."""

    member: Member
    fitness: float
    baseline: float  # of fgd
    finalists: int  # among how many it was chosen


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a run at one moment."""

    run_id: str
    seconds: float  # at work, all sessions together
    rate: float  # evaluations per second, lately
    tally: Tally
    archive: Archive
    baseline: float  # fitness of fgd on the training set
    validated: Validated | None = None
    missing_walls: tuple[str, ...] = ()  # of the sandbox, in any session
    chosen: Chosen | None = None  # None: not yet, so that the best by training stands for it
    ranking: Ranking | None = None  # how well the training set ranks; None: nobody asked

    def summary(self) -> dict[str, Any]:
        """Describes the moment as JSON types."""
        first, checked, chosen = self.archive.best, self.validated, self.chosen
        best = chosen.member if chosen else first
        return {
            "seconds": round(self.seconds, 3),
            "candidates": self.tally.candidates,
            "evaluations": self.tally.evaluations,
            "accepted": self.tally.accepted,
            "refused": dict(self.tally.refused),
            "sources": dict(self.tally.sources),
            "usd": self.tally.usd,
            "tokens": self.tally.tokens,
            "calls": self.tally.calls,
            "unpriced_calls": self.tally.unpriced,
            "batches": self.archive.batches,
            "best": best.number if best else None,
            "fitness": best.fitness if best else None,
            "complexity": best.complexity if best else None,
            "fitness_fgd": self.baseline,
            "fitness_start": self.archive.start,
            "best_by_training": first.number if first else None,
            "finalists": chosen.finalists if chosen else 0,
            "selection_fitness": chosen.fitness if chosen else None,
            "selection_fitness_fgd": chosen.baseline if chosen else None,
            "validated": checked.number if checked else None,
            "validation_fitness": checked.fitness if checked else None,
            "validation_fitness_fgd": checked.baseline if checked else None,
            **({"ranking": self.ranking.as_object()} if self.ranking else {}),
            "missing_walls": list(self.missing_walls),
            "islands": [_island(each) for each in self.archive.islands],
            "transfers": self.archive.transfers[-50:],
        }


def _island(island: Any) -> dict[str, Any]:
    best = island.best
    return {
        "island": island.index,
        "family": island.family or "all",
        "members": len(island.members),
        "best": best.number if best else None,
        "fitness": best.fitness if best else None,
        "stale": island.stale,
        "respawns": island.respawns,
    }
