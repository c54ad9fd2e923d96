"""Keeps a run within its budget: cuts batches to what is left, and explains why a run ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from podium.errors import MissingError, UsageError
from podium.search.generators.generator import Spent
from podium.search.population import Archive
from podium.search.population.member import TUNED
from podium.search.run.batch import Sample
from podium.search.run.plan import Budget, RunPlan
from podium.store import CandidateRecord

Asks = Callable[[Sample], bool]
"""Returns whether a model or a program is asked for a sample."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How many evaluations and calls are left of a budget; None means no limit."""

    evaluations: int | None = None
    calls: int | None = None
    is_short: bool = False  # something was left undone for want of them

    def less(self, rows: Iterable[CandidateRecord]) -> Allowance:
        """Returns what is left after some candidates."""
        costs = [row.cost for row in rows]
        evaluations = sum(cost.get("evaluations", 0) for cost in costs)
        calls = sum(cost.get("calls", 0) for cost in costs)
        return replace(
            self, evaluations=_left(self.evaluations, evaluations), calls=_left(self.calls, calls)
        )

    def cut(self, samples: Sequence[Sample], plan: RunPlan, asks: Asks) -> list[Sample]:
        """Keeps the samples that can be judged to their end, in their order."""
        left, calls = self.evaluations, self.calls
        kept: list[Sample] = []
        for sample in samples:
            need = 1 + (plan.tuning.evaluations if sample.kind == TUNED else 0)
            call = int(asks(sample))
            if _is_short(left, need) or _is_short(calls, call):
                continue
            left, calls = _left(left, need), _left(calls, call)
            kept.append(sample)
        return kept

    def shortage(self, budget: Budget) -> str:
        """Describes what a run lacks to continue."""
        most = budget.evaluations or 0
        if not self.evaluations:
            return _reached(most)
        if self.calls == 0:
            return f"call budget reached ({most:,})"
        done = most - self.evaluations
        return f"{done:,} of {most:,} evaluations used; tuning another candidate takes more"


def allowance_of(budget: Budget, evaluations: int, calls: int) -> Allowance:
    """Returns what is left of a budget: no more calls are made than evaluations are asked for."""
    most = budget.evaluations
    return Allowance(_left(most, evaluations), _left(most, calls))


def _reached(evaluations: int) -> str:
    return f"evaluation budget reached ({evaluations:,})"


def _left(most: int | None, used: int) -> int | None:
    return None if most is None else max(0, most - used)


def _is_short(left: int | None, need: int) -> bool:
    return left is not None and left < need


MOST_IDLE = 20
"""After this many batches without a candidate worth running, generators have nothing to add."""


@dataclass(slots=True)
class Ending:
    """The reason to end a run, once there is one."""

    run_id: str
    reason: str = ""
    _stopped: Spent | None = None  # a generator that cannot go on
    _idle: int = 0  # batches in a row without a run

    def check_budget(
        self, budget: Budget, evaluations: int, seconds: float, fitness: float | None
    ) -> None:
        """Ends a run whose budget is used up."""
        if budget.evaluations is not None and evaluations >= budget.evaluations:
            self.reason = _reached(budget.evaluations)
        elif budget.seconds is not None and seconds >= budget.seconds:
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
        self._check_stop()
        self._check_start(archive, rows)
        self._check_idle(rows)

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
