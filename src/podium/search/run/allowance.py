"""Cuts batches to what a budget still allows: a run never does more than it was asked for.

What is used up is counted in whole batches. So a batch that was cut is planned again as it was
before and done to its end, and a run that is given more finds what one finds that had it at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from podium.search.run.plan import Budget, RunPlan
from podium.search.run.samples import TUNED, Sample
from podium.store import CandidateRecord

Asks = Callable[[Sample], bool]
"""Tells whether a model or a program is asked for a sample."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """Says how many evaluations and calls are left of a budget; None is no end of them."""

    evaluations: int | None = None
    calls: int | None = None
    is_short: bool = False  # something was left undone for want of them

    def less(self, rows: Iterable[CandidateRecord]) -> Allowance:
        """Gives what is left after some candidates."""
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
        """Says what a run lacks to go on."""
        most = budget.evaluations or 0
        if not self.evaluations:
            return f"{most:,} evaluations are done"
        if self.calls == 0:
            return f"{most:,} calls are made"
        done = most - self.evaluations
        return f"{done:,} of {most:,} evaluations are done, and tuning one more takes too many"


def allowance_of(budget: Budget, evaluations: int, calls: int) -> Allowance:
    """Says what is left of a budget: no more calls are made than evaluations are asked for."""
    most = budget.evaluations
    return Allowance(_left(most, evaluations), _left(most, calls))


def _left(most: int | None, used: int) -> int | None:
    return None if most is None else max(0, most - used)


def _is_short(left: int | None, need: int) -> bool:
    return left is not None and left < need
