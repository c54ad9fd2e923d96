"""Judges tasks on this machine: threads that wait for worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Protocol

from podium.errors import PodiumError
from podium.evaluation.cases import TrainingSet
from podium.evaluation.measures import Values
from podium.search.candidate.constants import with_constants
from podium.search.candidate.verdict import TRAINING, Judgement, Verdict
from podium.search.judging.judge import Judge
from podium.search.judging.probe import Decisions
from podium.search.sandbox.limits import Limits


@dataclass(frozen=True, slots=True)
class Task:
    """Asks for the judgement of one candidate, perhaps with its constants tuned first."""

    number: int
    text: str
    complexity: int
    tuning: int = 0  # evaluations to spend on constants
    seed: int = 0  # of the tuning


@dataclass(frozen=True, slots=True)
class Context:
    """Holds what all tasks of a batch are judged against."""

    incumbent: tuple[Values, ...] = ()
    signatures: Mapping[str, int] = field(default_factory=dict)  # with the least complexity
    may_hold: bool = False  # whether who holds pods is wanted

    def wants(self, complexity: int, decisions: Decisions) -> bool:
        """Tells whether a candidate decides anew, or as another does but more simply."""
        return complexity < self.signatures.get(decisions.signature, complexity + 1)


@dataclass(frozen=True, slots=True)
class Done:
    """Holds a task's judgement, and its text with the constants it was judged with."""

    number: int
    text: str
    judgement: Judgement
    evaluations: int = 1


class Executor(Protocol):
    """Judges tasks, here or elsewhere."""

    def baseline(self) -> list[dict[str, float]]:
        """Gives what fgd reaches on each case."""
        ...

    def missing_walls(self) -> tuple[str, ...]:
        """Names the walls of the sandbox that somebody who judges lacks."""
        ...

    def run(self, tasks: Sequence[Task], context: Context) -> Iterator[Done]:
        """Judges tasks and gives each as soon as it is done."""
        ...

    def close(self) -> None:
        """Ends all processes."""
        ...


class LocalExecutor:
    """Judges on so many worker processes of this machine."""

    def __init__(self, training: TrainingSet, fitness: str, workers: int, limits: Limits) -> None:
        self._judge = Judge(training, fitness, workers, limits)
        self._threads = ThreadPoolExecutor(workers)

    def baseline(self) -> list[dict[str, float]]:
        """Gives what fgd reaches on each case."""
        self._judge.pool.get_ready()
        return self._judge.pool.baseline

    def missing_walls(self) -> tuple[str, ...]:
        """Names the walls of the sandbox that this machine lacks."""
        return self._judge.pool.missing_walls

    def run(self, tasks: Sequence[Task], context: Context) -> Iterator[Done]:
        """Judges tasks and gives each as soon as it is done."""
        waiting = [self._threads.submit(perform, self._judge, task, context) for task in tasks]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()

    def close(self) -> None:
        """Ends all processes."""
        self._judge.pool.close()
        self._threads.shutdown(cancel_futures=True)


def perform(judge: Judge, task: Task, context: Context) -> Done:
    """Does one task: tunes if asked to, and judges."""
    text, evaluations = task.text, 1
    if task.tuning:
        tuned = judge.pool.tune(text, task.tuning, task.seed, may_hold=context.may_hold)
        evaluations += tuned.evaluations
        try:
            text = with_constants(text, tuned.tuned)
        except PodiumError as error:
            return Done(task.number, text, _refused(str(error)), evaluations)
        if tuned.reason:
            return Done(task.number, text, _refused(tuned.reason), evaluations)

    def wants(decisions: Decisions) -> bool:
        # Tuned twins of a known candidate may decide alike and still be worth a place.
        return bool(task.tuning) or context.wants(task.complexity, decisions)

    judgement = judge.judge(text, (), context.incumbent, wants, may_hold=context.may_hold)
    return Done(task.number, text, judgement, evaluations)


def _refused(reason: str) -> Judgement:
    return Judgement(Verdict(False, TRAINING, reason))
