"""Keeps worker processes for candidates: one a core, killed and replaced when one overruns."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from types import TracebackType

from podium.errors import UsageError
from podium.search.fitness import Outcome
from podium.search.hearing import Trial, Wants, anything
from podium.search.limits import Limits
from podium.search.losses import Losses
from podium.search.process import Worker
from podium.search.training import TrainingSet

MOST_COMPILED = 300
"""A worker is replaced after this many compilations: machine code is never given back."""

MOST_PLAIN = 20_000
"""A worker that compiles nothing is replaced after this many candidates."""


class Pool:
    """Lends workers to any number of threads."""

    def __init__(self, training: TrainingSet, fitness: str, size: int, limits: Limits) -> None:
        if size < 1:
            raise UsageError(f"a pool of {size} workers", hint="give at least 1")
        if os.name != "posix":
            raise UsageError("candidates are judged on POSIX systems only", hint="use Linux")
        self.baseline: list[dict[str, float]] = []
        self.losses: list[Losses] = []  # of fgd
        self._training, self.limits = training, limits
        self._kinds = tuple(case.protocol for case in training.cases)
        self._setup = {"training": training.as_object(), "fitness": fitness}
        self._lock = threading.Lock()
        self._workers: set[Worker] = set()
        self._is_closed = False
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        self._starting = threading.Lock()
        self._first = self._new_worker(needs_baseline=True)
        for worker in (*(self._new_worker() for _ in range(size - 1)), self._first):
            self._idle.put(worker)

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def get_ready(self) -> None:
        """Waits for the first worker, which tells what fgd reaches on the cases."""
        with self._starting:
            if not self.baseline:
                self._first.get_ready()
                self.baseline, self.losses = self._first.baseline, self._first.losses

    def run(
        self, text: str, race: tuple[Outcome, ...] = (), wants: Wants = anything, *,
        may_hold: bool = True,
    ) -> Trial:  # fmt: skip
        """Tries a candidate in the next free worker, and replaces the worker if that spoils it."""
        return self._lend(lambda worker: worker.run(text, race, wants, may_hold=may_hold))

    def tune(self, text: str, evaluations: int, seed: int, *, may_hold: bool = True) -> Trial:
        """Tunes a candidate's constants in the next free worker."""
        self.get_ready()
        baseline = list(zip(self._kinds, self.baseline, strict=True))
        tuning = {
            "evaluations": evaluations, "seed": seed, "baseline": baseline, "may_hold": may_hold,
        }  # fmt: skip
        return self._lend(lambda worker: worker.tune(text, tuning))

    def _lend(self, work: Callable[[Worker], Trial]) -> Trial:
        self.get_ready()
        worker = self._idle.get()
        try:
            worker.get_ready()
            trial = work(worker)
        except BaseException:
            self._replace(worker)
            raise
        most = MOST_COMPILED if self._training.is_compiled else MOST_PLAIN
        if trial.is_spoiled or worker.tried >= most:
            self._replace(worker)
        else:
            self._idle.put(worker)
        return trial

    def processes(self) -> list[int]:
        """Lists the processes of the pool."""
        with self._lock:
            return sorted(worker.pid for worker in self._workers)

    def close(self) -> None:
        """Kills every worker."""
        with self._lock:
            workers, self._workers, self._is_closed = self._workers, set(), True
        for worker in workers:
            worker.close()

    def _replace(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()
        if not self._is_closed:
            self._idle.put(self._new_worker())

    def _new_worker(self, *, needs_baseline: bool = False) -> Worker:
        setup = {**self._setup, "needs_baseline": needs_baseline}
        worker = Worker(setup, self.limits, self._kinds)
        with self._lock:
            self._workers.add(worker)
            is_late = self._is_closed
        if is_late:
            worker.close()
        return worker
