"""Searches: proposes a batch, has it judged, takes it in, and begins again.

Every random number derives from the run's seed and a candidate's number, and batches are taken
in by number: the result does not depend on how many workers judged, or who was first. What a run
has is what the store has; resuming means to read it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from podium.errors import MissingError, UsageError
from podium.search.fitness import Outcome, fitness_named
from podium.search.generator import Cost, Failure, Generator, Proposal, Spent
from podium.search.population import Archive
from podium.search.run.executor import Context, Executor, Task
from podium.search.run.folder import BEST, STATE, RunFolder
from podium.search.run.memory import Memory
from podium.search.run.plan import Budget, RunPlan
from podium.search.run.progress import Progress, Tally, Validated
from podium.search.run.proposals import as_written
from podium.search.run.samples import BRED, REPAIR, TUNED, Sample, first_batch, next_batch
from podium.search.run.verdicts import entry_of, judged, problem_of, proposed, refused
from podium.search.verdict import ALLOWLIST, COMPILE, CONTRACT, NOVELTY, SIGNATURE, SYNTAX, TINY
from podium.store import CandidateRecord, Store
from podium.store.records import JUDGED

REPAIRABLE = (SYNTAX, ALLOWLIST, SIGNATURE, TINY, CONTRACT, COMPILE)
"""Gates whose refusal says what is wrong with the text."""

MOST_IDLE = 20
"""Batches without a candidate that was worth a run, and generators have nothing more to say."""

Watch = Callable[[Progress], None]
Validate = Callable[[int, str], Validated | None]


@dataclass(frozen=True, slots=True)
class Parts:
    """Holds what a search works with."""

    store: Store
    folder: RunFolder
    executor: Executor
    generators: Mapping[str, Generator]
    starters: Sequence[tuple[str, str]] = ()
    validate: Validate = lambda _number, _text: None
    watch: Watch = lambda _progress: None
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class Search:
    """Is one run at work."""

    run_id: str
    plan: RunPlan
    parts: Parts
    seconds_before: float = 0.0  # of earlier sittings
    tally: Tally = field(default_factory=Tally)
    fingerprints: set[str] = field(default_factory=set)
    memory: Memory | None = None  # where a generator reads prompts
    validated: Validated | None = None
    ending: str = ""  # why the run is over
    _stopped: Spent | None = None  # a generator that cannot go on
    _idle: int = 0  # batches in a row without a run
    archive: Archive = field(init=False)
    _began: float = field(init=False)
    _baseline: list[dict[str, float]] = field(default_factory=list)
    _usual: float = field(init=False, default=0.0)
    _marks: list[tuple[float, int]] = field(default_factory=list)
    _open: dict[int, CandidateRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan, clock = self.plan, self.parts.clock
        self.archive = Archive(plan.customs, plan.seed, plan.training.families)
        if any(each.reads_prompts for each in self.parts.generators.values()):
            self.memory = Memory()
        self._began = clock()
        self._take_up(self.parts.folder.state())

    def get_ready(self) -> None:
        """Waits for the workers, which tell what fgd reaches."""
        if not self._baseline:
            self._baseline = self.parts.executor.baseline()
            kinds = [case.protocol for case in self.plan.training.cases]
            rows = zip(kinds, self._baseline, self._baseline, strict=True)
            outcomes = [Outcome(*row) for row in rows]
            self._usual = fitness_named(self.plan.fitness).score(outcomes)

    def go(self, budget: Budget) -> None:
        """Searches until the budget is spent or a generator is."""
        self.get_ready()
        while not self._is_over(budget):
            self.step()
        self.parts.watch(self.progress())

    def step(self) -> None:
        """Does one batch."""
        self.get_ready()
        if self.archive.batches == 0:
            samples = first_batch(self.plan, self.parts.starters)
        else:
            samples = next_batch(self.plan, self.archive)
        if not samples:
            self.ending = "nothing is left to tune"
            return
        context = self._context()
        found = self._judge(self._propose(samples), context)
        by_number = {each.number: each for each in samples}
        repairs = [self._repair(by_number[row.number], row) for row in found]
        found += self._judge(self._propose([each for each in repairs if each]), context)
        self._end_batch(found)
        self._check_stop()
        self._check_start(found)
        self._idle = 0 if any(row.cost.get("evaluations") for row in found) else self._idle + 1
        if self._idle >= MOST_IDLE:
            last = next((row.reason for row in reversed(found) if row.reason), "")
            self.ending = f"nothing new was proposed in {MOST_IDLE} batches" + (
                f"; the last reason: {last}" if last else ""
            )

    def progress(self) -> Progress:
        """Gives the moment."""
        return Progress(
            self.run_id, self.seconds, self._rate(), self.tally, self.archive, self._usual,
            self.validated,
        )  # fmt: skip

    @property
    def seconds(self) -> float:
        """Counts the time at work, earlier sittings included."""
        return self.seconds_before + self.parts.clock() - self._began

    def _is_over(self, budget: Budget) -> bool:
        best = self.archive.best
        if budget.evaluations is not None and self.tally.evaluations >= budget.evaluations:
            self.ending = f"{budget.evaluations:,} evaluations are done"
        elif budget.seconds is not None and self.seconds >= budget.seconds:
            self.ending = f"{budget.seconds:g} seconds are over"
        elif budget.target is not None and best is not None and best.fitness >= budget.target:
            self.ending = f"the target of {budget.target:g} is reached"
        return bool(self.ending)

    def _take_up(self, state: Mapping[str, Any]) -> None:
        """Reads what earlier sittings stored: whole batches, then the one that was cut off."""
        self.seconds_before = state.get("seconds", 0.0)
        self.validated = Validated(**state["validated"]) if state.get("validated") else None
        for name, saved in state.get("generators", {}).items():
            if name in self.parts.generators:
                self.parts.generators[name].restore(saved)
        records = self.parts.store.candidates.of(self.run_id)
        self.tally = Tally.of(records)
        batches: dict[int, list[CandidateRecord]] = {}
        for record in records:
            batches.setdefault(record.batch, []).append(record)
        for batch in range(state.get("batches", 0)):
            rows = batches.pop(batch, [])
            self._fold(rows)
            self.fingerprints |= {each.fingerprint for each in rows}
        self._open = {each.number: each for rows in batches.values() for each in rows}

    def _propose(self, samples: Sequence[Sample]) -> list[CandidateRecord]:
        """Gives a row for every sample: those of a batch that was cut off are there already."""
        missing = [each for each in samples if each.number not in self._open]
        for written in as_written(missing, self._write):
            rows = []
            for sample, proposal in written:
                if isinstance(proposal, Spent):
                    self._end_by(proposal)
                else:
                    rows.append(proposed(self.run_id, self.archive.batches, sample, proposal))
            self._keep_proposals(rows)
        return [self._open[each.number] for each in samples if each.number in self._open]

    def _end_by(self, spent: Spent) -> None:
        self.ending = self.ending or spent.reason
        if spent.where and self._stopped is None:
            self._stopped = spent

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
        notes = self.memory.notes if self.memory else ""
        formula = fitness_named(self.plan.fitness).text
        request = replace(sample.request, fitness=formula, notes=notes)
        return self.parts.generators[sample.generator].propose(request)

    def _judge(self, rows: Sequence[CandidateRecord], context: Context) -> list[CandidateRecord]:
        """Judges what is not judged yet; every judgement is stored as soon as it is there."""
        done = {row.number: row for row in rows if row.state == JUDGED}
        tasks: list[Task] = []
        for row in rows:
            if row.number in done:
                self.fingerprints.add(row.fingerprint)
                continue
            problem = problem_of(row) or self._unwanted(row)
            if problem is not None:
                done[row.number] = self._keep(refused(row, *problem))
            else:
                tasks.append(self._task(row))
        waiting = {row.number: row for row in rows}
        for each in self.parts.executor.run(tasks, context):
            row = judged(waiting[each.number], each)
            done[each.number] = self._keep(row)
            self.parts.watch(self.progress())
        return [done[row.number] for row in rows]

    def _unwanted(self, row: CandidateRecord) -> tuple[str, str] | None:
        """Refuses what this run does not want; a text that is to be tuned is known on purpose."""
        if row.kind == TUNED:
            return None
        if row.may_hold and not self.plan.may_hold:
            return ALLOWLIST, "it may hold pods; place every pod on a node where it fits"
        if row.fingerprint in self.fingerprints:
            return NOVELTY, "it computes the same as a candidate that was judged before"
        self.fingerprints.add(row.fingerprint)
        return None

    def _task(self, row: CandidateRecord) -> Task:
        tuning = self.plan.tuning.evaluations if row.kind == TUNED else 0
        return Task(row.number, row.text, row.complexity, tuning, self.plan.seed + row.number)

    def _keep(self, row: CandidateRecord) -> CandidateRecord:
        self.parts.store.candidates.judge([row])
        self.tally.count_judgement(row)
        return row

    def _repair(self, sample: Sample, row: CandidateRecord) -> Sample | None:
        """Plans one attempt at repair of what a gate refused, where the generator can."""
        generator = self.parts.generators.get(sample.generator)
        is_read = bool(row.text) and row.gate in REPAIRABLE  # no text: there is nothing to mend
        if generator is None or not generator.can_repair or not is_read:
            return None
        assert sample.request is not None
        failure = Failure(row.text, row.gate, row.reason)
        request = replace(sample.request, failure=failure, seed=(*sample.request.seed, 1))
        number = sample.number + self.plan.block // 2
        return replace(sample, number=number, kind=REPAIR, request=request)

    def _end_batch(self, rows: Sequence[CandidateRecord]) -> None:
        self._teach(rows)
        before = self.archive.best
        self._fold(rows)
        self._open.clear()
        best = self.archive.best
        if best is not None and best is not before:
            self.parts.folder.write_text(BEST, best.text)
            self.validated = self.parts.validate(best.number, best.text) or self.validated
        self._save_state()
        self.parts.store.runs.update(self.run_id, summary=self.progress().summary())
        self.parts.watch(self.progress())

    def _fold(self, rows: Sequence[CandidateRecord]) -> None:
        """Takes a batch in: nothing that is kept between batches knows more than its rows."""
        self.archive.end_batch(entry_of(row) for row in rows)
        if self.memory is not None:
            self.memory.end_batch(rows)

    def _save_state(self) -> None:
        states = {name: dict(each.state()) for name, each in self.parts.generators.items()}
        checked = asdict(self.validated) if self.validated else None
        self.parts.folder.write(STATE, {"batches": self.archive.batches, "generators": states,
                                        "seconds": self.seconds, "validated": checked})  # fmt: skip

    def _teach(self, rows: Sequence[CandidateRecord]) -> None:
        """Tells generators what became of their proposals."""
        for row in rows:
            generator = self.parts.generators.get(row.source.partition(":")[0])
            if generator is None or row.kind not in (BRED, REPAIR):
                continue
            parents = [found for each in row.parents if (found := self.archive.member(each))]
            usual = max((each.fitness for each in parents), default=self._usual)
            gain = row.fitness - usual if row.accepted and row.fitness is not None else None
            cost: dict[str, Any] = {k: v for k, v in row.cost.items() if k != "evaluations"}
            generator.learn(row.source, gain, Cost(**cost))

    def _context(self) -> Context:
        best = self.archive.best
        cases = self._cases_of(best.number) if best is not None else ()
        return Context(cases, dict(self.archive.signatures))

    def _cases_of(self, number: int) -> tuple[Mapping[str, float], ...]:
        return tuple(self.parts.store.candidates.get(self.run_id, number).cases)

    def _check_stop(self) -> None:
        """Stops a run that nobody writes for; what was written is kept."""
        if self._stopped is not None:
            raise MissingError(
                self._stopped.reason, where=self._stopped.where,
                hint=f"put that right, then podium search resume {self.run_id} goes on",
            )  # fmt: skip

    def _check_start(self, rows: Sequence[CandidateRecord]) -> None:
        """Stops a run at once whose beginning is of no use, and says why."""
        if self.archive.batches == 1 and self.archive.best is None:
            why = [f"{row.source}: {row.gate}: {row.reason}" for row in rows[:3]]
            told = "; ".join(why) or self.ending
            raise UsageError(
                "nothing that the run begins with is accepted", where=told,
                hint="podium search evaluate FILE says more of each",
            )  # fmt: skip

    def _rate(self) -> float:
        now = self.parts.clock()
        self._marks = [each for each in self._marks if now - each[0] < 20][-500:]
        self._marks.append((now, self.tally.evaluations))
        first = self._marks[0]
        return (self.tally.evaluations - first[1]) / max(1e-6, now - first[0])
