"""Searches: proposes candidates, judges them, adds whole batches to the archive, and plans ahead.

Several batches are under way at a time, so that no worker waits for the last candidate of one, nor
for a model. They are added to the archive in their order, and each is planned from what is known
a fixed number of batches before it. Every random number derives from the run's seed and a
candidate's number. So the result does not depend on how many workers judged, or which was first.
The store has everything that a run has; resuming means reading it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podium.search.generators.generator import Generator, Proposal, Spent
from podium.search.judging.fitness import Outcome, fitness_named
from podium.search.judging.panel import Ranking, rank_training
from podium.search.population import Archive, Member
from podium.search.run.batch import Sample
from podium.search.run.budget import Allowance, Ending, allowance_of
from podium.search.run.executor import Executor
from podium.search.run.folder import MOST_BATCHES, RANKING, STATE, SearchFolder
from podium.search.run.history import History
from podium.search.run.plan import Budget, RunPlan
from podium.search.run.progress import Progress, Tally
from podium.search.run.records import (
    Known,
    judged,
    problem_of,
    proposed,
    refused,
    report_gains,
    task_of,
)
from podium.search.run.requests import Requests
from podium.search.run.selection import Measure
from podium.search.run.validator import Validate
from podium.search.run.winner import Winner
from podium.store import CandidateRecord, Store
from podium.store.records import JUDGED
from podium.store.run_status import Stopwatch

Watch = Callable[[Progress], None]

LOOK_S = 0.25
"""The longest wait before the clock is looked at again."""

POLL_S = 0.02
"""The longest wait for workers while a model may answer too."""

WRITTEN_AT_ONCE = 8
"""Candidates that are stored together before workers get them."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The components that a search works with."""

    store: Store
    folder: SearchFolder
    executor: Executor
    generators: Mapping[str, Generator]
    starters: Sequence[tuple[str, str]] = ()
    validate: Validate = lambda _number, _text: None
    measure: Measure | None = None  # on the selection set
    watch: Watch = lambda _progress: None
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class Search:
    """One session of a run."""

    run_id: str
    plan: RunPlan
    parts: Parts
    tally: Tally = field(default_factory=Tally)
    missing_walls: tuple[str, ...] = ()  # of the sandbox, in any session
    ranking: Ranking | None = None  # how well the training set ranks
    history: History = field(init=False)
    _end: Ending = field(init=False)
    _stopwatch: Stopwatch = field(init=False)
    _known: Known = field(init=False)
    _requests: Requests = field(init=False)
    winner: Winner = field(init=False)
    _baseline: list[dict[str, float]] = field(default_factory=list)
    _baseline_fitness: float = field(init=False, default=0.0)
    _done: Tally = field(default_factory=Tally)  # of whole batches alone
    _open: dict[int, CandidateRecord] = field(default_factory=dict)  # of all other batches
    _sent: dict[int, Sample] = field(default_factory=dict)  # to workers, not judged yet
    _last: int | None = None  # batches to be whole before a run ends whose generator is spent

    def __post_init__(self) -> None:
        state = self.parts.folder.state()
        self._end = Ending(self.run_id)
        parts = self.parts
        self.winner = Winner.of(self.plan, parts.folder, parts.measure, parts.validate)
        whole: int = state.get("batches", 0)
        self.history = History(self.plan, self.parts.starters, whole)
        self._requests = Requests(self.plan, self.parts.generators, self.history, self._open)
        with self.parts.folder.reading(STATE):
            self._restore(state)
        self._take_up(whole)

    @property
    def archive(self) -> Archive:
        """Returns the islands and what was seen on them."""
        return self.history.archive

    def get_ready(self) -> None:
        """Waits for the workers, which report what fgd reaches."""
        if not self._baseline:
            self._baseline = self.parts.executor.baseline()
            self._note_walls()
            training = self.plan.training
            counted = self._baseline[training.first_counted :]
            rows = zip(training.counted, counted, counted, strict=True)
            outcomes = [Outcome(case.protocol, own, fgd, case.family) for case, own, fgd in rows]
            self._baseline_fitness = fitness_named(self.plan.fitness).score(outcomes)

    def _note_walls(self) -> None:
        """Records permanently that candidates ran less confined than they should."""
        known = {*self.missing_walls, *self.parts.executor.missing_walls()}
        self.missing_walls = tuple(sorted(known))

    def rank(self, jobs: int) -> Ranking:
        """Measures once in a run how well its training set ranks."""
        folder = self.parts.folder
        if self.ranking is None and folder.has(RANKING):
            with folder.reading(RANKING):
                self.ranking = Ranking.from_object(folder.read(RANKING))
        if self.ranking is None:
            self.ranking = rank_training(self.plan.training, fitness_named(self.plan.fitness), jobs)
            folder.write(RANKING, self.ranking.as_object())
        return self.ranking

    @property
    def best(self) -> Member | None:
        """Returns the winner so far: the chosen one, else the best by training."""
        return self.winner.among(self.archive)

    def go(self, budget: Budget) -> None:
        """Searches until the budget or a generator is used up."""
        self.work(budget)
        self.conclude()

    def step(self, budget: Budget = Budget()) -> None:  # noqa: B008 - frozen
        """Works until one more batch is whole, and on nothing beyond it."""
        self.work(budget, self.archive.batches + 1)
        if self._end.reason:
            self.conclude()

    def work(self, budget: Budget, batches: int | None = None) -> None:
        """Works until the run ends, or so many batches are whole."""
        self.get_ready()
        try:
            while not self._is_over(budget) and self.archive.batches != batches:
                last = min(e for e in (batches, self._last, MOST_BATCHES) if e is not None)
                if not self._turn(budget, last):
                    break
        finally:
            self.parts.executor.drop()
            self._sent.clear()
            self._keep_answers(self._requests.close())

    def progress(self) -> Progress:
        """Returns the progress of the run at this moment."""
        winner = self.winner
        return Progress(
            self.run_id, self.seconds, self._stopwatch.rate(self.tally.evaluations), self.tally,
            self.archive, self._baseline_fitness, winner.validated, self.missing_walls,
            winner.chosen, self.ranking,
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
        closing_s = self.winner.closing_s(budget, self.tally.seconds_per_evaluation)
        by_then_s = self.seconds + closing_s
        self._end.check_budget(budget, by_then_s, best.fitness if best is not None else None)
        return bool(self.ending) and (self._last is None or self.archive.batches >= self._last)

    def _turn(self, budget: Budget, batches: int) -> bool:
        """Sends what may be judged and hears what was; returns False once nothing is left to do."""
        allowed = self._admit(budget, batches)
        if self._end_batches(batches):
            return True
        if not self._is_busy:  # what was refused at once may be mended
            allowed = self._admit(budget, batches)
        if not self._is_busy:
            is_exhausted = self.history.is_exhausted
            told = "nothing is left to tune" if is_exhausted else allowed.shortage()
            self._end.reason = self._end.reason or told
            return False
        self._hear()
        return True

    @property
    def _is_busy(self) -> bool:
        """Returns whether a worker or a model is at work."""
        return bool(self._sent or self._requests.under_way)

    def _restore(self, state: Mapping[str, Any]) -> None:
        """Reads what earlier sessions kept beside the candidates."""
        self._stopwatch = Stopwatch(self.parts.clock, float(state.get("seconds", 0.0)))
        self.winner.restore(state)
        self.missing_walls = tuple(state.get("missing_walls", ()))
        learned = state.get("learned", {})
        self._requests.learned = {int(batch): dict(saved) for batch, saved in learned.items()}
        for name, saved in state.get("generators", {}).items():
            if name in self.parts.generators:
                self.parts.generators[name].restore(saved)

    def _take_up(self, whole: int) -> None:
        """Reads the candidates of earlier sessions: whole batches, then those under way."""
        records = self.parts.store.candidates.of(self.run_id)
        self.tally = Tally.of(records)
        self._known = Known(self.plan)
        batches: dict[int, list[CandidateRecord]] = {}
        for record in records:
            batches.setdefault(record.batch, []).append(record)
        for batch in range(whole):
            self._fold(batches.pop(batch, []))
        self._open.update((each.number, each) for rows in batches.values() for each in rows)
        for row in self._open.values():
            if row.state == JUDGED:
                self._known.add(row)
        self._requests.repair_known()

    def _order(self, batch: int) -> Iterator[Sample]:
        """Lists the samples of a batch in the order in which they count."""
        yield from self.history.plans[batch].samples
        yield from self._requests.of(batch)

    def _admit(self, budget: Budget, batches: int) -> Allowance:
        """Has candidates written and sends them to workers, as far as the budget goes."""
        allowed = allowance_of(budget, self._done)
        answered_s = self.seconds + self.tally.seconds_per_call
        self._requests.ask(allowed, budget, batches, answered_s)
        writing = self._requests.under_way
        for batch in sorted(each for each in self.history.plans if each < batches):
            if self.plan.ahead:  # else a repair joins the batch of what it repairs
                allowed.kept_back += self._requests.most_repairs(batch - 1 - self.plan.ahead)
            if not self._admit_batch(batch, allowed, writing):
                break
        return allowed

    def _admit_batch(self, batch: int, allowed: Allowance, writing: set[int]) -> bool:
        """Sends the candidates of a batch to workers; False if the budget ends before its end."""
        fresh: list[Sample] = []
        for sample in list(self._order(batch)):
            if self._is_counted(sample, allowed):
                continue
            if sample.is_prompted and sample.number not in self._open:
                allowed.kept_back += 1 + self._requests.may_be_repaired(sample)
                if sample.number in writing:
                    continue
                break  # no calls are left for it
            if len(fresh) == WRITTEN_AT_ONCE or (fresh and not allowed.has_room()):
                allowed.used -= self._send(fresh)
                fresh = []
            if not allowed.has_room():
                return False
            fresh.append(sample)
            allowed.used += 1
        else:
            allowed.used -= self._send(fresh)
            return True
        self._send(fresh)
        return False

    def _is_counted(self, sample: Sample, allowed: Allowance) -> bool:
        """Counts a sample that needs nothing more than to be waited for."""
        number = sample.number
        if self._is_judged(number):
            allowed.used += self._open[number].cost.get("evaluations", 0)
        elif number in self._sent:
            allowed.used += 1
            allowed.kept_back += self._requests.may_be_repaired(sample)
        return number in self._sent or number in self._requests.unwritten or self._is_judged(number)

    def _send(self, samples: Sequence[Sample]) -> int:
        """Sends candidates to workers, once they are written and stored.

        Returns how many of them need no evaluation.
        """
        unwritten = [each for each in samples if each.number not in self._open]
        self._keep_answers([(each, self._requests.write(each)) for each in unwritten])
        sent = 0
        for sample in samples:
            row = self._open.get(sample.number)
            if row is None:
                continue
            problem = problem_of(row) or self._known.problem_of(row)
            self._known.add(row)
            if problem is not None:
                self._keep([refused(row, *problem)], sample)
                continue
            sent += 1
            self._sent[row.number] = sample
            context = self.history.plans[row.batch].context
            self.parts.executor.send(task_of(row, sample), context)
        return len(samples) - sent

    def _keep_answers(self, answers: Sequence[tuple[Sample, Proposal | Spent]]) -> None:
        """Stores what generators wrote: it is paid for."""
        rows = []
        for sample, proposal in answers:
            if isinstance(proposal, Spent):
                self._end.take_spent(proposal)
                self._requests.unwritten.add(sample.number)
                self._last = self._last or self.archive.batches + 1
            else:
                batch = sample.number // self.plan.block
                rows.append(proposed(self.run_id, batch, sample, proposal))
        self.parts.store.candidates.propose(rows)
        for row in rows:
            self._open[row.number] = row
            self.tally.count_proposal(row)
        if any(row.cost.get("calls") for row in rows):  # what is spent stays spent
            self._save_state()

    def _hear(self) -> None:
        """Waits until a worker or a model has something to say."""
        writing = self._requests.under_way
        if self._sent:
            found = self.parts.executor.receive(POLL_S if writing else LOOK_S)
            rows = [judged(self._open[each.number], each) for each in found]
            self._keep(rows, *(self._sent.pop(row.number) for row in rows))
        if writing:
            self._keep_answers(self._requests.answers(0.0 if self._sent else LOOK_S))
        self._show()

    def _keep(self, rows: Sequence[CandidateRecord], *samples: Sample) -> None:
        """Stores judgements; a candidate that its author can mend is asked for once more."""
        self.parts.store.candidates.judge(rows)
        for row, sample in zip(rows, samples, strict=True):
            self._open[row.number] = row
            self.tally.count_judgement(row)
            if not self.plan.ahead:
                self._requests.repair(sample, row)

    def _end_batches(self, batches: int) -> bool:
        """Adds every batch that is whole by now, in order; returns whether there was one."""
        before = self.archive.batches
        while self.archive.batches < batches and self._is_whole(self.archive.batches):
            self._end_batch(self.archive.batches)
        return self.archive.batches != before

    def _is_whole(self, batch: int) -> bool:
        if batch not in self.history.plans or self.history.is_exhausted:
            return False
        numbers = (each.number for each in self._order(batch))
        return all(each in self._requests.unwritten or self._is_judged(each) for each in numbers)

    def _is_judged(self, number: int) -> bool:
        return number in self._open and self._open[number].state == JUDGED

    def _end_batch(self, batch: int) -> None:
        """Adds a whole batch to the archive, and plans further ones by it."""
        samples = list(self._order(batch))
        rows = [self._open[each.number] for each in samples if each.number in self._open]
        before = self.archive.best
        known = self.parts.generators
        writers = {e.number: known[e.generator] for e in samples if e.generator in known}
        report_gains(writers, self.archive, rows, self._baseline_fitness)
        self._requests.note_learned()
        self._fold(rows)
        self.winner.take(self.archive.best, before)
        self._save_state()
        self.parts.store.runs.update(self.run_id, summary=self.progress().summary())
        self._show()
        self._end.end_batch(self.archive, rows)

    def _fold(self, rows: Sequence[CandidateRecord]) -> None:
        """Adds a batch: nothing that lives on between batches knows more than its rows."""
        for row in rows:
            self._known.add(row)
            self._done.count_proposal(row)
            self._done.count_judgement(row)
            self._open.pop(row.number, None)
        self._requests.end_batch(rows, self._done.evaluations)
        self.history.end_batch(rows)

    def conclude(self) -> None:
        """Ends a session: what was judged of batches that are not whole counts for the best too."""
        whole, before = self.archive.batches, self.archive.best
        batches: dict[int, list[CandidateRecord]] = {}
        for row in self._open.values():
            if row.state == JUDGED:
                batches.setdefault(row.batch, []).append(row)
        for batch in sorted(batches):
            self.history.add(sorted(batches[batch], key=lambda each: each.number))
        self.winner.take(self.archive.best, before)
        self.winner.choose(self.archive)
        self._save_state(whole)
        self.parts.store.runs.update(self.run_id, summary=self.progress().summary())
        self._show()
        self._end.end_session(self.archive, [row for rows in batches.values() for row in rows])

    def _show(self) -> None:
        self.parts.watch(self.progress())

    def _save_state(self, batches: int | None = None) -> None:
        whole = self.archive.batches if batches is None else batches
        states = {name: dict(each.state()) for name, each in self.parts.generators.items()}
        self._note_walls()
        self.parts.folder.write(STATE, {
            "batches": whole, "generators": states, "seconds": self.seconds,
            "learned": self._requests.learned, "missing_walls": list(self.missing_walls),
            **self.winner.state(),
        })  # fmt: skip
