"""Keeps what a run has learned from whole batches, and plans the next ones from it.

Everything here is a fold over the candidates of a run, batch by batch: reading them again gives the
same archive, notes, credits and tunings, and the same plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podium.search.judging.fitness import fitness_named
from podium.search.population import Archive
from podium.search.run.batch import (
    Sample,
    asked_ahead,
    first_batch,
    losses_of,
    next_batch,
    tuning_batch,
)
from podium.search.run.credits import OperatorCredits
from podium.search.run.executor import Context
from podium.search.run.notes import RunNotes
from podium.search.run.plan import PROMPTED, RunPlan
from podium.search.run.tunings import Tunings
from podium.store import CandidateRecord

HEADSTART = 2
"""Constants are tuned early: as if so many batches more had been bred."""

OPENING = 6
"""While a seed is tuned first, batches are so many times smaller: a generation waits for three."""

JUDGED_SHARE = 0.75
"""About how many of the candidates in flight take an evaluation; others are known already."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchPlan:
    """A batch: what is written at once for it, and what its candidates are judged against."""

    index: int
    samples: tuple[Sample, ...]
    context: Context


@dataclass(slots=True)
class History:
    """The whole batches of a run, and the plans of those that follow."""

    plan: RunPlan
    starters: Sequence[tuple[str, str]]
    first: int = 0  # batches before this one are known, and need no plan
    archive: Archive = field(init=False)
    notes: RunNotes | None = None  # where a generator reads prompts
    credits: OperatorCredits = field(default_factory=OperatorCredits)
    tunings: Tunings = field(init=False)
    plans: dict[int, BatchPlan] = field(default_factory=dict)  # of batches that are not whole yet
    asked: dict[int, tuple[Sample, ...]] = field(default_factory=dict)  # of models, by batch
    evaluations: int = 0  # of whole batches
    learned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by generators

    def __post_init__(self) -> None:
        plan = self.plan
        training = plan.training
        self.archive = Archive(plan.customs, plan.seed, training.families, training.first_counted)
        self.tunings = Tunings(plan)
        if any(name in PROMPTED for name, _ in plan.generators):
            self.notes = RunNotes()
        began = [self._worded(each) for each in first_batch(plan, self.starters)]
        self.asked[0] = tuple(each for each in began if each.is_prompted)
        samples = tuple(each for each in began if not each.is_prompted)
        self.plans[0] = BatchPlan(0, samples, self._context())

    def end_batch(self, records: Iterable[CandidateRecord]) -> None:
        """Adds a whole batch, and plans those that become possible by it."""
        rows = sorted(records, key=lambda each: each.number)
        self.add(rows)
        whole, lag = self.archive.batches, self.plan.pipeline.lag
        for done in [index for index in self.plans if index < whole]:
            del self.plans[done]
        for done in [index for index in self.asked if index < whole - self.plan.ahead]:
            del self.asked[done]
        for index in range(1, 2 + lag) if whole == 1 else (whole + lag,):
            self._plan(index)

    def add(self, rows: Sequence[CandidateRecord]) -> None:
        """Adds rows without planning anything: the end of a run may cut batches short."""
        self.evaluations += sum(row.cost.get("evaluations", 0) for row in rows)
        self.credits.end_batch(rows, self.archive.fitness)
        self.tunings.end_batch(rows)
        self.archive.end_batch(rows)
        if self.notes is not None:
            self.notes.end_batch(rows)

    @property
    def is_exhausted(self) -> bool:
        """Returns whether nothing is left to do: nobody writes, and all constants are tuned."""
        is_idle = not self.plan.generators and not self.tunings.is_under_way
        return is_idle and not any(each.samples for each in self.plans.values())

    def _plan(self, index: int) -> None:
        plan, archive = self.plan, self.archive
        later = index + plan.ahead
        if self.notes is not None and later >= self.first - plan.ahead:
            asked = asked_ahead(plan, archive, later)
            self.asked[later] = tuple(self._worded(each) for each in asked)
        is_opening = self.tunings.is_opening(archive)
        # Strategies draw in the order of batches, whether a plan is needed or not.
        variants = tuning_batch(plan, archive, index, self.tunings, self._points_left(index))
        if index < self.first:
            return
        count = max(1, plan.batch // OPENING) if is_opening else plan.batch
        bred = [self._worded(each) for each in next_batch(plan, archive, index)[:count]]
        self.plans[index] = BatchPlan(index, (*bred, *variants), self._context())

    def _points_left(self, index: int) -> int:
        """Counts the variants that a batch may have: tuning gets a share of all evaluations."""
        tuning = self.plan.tuning
        if not tuning.every or index % tuning.every:
            return 0
        if not self.plan.generators or self.tunings.is_opening(self.archive):
            return self.plan.batch
        batches = index - self.archive.batches + 1 + HEADSTART
        expected = self.evaluations + JUDGED_SHARE * self.plan.batch * batches
        return int(tuning.share * expected) - self.tunings.points

    def _worded(self, sample: Sample) -> Sample:
        """Completes a request by what is known at this moment; later nothing of it changes."""
        if sample.request is None:
            return sample
        request = replace(
            sample.request, fitness=fitness_named(self.plan.fitness).text,
            notes=self.notes.text if self.notes and sample.is_prompted else "",
            best=losses_of(self.archive.best) if sample.is_prompted else "",
            operator_weights=self.credits.weights(),
            learned=self.learned.get(sample.generator, {}) if sample.is_prompted else {},
        )  # fmt: skip
        return replace(sample, request=request)

    def _context(self) -> Context:
        rivals = self.archive.rivals(self.plan.training.stages)
        return Context(rivals, dict(self.archive.signatures), self.plan.may_hold)
