"""Keeps worker processes for candidates: one a core, killed and replaced when one overruns.

A process that somebody else killed says nothing of its candidate, who is tried again.
"""

from __future__ import annotations

import os
import platform
import queue
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from podium.compute.losses import Losses
from podium.errors import MissingError, PodiumError, UsageError
from podium.search.sandbox.confinement import WALLS
from podium.search.sandbox.limits import Limits
from podium.search.sandbox.worker import Report, Worker, WorkerKilled

MOST_KILLED = 3
"""How often in a row somebody else may kill a process before that is an error."""

MOST_MODULES = 60
"""How many modules may turn out to be needed late."""


class Pool:
    """Lends workers to any number of threads."""

    def __init__(
        self, setup: dict[str, Any], size: int, limits: Limits, most_requests: int,
        first: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        if size < 1:
            raise UsageError(f"workers must be at least 1, got {size}", hint="give at least 1")
        if os.name != "posix":
            raise UsageError("candidates are judged on POSIX systems only", hint="use Linux")
        self.facts: dict[str, Any] = {}  # what the first worker told when it was ready
        self.missing_walls: tuple[str, ...] = ()  # of the sandbox, on this machine
        self.limits = limits
        self._setup, self._first_setup = setup, setup | (first or {})
        self._most_requests = most_requests  # that one worker serves
        self._modules: tuple[str, ...] = ()  # to be loaded before a process locks itself in
        self._losses = Losses(size)  # whichever candidates were judged
        self._lock = threading.Lock()
        self._workers: set[Worker] = set()
        self._is_ready = self._is_closed = False
        self._idle: queue.LifoQueue[Worker | None] = queue.LifoQueue()  # None once it is closed
        self._starting = threading.Lock()
        self._first = self._new_worker(self._first_setup)
        for _ in range(size - 1):
            self._idle.put(self._new_worker(setup))

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()

    def get_ready(self) -> None:
        """Waits for the first worker, which may report more than the others."""
        with self._starting:
            if self._is_ready:
                return
            killed: list[str] = []
            while not self._get_ready(self._first, killed):
                self._drop(self._first)
                self._first = self._new_worker(self._first_setup)
            self.facts = self._first.facts
            self._is_ready = True
            self._idle.put(self._first)

    def lend(self, work: Callable[[Worker], Report]) -> Report:
        """Has a worker do something; again in another one if the first was not let finish."""
        self.get_ready()
        killed: list[str] = []
        while (report := self._attempt(work, killed)) is None:
            pass
        return report

    def _attempt(self, work: Callable[[Worker], Report], killed: list[str]) -> Report | None:
        """Tries once; None if the process was killed or lacked a module, which is noted."""
        worker = self._next_worker()
        try:
            report = work(worker) if self._get_ready(worker, killed) else None
        except BaseException:
            self._replace(worker)
            raise
        is_worn = worker.served >= self._most_requests
        if report is None or report.is_spoiled or report.lacking or is_worn:
            self._replace(worker)
        else:
            self._idle.put(worker)
        if report is not None and report.killed_by:
            self._note(report.killed_by, killed)
            return None
        if report is not None and report.lacking:
            self._learn(report.lacking, worker.modules)
            return None
        if report is not None:
            self._losses.make_up()
        return report

    def _get_ready(self, worker: Worker, killed: list[str]) -> bool:
        """Waits for a worker and checks its walls; returns False if the process was killed."""
        try:
            worker.get_ready()
        except WorkerKilled as error:
            self._note(str(error), killed)
            return False
        missing = tuple(wall for wall in WALLS if wall not in worker.walls)
        if missing and not self.limits.allows_unconfined:
            raise unconfined(missing)
        self.missing_walls = missing
        return True

    def _note(self, name: str, killed: list[str]) -> None:
        killed.append(name)
        told = ""
        if self._losses.add():
            told = f"worker processes were killed again and again, {self._losses.total} times"
        if self._is_closed or len(killed) >= MOST_KILLED:
            told = f"a worker process was killed {len(killed)} times"
        if told:
            raise MissingError(
                f"{told}, the last time by {name}",
                hint="check the memory, or use fewer workers; then run podium search resume",
            )

    def _next_worker(self) -> Worker:
        """Waits for a free worker that has loaded every module that earlier ones lacked."""
        while (worker := self._idle.get()) is not None:
            if worker.modules == self._modules:
                return worker
            self._replace(worker)
        self._idle.put(None)  # for the next who waits
        raise PodiumError("the worker processes were stopped")

    def _learn(self, modules: tuple[str, ...], loaded: tuple[str, ...]) -> None:
        """Has processes load what one lacked before they lock themselves in."""
        with self._lock:
            known = self._modules  # others may have lacked the same meanwhile
            self._modules += tuple(name for name in modules if name not in known)
        if set(loaded).issuperset(modules) or len(self._modules) > MOST_MODULES:
            raise PodiumError(
                f"a worker process lacks the module {modules[0]} although it has loaded it",
                hint="report this as a bug in Podium; the run can be resumed",
            )

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
        self._idle.put(None)  # whoever waits for a worker waits for nothing

    def _replace(self, worker: Worker) -> None:
        self._drop(worker)
        self._idle.put(None if self._is_closed else self._new_worker(self._setup))

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()

    def _new_worker(self, setup: dict[str, Any]) -> Worker:
        worker = Worker({**setup, "modules": self._modules}, self.limits)
        with self._lock:
            self._workers.add(worker)
            is_late = self._is_closed
        if is_late:
            worker.close()
        return worker


def unconfined(missing: Sequence[str]) -> MissingError:
    """Says that candidates are not judged behind walls with a hole."""
    return MissingError(
        f"candidates cannot be confined on this machine: missing {', '.join(missing)}",
        where=f"{platform.system()} {platform.release()}, {platform.machine()}",
        hint="use Linux on x86-64 or arm64 with seccomp; to evaluate candidates that you would run "
        "yourself, add --allow-unconfined",
    )


def missing_walls() -> tuple[str, ...]:
    """Tries which walls of the sandbox cannot be built on this machine."""
    worker = Worker({"modules": []}, Limits())
    try:
        worker.get_ready()
    except WorkerKilled as error:
        raise PodiumError(f"the process was killed by {error}") from error
    finally:
        worker.close()
    return tuple(wall for wall in WALLS if wall not in worker.walls)
