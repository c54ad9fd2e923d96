"""Says why a run is over: its budget is spent, a generator is, or nothing new comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podium.errors import MissingError, UsageError
from podium.search.generator import Spent
from podium.search.population import Archive
from podium.search.run.plan import Budget
from podium.store import CandidateRecord

MOST_IDLE = 20
"""Batches without a candidate that was worth a run, and generators have nothing more to say."""


@dataclass(slots=True)
class Ending:
    """Holds the reason to end a run, once there is one."""

    run_id: str
    reason: str = ""
    _stopped: Spent | None = None  # a generator that cannot go on
    _idle: int = 0  # batches in a row without a run

    def check_budget(
        self, budget: Budget, evaluations: int, seconds: float, fitness: float | None
    ) -> None:
        """Ends a run that has reached what its budget allows."""
        if budget.evaluations is not None and evaluations >= budget.evaluations:
            self.reason = f"{budget.evaluations:,} evaluations are done"
        elif budget.seconds is not None and seconds >= budget.seconds:
            self.reason = f"{budget.seconds:g} seconds are over"
        elif budget.target is not None and fitness is not None and fitness >= budget.target:
            self.reason = f"the target of {budget.target:g} is reached"

    def take_spent(self, spent: Spent) -> None:
        """Ends a run by a generator that is spent, or that somebody must help."""
        self.reason = self.reason or spent.reason
        if spent.where and self._stopped is None:
            self._stopped = spent

    def end_batch(self, archive: Archive, rows: Sequence[CandidateRecord]) -> None:
        """Looks at a batch that the archive has; raises where it makes no sense to go on."""
        self._check_stop()
        self._check_start(archive, rows)
        self._check_idle(rows)

    def _check_stop(self) -> None:
        """Stops a run that nobody writes for; what was written is kept."""
        if self._stopped is not None:
            raise MissingError(
                self._stopped.reason, where=self._stopped.where,
                hint=f"put that right, then podium search resume {self.run_id} goes on",
            )  # fmt: skip

    def _check_start(self, archive: Archive, rows: Sequence[CandidateRecord]) -> None:
        """Stops a run at once whose beginning is of no use, and says why."""
        if archive.batches == 1 and archive.best is None:
            why = [f"{row.source}: {row.gate}: {row.reason}" for row in rows[:3]]
            told = "; ".join(why) or self.reason
            raise UsageError(
                "nothing that the run begins with is accepted", where=told,
                hint="podium search evaluate FILE says more of each",
            )  # fmt: skip

    def _check_idle(self, rows: Sequence[CandidateRecord]) -> None:
        self._idle = 0 if any(row.cost.get("evaluations") for row in rows) else self._idle + 1
        if self._idle >= MOST_IDLE:
            last = next((row.reason for row in reversed(rows) if row.reason), "")
            self.reason = f"nothing new was proposed in {MOST_IDLE} batches" + (
                f"; the last reason: {last}" if last else ""
            )
