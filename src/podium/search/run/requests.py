"""Asks models for what they are to write: batch by batch, within the budget, repairs included.

An answer takes long. So models are asked ahead, in threads, while the run does other things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

from podium.search.generators.generator import Generator, Proposal, Spent
from podium.search.population.member import REPAIR
from podium.search.run.batch import Sample, repair_of
from podium.search.run.budget import Allowance
from podium.search.run.history import History
from podium.search.run.plan import PROMPTED, Budget, RunPlan
from podium.store import CandidateRecord
from podium.store.records import JUDGED

MOST_AT_ONCE = 64
"""Requests that are under way at a time; a generator may allow fewer."""

Write = Callable[[Sample], Proposal | Spent]
Answer = tuple[Sample, Proposal | Spent]


class Writers:
    """Has samples written in threads; answers come in any order, and are paid for when they do."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._threads: ThreadPoolExecutor | None = None
        self._asked: dict[Future[Proposal | Spent], Sample] = {}
        self._done: SimpleQueue[Future[Proposal | Spent]] = SimpleQueue()

    @property
    def numbers(self) -> set[int]:
        """Lists the candidates that are asked for and not answered yet."""
        return {each.number for each in self._asked.values()}

    def ask(self, sample: Sample) -> None:
        """Asks for a sample, and returns at once."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="podium-writer")
        future = self._threads.submit(self._write, sample)
        self._asked[future] = sample
        future.add_done_callback(self._done.put)

    def answers(self, timeout_s: float) -> list[Answer]:
        """Returns the answers that are there, after a wait for the first; an error is raised."""
        found = []
        with suppress(Empty):
            found.append(self._done.get(block=timeout_s > 0, timeout=timeout_s or None))
            while True:
                found.append(self._done.get_nowait())
        return [(self._asked.pop(each), each.result()) for each in found if each in self._asked]

    def close(self) -> list[Answer]:
        """Asks nobody any more; returns the answers to what was under way, which is paid for."""
        if self._threads is None:
            return []
        self._threads.shutdown(cancel_futures=True)
        threads, self._threads = self._threads, None
        del threads
        begun = [(sample, each) for each, sample in self._asked.items() if not each.cancelled()]
        self._asked = {}
        return [(sample, each.result()) for sample, each in begun if each.exception() is None]


SPARE = 2
"""Batches beyond the expected end of a run that models are still asked for."""


@dataclass(slots=True)
class Requests:
    """What the models of a run are asked for, and what of it nobody will write any more."""

    plan: RunPlan
    generators: Mapping[str, Generator]
    history: History
    rows: Mapping[int, CandidateRecord]  # of batches that are not whole, as the run keeps them
    learned: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)  # up to a batch
    unwritten: set[int] = field(default_factory=set)  # that no generator will write any more
    _repairs: dict[int, list[Sample]] = field(default_factory=dict)  # by the batch they join
    _used: list[int] = field(default_factory=list)  # evaluations up to the end of each batch
    _writers: Writers = field(init=False)

    def __post_init__(self) -> None:
        self._writers = Writers(self.write)

    @property
    def under_way(self) -> set[int]:
        """Lists the candidates that are asked for and not answered yet."""
        return self._writers.numbers

    def of(self, batch: int) -> Iterator[Sample]:
        """Lists what is asked for a batch, repairs last."""
        yield from self.history.asked.get(batch, ())
        yield from self._repairs.get(batch, ())

    def ask(self, allowed: Allowance, budget: Budget, batches: int, answered_s: float) -> None:
        """Asks for what comes before a batch, in the order of batches, within the budget.

        Args:
            allowed: counts the calls.
            budget: of the run.
            batches: nothing is asked for the batch of this number or later ones.
            answered_s: when an answer can be expected, in seconds of the run.
        """
        if self.history.notes is None:
            return
        is_in_time = budget.seconds is None or answered_s < budget.seconds
        known = {*self.under_way, *self.unwritten, *self.rows}
        for batch in self._waiting(batches):
            if self._is_beyond(batch, budget):
                return
            for sample, allowed.calls_kept_back in self._calls(batch):
                is_known = sample.number in known
                if not allowed.may_call() or not (is_known or is_in_time):
                    return
                if not is_known:
                    self._writers.ask(sample)
                allowed.called += sample.number not in self.unwritten

    def _waiting(self, batches: int) -> list[int]:
        found = sorted({*self.history.asked, *self._repairs})
        return [each for each in found if self.history.archive.batches <= each < batches]

    def _calls(self, batch: int) -> Iterator[tuple[Sample, int]]:
        """Lists what is asked for a batch, each with the repairs that may still come before it."""
        own = batch - self.plan.ahead
        for samples, until in ((self.history.asked, own), (self._repairs, own + 1)):
            kept_back = self.most_repairs(*range(self.history.archive.batches, until))
            yield from ((each, kept_back) for each in samples.get(batch, ()))

    def _is_beyond(self, batch: int, budget: Budget) -> bool:
        """Returns whether the evaluations of a run will be used up before a later batch.

        If they are not after all, it is asked for when the batch is next. Whatever was expected
        after one of the batches since it was planned counts, whenever somebody looks.
        """
        whole, pipeline = self.history.archive.batches, self.plan.pipeline
        if budget.evaluations is None or batch <= whole + pipeline.lag or not whole:
            return False
        planned = max(1, batch - pipeline.lag - self.plan.ahead)
        usual = (self._used[count - 1] / count for count in range(planned, whole + 1))
        return all(each * (batch - SPARE) > budget.evaluations for each in usual)

    def write(self, sample: Sample) -> Proposal | Spent:
        """Has a sample written, and waits for it."""
        if sample.request is None:
            return Proposal(sample.text, sample.name or sample.kind)
        return self.generators[sample.generator].propose(sample.request)

    def answers(self, timeout_s: float) -> list[Answer]:
        """Returns the answers that are there, after a wait for the first; an error is raised."""
        return self._writers.answers(timeout_s)

    def close(self) -> list[Answer]:
        """Asks nobody any more; returns the answers to what was under way, which is paid for."""
        return self._writers.close()

    def repair(self, sample: Sample, row: CandidateRecord) -> None:
        """Plans to ask once more for what was refused, where its author can repair it."""
        if row.kind == REPAIR:
            return
        found = repair_of(self.plan, self.generators.get(sample.generator), sample, row)
        if found is not None:
            batch = found.number // self.plan.block
            known = [*self._repairs.get(batch, ()), found]
            self._repairs[batch] = sorted(known, key=lambda each: each.number)

    def repair_known(self) -> None:
        """Plans the repairs of what earlier sessions judged in batches that are not whole."""
        for batch in () if self.plan.ahead else tuple(self.history.plans):
            for sample in self.history.asked.get(batch, ()):
                if self._is_judged(sample.number):
                    self.repair(sample, self.rows[sample.number])

    def may_be_repaired(self, sample: Sample) -> bool:
        """Returns whether a repair of a sample may join the same batch."""
        return self._can_repair(sample) and sample.kind != REPAIR and not self.plan.ahead

    def most_repairs(self, *batches: int) -> int:
        """Counts the samples of batches whose repair may still be asked for."""
        return sum(
            self._can_repair(each) and each.number not in self.unwritten
            and (self.plan.ahead > 0 or not self._is_judged(each.number))
            for batch in batches if batch >= self.history.archive.batches
            for each in self.history.asked.get(batch, ())
        )  # fmt: skip

    def _can_repair(self, sample: Sample) -> bool:
        generator = self.generators.get(sample.generator)
        return generator is not None and generator.can_repair

    def _is_judged(self, number: int) -> bool:
        return number in self.rows and self.rows[number].state == JUDGED

    def note_learned(self) -> None:
        """Keeps what generators know after a batch as long as something planned by it is asked."""
        batch, pipeline = self.history.archive.batches, self.plan.pipeline
        if self.history.notes is None:
            return
        known = self.generators.items()
        self.learned[batch] = {name: dict(e.state()) for name, e in known if name in PROMPTED}
        self.learned.pop(batch - pipeline.lag - 2 * self.plan.ahead - 1, None)

    def end_batch(self, rows: Sequence[CandidateRecord], evaluations: int) -> None:
        """Takes a whole batch, before the history does; so many evaluations are used by now."""
        batch = self.history.archive.batches
        self.history.learned = self.learned.get(batch, {})
        by_number = {each.number: each for each in self.history.asked.get(batch, ())}
        for row in rows if self.plan.ahead else ():
            if row.number in by_number:
                self.repair(by_number[row.number], row)
        self._repairs.pop(batch, None)
        self._used.append(evaluations)
