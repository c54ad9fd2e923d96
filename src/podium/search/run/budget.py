"""Keeps a run within its budget to the last evaluation, and explains why a run ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.errors import MissingError, UsageError
from podium.search.generators.generator import Spent
from podium.search.population import Archive
from podium.search.run.plan import Budget
from podium.search.run.progress import Tally
from podium.store import CandidateRecord


@dataclass(slots=True)
class Allowance:
    """How much of a budget the candidates up to one may use; None means no limit.

    Candidates are counted in the order of their batches, so that the same ones fit in whoever is
    first to be judged. What a candidate will cost may not be known yet: then the most is kept back.
    """

    evaluations: int | None = None
    calls: int | None = None
    used: int = 0  # evaluations
    called: int = 0
    kept_back: int = 0  # evaluations that may still be used by those before
    calls_kept_back: int = 0  # for repairs of those before

    def has_room(self) -> bool:
        """Returns whether one more evaluation fits in, whatever those before come to."""
        return self.evaluations is None or self.used + self.kept_back < self.evaluations

    @property
    def is_spent(self) -> bool:
        """Returns whether no evaluation is left for sure."""
        return self.evaluations is not None and self.used >= self.evaluations

    def may_call(self) -> bool:
        """Returns whether one more call fits in, whatever of those before is to be repaired."""
        return self.calls is None or self.called + self.calls_kept_back < self.calls

    def shortage(self) -> str:
        """Describes what a run lacks to continue."""
        if self.is_spent:
            return _reached(self.evaluations or 0)
        return f"call budget reached ({self.calls or 0:,})"


def allowance_of(budget: Budget, tally: Tally) -> Allowance:
    """Returns what is left of a budget: no more calls are made than evaluations are asked for.

    A call that the service had to be asked for again counts once.
    """
    most = budget.evaluations
    return Allowance(most, most, tally.evaluations, tally.asked)


def _reached(evaluations: int) -> str:
    return f"evaluation budget reached ({evaluations:,})"


MOST_IDLE = 20
"""After this many batches without a candidate worth running, generators have nothing to add."""


@dataclass(slots=True)
class Ending:
    """The reason to end a run, once there is one."""

    run_id: str
    reason: str = ""
    _stopped: Spent | None = None  # a generator that cannot go on
    _idle: int = 0  # batches in a row without a run

    def check_budget(self, budget: Budget, seconds: float, fitness: float | None) -> None:
        """Ends a run whose time is over, or that has reached what it was to reach."""
        if budget.seconds is not None and seconds >= budget.seconds:
            self.reason = f"time budget reached ({budget.seconds:g} s)"
        elif budget.target is not None and fitness is not None and fitness >= budget.target:
            self.reason = f"target fitness reached ({budget.target:g})"

    def take_spent(self, spent: Spent) -> None:
        """Ends a run whose generator has used up its budget, or needs the user's help."""
        self.reason = self.reason or spent.reason
        if spent.where and self._stopped is None:
            self._stopped = spent

    def end_batch(self, archive: Archive, rows: Sequence[CandidateRecord]) -> None:
        """Checks a batch that the archive has taken; raises where it makes no sense to continue."""
        self.end_session(archive, rows)
        self._check_idle(rows)

    def end_session(self, archive: Archive, rows: Sequence[CandidateRecord]) -> None:
        """Raises what the user must hear of; `rows` were judged last."""
        self._check_stop()
        self._check_start(archive, rows)

    def _check_stop(self) -> None:
        """Stops a run whose generator needs the user's help; what was written is kept."""
        if self._stopped is not None:
            raise MissingError(
                self._stopped.reason, where=self._stopped.where,
                hint=f"fix this, then run: podium search resume {self.run_id}",
            )  # fmt: skip

    def _check_start(self, archive: Archive, rows: Sequence[CandidateRecord]) -> None:
        """Stops a run at once if none of its starting policies is accepted, and explains why."""
        if archive.batches == 1 and archive.best is None:
            why = [f"{row.source}: {row.gate}: {row.reason}" for row in rows[:3]]
            told = "; ".join(why) or self.reason
            raise UsageError(
                "none of the starting policies was accepted", where=told,
                hint="podium search evaluate FILE explains each refusal",
            )  # fmt: skip

    def _check_idle(self, rows: Sequence[CandidateRecord]) -> None:
        self._idle = 0 if any(row.cost.get("evaluations") for row in rows) else self._idle + 1
        if self._idle >= MOST_IDLE:
            last = next((row.reason for row in reversed(rows) if row.reason), "")
            self.reason = f"nothing new was proposed in {MOST_IDLE} batches" + (
                f"; the last reason: {last}" if last else ""
            )
