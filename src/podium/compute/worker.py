"""Builds workers from a named factory, and runs one far from whoever employs it.

Plain values come and go, never objects of Podium: another version of Podium at the far end is
reported as such, instead of failing somewhere in between.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import Any, Protocol

import podium
from podium import errors
from podium.errors import MissingError, PodiumError, UsageError

Values = Mapping[str, Any]
"""JSON types, and bytes."""

FACTS, REPLY, PROBLEM, BUG = "facts", "reply", "problem", "bug"

INPUT_ERRORS = (
    UsageError, errors.InputError, errors.PolicyError, errors.SettingsError,
)  # fmt: skip
"""Errors that a task meets on every machine; all others may be the machine's."""

_KINDS = {kind.__name__: kind for kind in (*INPUT_ERRORS, MissingError)}


class Worker(Protocol):
    """Performs tasks, one at a time or on the number of threads passed to its factory."""

    def get_ready(self) -> Values:
        """Starts up, and reports facts about this machine that the employer wants to know."""
        ...

    def perform(self, task: Values, shared: Values) -> Values:
        """Performs one task; every expected outcome, failure included, is in the reply.

        Raises:
            PodiumError: this machine cannot do it; another worker is asked, unless the error is
                one of INPUT_ERRORS.
        """
        ...

    def close(self) -> None:
        """Ends at once, whatever the worker is doing."""
        ...


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Describes workers such that any machine can build one."""

    factory: str  # "package.module:function"; called with the setup and a number of threads
    setup: Values = field(default_factory=dict)
    start_s: float = 60.0  # for a worker to get ready
    version: str = field(default_factory=lambda: podium.__version__)

    def build(self, threads: int = 1) -> Worker:
        """Builds a worker that this many threads may use at a time.

        Raises:
            MissingError: this machine lacks the module of the factory.
        """
        module, _, name = self.factory.partition(":")
        try:
            factory: Callable[[Values, int], Worker] = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise MissingError(
                f"{self.factory} cannot be imported: {error}",
                where=socket.gethostname(),
                hint="install the module of the worker on every machine",
            ) from error
        return factory(self.setup, threads)


@dataclass(frozen=True, slots=True)
class Greeting:
    """Introduces a worker that is ready."""

    machine: str
    pid: int
    facts: Values


Welcome = Callable[[Greeting], None]
"""Looks at each worker that gets ready; refuses it, and ends the work, by raising an error."""


def welcome_all(_greeting: Greeting) -> None:
    """Accepts every worker."""


class HostedWorker:
    """Runs a worker in a process of its own; every answer is a plain value, errors included."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self._spec = spec
        self._worker: Worker | None = None

    def get_ready(self) -> dict[str, Any]:
        """Builds and starts the worker."""
        return _answered(FACTS, self._start)

    def perform(self, task: Values, shared: Values) -> dict[str, Any]:
        """Performs one task on the worker."""
        worker = self._worker
        assert worker is not None
        return _answered(REPLY, lambda: worker.perform(task, shared))

    def close(self) -> None:
        """Ends the worker, whatever it is doing."""
        if self._worker is not None:
            self._worker.close()

    def _start(self) -> Values:
        theirs = self._spec["version"]
        if theirs != podium.__version__:
            raise UsageError(
                f"Podium {podium.__version__} is installed there, but {theirs} here",
                where=socket.gethostname(),
                hint="install the same version of Podium on every machine of the cluster",
            )
        self._worker = WorkerSpec(**self._spec).build()
        return self._worker.get_ready()


def as_object(spec: WorkerSpec) -> dict[str, Any]:
    """Describes workers in plain values."""
    return asdict(spec)


def greeting_of(answer: Values) -> Greeting:
    """Reads what a worker answered when it was ready.

    Raises:
        PodiumError: it cannot get ready.
    """
    if PROBLEM in answer:
        raise error_of(answer)
    _raise_bug(answer)
    return Greeting(answer["machine"], answer["pid"], answer[FACTS])


def reply_of(answer: Values) -> Values | PodiumError:
    """Reads what a worker answered to a task; an error if its machine could not do it.

    Raises:
        PodiumError: no machine can do it.
    """
    _raise_bug(answer)
    if PROBLEM not in answer:
        reply: Values = answer[REPLY]
        return reply
    error = error_of(answer)
    if isinstance(error, INPUT_ERRORS):
        raise error
    return error


def error_of(answer: Values) -> PodiumError:
    """Rebuilds the error that an answer describes."""
    problem = answer[PROBLEM]
    kind = _KINDS.get(problem["kind"], PodiumError)
    return kind(problem["message"], where=problem["where"], hint=problem["hint"])


def _answered(name: str, work: Callable[[], Values]) -> dict[str, Any]:
    here = {"machine": socket.gethostname(), "pid": os.getpid()}
    try:
        return {**here, name: work()}
    except PodiumError as error:
        return {**here, PROBLEM: _described(error, here["machine"])}
    except Exception:  # noqa: BLE001 - whoever waits for the answer raises it
        return {**here, BUG: traceback.format_exc()}


def _described(error: PodiumError, machine: Any) -> dict[str, str]:
    names = [kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS]
    return {
        "kind": names[0] if names else "", "message": error.message,
        "where": error.where or machine, "hint": error.hint,
    }  # fmt: skip


def _raise_bug(answer: Values) -> None:
    if BUG in answer:
        raise RuntimeError(f"on {answer['machine']}:\n{answer[BUG]}")
