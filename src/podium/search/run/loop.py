"""Searches: proposes a batch, judges it, adds it to the archive, and begins again.

Every random number derives from the run's seed and a candidate's number, and batches are taken
in by number: the result does not depend on how many workers judged, or which was first. The store
has everything that a run has; resuming means reading it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from podium.search.generators.generator import Generator, Proposal, Spent
from podium.search.judging.fitness import Outcome, fitness_named
from podium.search.population import Archive
from podium.search.run.batch import (
    Sample,
    as_written,
    first_batch,
    losses_of,
    next_batch,
    repair_of,
)
from podium.search.run.budget import Allowance, Ending, allowance_of
from podium.search.run.executor import Context, Executor
from podium.search.run.folder import BEST, STATE, SearchFolder
from podium.search.run.notes import RunNotes
from podium.search.run.plan import Budget, RunPlan
from podium.search.run.progress import Progress, Tally, Validated
from podium.search.run.records import BatchJudge, proposed, report_gains
from podium.store import CandidateRecord, Store
from podium.store.run_status import Stopwatch

Watch = Callable[[Progress], None]
Validate = Callable[[int, str], Validated | None]


@dataclass(frozen=True, slots=True)
class Parts:
    """The components that a search works with."""

    store: Store
    folder: SearchFolder
    executor: Executor
    generators: Mapping[str, Generator]
    starters: Sequence[tuple[str, str]] = ()
    validate: Validate = lambda _number, _text: None
    watch: Watch = lambda _progress: None
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class Search:
    """One session of a run."""

    run_id: str
    plan: RunPlan
    parts: Parts
    tally: Tally = field(default_factory=Tally)
    notes: RunNotes | None = None  # where a generator reads prompts
    validated: Validated | None = None
    missing_walls: tuple[str, ...] = ()  # of the sandbox, in any session
    archive: Archive = field(init=False)
    _end: Ending = field(init=False)
    _stopwatch: Stopwatch = field(init=False)
    _judge: BatchJudge = field(init=False)
    _baseline: list[dict[str, float]] = field(default_factory=list)
    _baseline_fitness: float = field(init=False, default=0.0)
    _done: Tally = field(default_factory=Tally)  # of whole batches alone
    _open: dict[int, CandidateRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, state = self.plan, self.parts.folder.state()
        self.archive = Archive(plan.customs, plan.seed, plan.training.families)
        if any(each.reads_prompts for each in self.parts.generators.values()):
            self.notes = RunNotes()
        self._end = Ending(self.run_id)
        with self.parts.folder.reading(STATE):
            self._stopwatch = Stopwatch(self.parts.clock, float(state.get("seconds", 0.0)))
        self._take_up(state)

    def get_ready(self) -> None:
        """Waits for the workers, which report what fgd reaches."""
        if not self._baseline:
            self._baseline = self.parts.executor.baseline()
            self._note_walls()
            kinds = [case.protocol for case in self.plan.training.cases]
            rows = zip(kinds, self._baseline, self._baseline, strict=True)
            outcomes = [Outcome(*row) for row in rows]
            self._baseline_fitness = fitness_named(self.plan.fitness).score(outcomes)

    def _note_walls(self) -> None:
        """Records permanently that candidates ran less confined than they should."""
        known = {*self.missing_walls, *self.parts.executor.missing_walls()}
        self.missing_walls = tuple(sorted(known))

    def go(self, budget: Budget) -> None:
        """Searches until the budget or a generator is used up."""
        self.get_ready()
        while not self._is_over(budget):
            self.step(budget)
        self._show()

    def step(self, budget: Budget = Budget()) -> None:  # noqa: B008 - frozen
        """Runs one batch, or as much of it as the budget allows."""
        self.get_ready()
        samples, context = self._plan_batch(), self._context()
        if not samples:
            self._end.reason = "nothing is left to tune"
            return
        allowed = allowance_of(budget, self._done.evaluations, self._done.calls)
        found, left = self._work_through(samples, context, allowed)
        repairs = self._repairs(samples, found)
        repaired, left = self._work_through(repairs, context, left)
        found += repaired
        if left.is_short:
            self._end.reason = self._end.reason or left.shortage(budget)
        if not left.is_short:  # a batch that the budget has cut is done to its end later
            self._report_gains((*samples, *repairs), found)
        self._end_batch(found, is_whole=not left.is_short)
        self._end.end_batch(self.archive, found)

    def progress(self) -> Progress:
        """Returns the progress of the run at this moment."""
        return Progress(
            self.run_id, self.seconds, self._stopwatch.rate(self.tally.evaluations), self.tally,
            self.archive, self._baseline_fitness, self.validated, self.missing_walls,
        )  # fmt: skip

    @property
    def seconds(self) -> float:
        """Counts the seconds of work, earlier sessions included."""
        return self._stopwatch.seconds

    @property
    def ending(self) -> str:
        """Explains why the run ended; empty while it has not."""
        return self._end.reason

    def _is_over(self, budget: Budget) -> bool:
        best = self.archive.best
        fitness = best.fitness if best is not None else None
        self._end.check_budget(budget, self._done.evaluations, self.seconds, fitness)
        return bool(self.ending)

    def _plan_batch(self) -> list[Sample]:
        if self.archive.batches == 0:
            return first_batch(self.plan, self.parts.starters)
        return next_batch(self.plan, self.archive)

    def _take_up(self, state: Mapping[str, Any]) -> None:
        """Reads what earlier sessions stored: whole batches, then an interrupted one."""
        with self.parts.folder.reading(STATE):
            self.validated = Validated(**state["validated"]) if state.get("validated") else None
            self.missing_walls = tuple(state.get("missing_walls", ()))
            for name, saved in state.get("generators", {}).items():
                if name in self.parts.generators:
                    self.parts.generators[name].restore(saved)
        records = self.parts.store.candidates.of(self.run_id)
        self.tally = Tally.of(records)
        self._judge = BatchJudge(self.plan, self.parts.store, self.parts.executor, self.tally)
        batches: dict[int, list[CandidateRecord]] = {}
        for record in records:
            batches.setdefault(record.batch, []).append(record)
        for batch in range(state.get("batches", 0)):
            rows = batches.pop(batch, [])
            self._fold(rows)
            self._judge.fingerprints |= {each.fingerprint for each in rows}
        self._open = {each.number: each for rows in batches.values() for each in rows}

    def _work_through(
        self, samples: Sequence[Sample], context: Context, allowed: Allowance
    ) -> tuple[list[CandidateRecord], Allowance]:
        """Proposes and judges samples as far as the budget goes; returns what is left of it."""
        found: list[CandidateRecord] = []
        waiting = list(samples)
        while waiting:
            chosen = allowed.cut(waiting, self.plan, self._asks)
            if not chosen:
                return found, replace(allowed, is_short=True)
            rows = self._judge.judge(self._propose(chosen), context, self._show)
            found, allowed = found + rows, allowed.less(rows)
            waiting = [each for each in waiting if each not in chosen]
        return found, allowed

    def _propose(self, samples: Sequence[Sample]) -> list[CandidateRecord]:
        """Proposes a candidate for every sample; those of an interrupted batch exist already."""
        missing = [each for each in samples if each.number not in self._open]
        for written in as_written(missing, self._write):
            rows = []
            for sample, proposal in written:
                if isinstance(proposal, Spent):
                    self._end.take_spent(proposal)
                else:
                    rows.append(proposed(self.run_id, self.archive.batches, sample, proposal))
            self._keep_proposals(rows)
        return [self._open[each.number] for each in samples if each.number in self._open]

    def _keep_proposals(self, rows: Sequence[CandidateRecord]) -> None:
        self.parts.store.candidates.propose(rows)
        for row in rows:
            self._open[row.number] = row
            self.tally.count_proposal(row)
        if any(row.cost.get("calls") for row in rows):  # what is spent stays spent
            self._save_state()

    def _write(self, sample: Sample) -> Proposal | Spent:
        if sample.request is None:
            return Proposal(sample.text, sample.name or sample.kind)
        notes = self.notes.text if self.notes else ""
        formula = fitness_named(self.plan.fitness).text
        best = losses_of(self.archive.best)
        request = replace(sample.request, fitness=formula, notes=notes, best=best)
        return self.parts.generators[sample.generator].propose(request)

    def _repairs(self, samples: Sequence[Sample], rows: Sequence[CandidateRecord]) -> list[Sample]:
        by_number = {each.number: each for each in samples}
        origins = [(by_number[row.number], row) for row in rows]
        generators = self.parts.generators
        planned = [
            repair_of(self.plan, generators.get(sample.generator), sample, row)
            for sample, row in origins
        ]
        return [each for each in planned if each]

    def _end_batch(self, rows: Sequence[CandidateRecord], *, is_whole: bool = True) -> None:
        """Adds a batch; one that the budget has cut short is completed by a later session."""
        before = self.archive.best
        self._fold(rows)
        self._open.clear()
        best = self.archive.best
        if best is not None and best is not before:
            self.parts.folder.write_text(BEST, best.text)
            self.validated = self.parts.validate(best.number, best.text) or self.validated
        self._save_state(self.archive.batches - (not is_whole))
        self.parts.store.runs.update(self.run_id, summary=self.progress().summary())
        self._show()

    def _report_gains(self, samples: Sequence[Sample], rows: Sequence[CandidateRecord]) -> None:
        known = self.parts.generators
        writers = {e.number: known[e.generator] for e in samples if e.generator in known}
        report_gains(writers, self.archive, rows, self._baseline_fitness)

    def _show(self) -> None:
        self.parts.watch(self.progress())

    def _asks(self, sample: Sample) -> bool:
        generator = self.parts.generators.get(sample.generator)
        return sample.request is not None and generator is not None and generator.reads_prompts

    def _fold(self, rows: Sequence[CandidateRecord]) -> None:
        """Adds a batch: nothing that lives on between batches knows more than its rows."""
        for row in rows:
            self._done.count_proposal(row)
            self._done.count_judgement(row)
        self.archive.end_batch(rows)
        if self.notes is not None:
            self.notes.end_batch(rows)

    def _save_state(self, batches: int | None = None) -> None:
        whole = self.archive.batches if batches is None else batches
        states = {name: dict(each.state()) for name, each in self.parts.generators.items()}
        checked = asdict(self.validated) if self.validated else None
        self._note_walls()
        self.parts.folder.write(STATE, {"batches": whole, "generators": states,
                                        "seconds": self.seconds, "validated": checked,
                                        "missing_walls": list(self.missing_walls)})  # fmt: skip

    def _context(self) -> Context:
        best = self.archive.best
        cases = self._cases_of(best.number) if best is not None else ()
        return Context(cases, dict(self.archive.signatures), self.plan.may_hold)

    def _cases_of(self, number: int) -> tuple[Mapping[str, float], ...]:
        return tuple(self.parts.store.candidates.get(self.run_id, number).cases)
