"""The interface of executors: workers answer calls, and replies are yielded as they come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from podium.compute.worker import Values
from podium.errors import UsageError

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Call:
    """Asks a worker for one task."""

    key: int  # unlike that of any other call of the same run
    task: Values
    limit_s: float = 3600.0  # a worker that is silent for longer counts as lost
    label: str = ""  # names the task in messages

    def __str__(self) -> str:
        return self.label or f"task {self.key}"


@dataclass(frozen=True, slots=True)
class Reply:
    """A worker's reply to a call."""

    key: int
    values: Values


class Executor(Protocol):
    """Runs calls on workers, on this machine or on others."""

    def get_ready(self) -> None:
        """Waits until a worker can work.

        Raises:
            PodiumError: none can.
        """
        ...

    def run(self, calls: Sequence[Call], shared: Values = NOTHING) -> Iterator[Reply]:
        """Yields the reply to each call as soon as it is there, in no particular order.

        `shared` goes along with every call, and travels to a machine once where that is possible.
        Whoever stops listening drops the calls that are not answered yet.

        Raises:
            PodiumError: a task cannot be done, or too many workers were lost over it.
        """
        ...

    def send(self, call: Call, shared: Values = NOTHING) -> None:
        """Puts a call behind those that were sent before, and returns at once."""
        ...

    def receive(self, timeout_s: float) -> list[Reply]:
        """Returns the replies to calls that were sent, once there is one or the time is over.

        Raises:
            PodiumError: as `run` does.
        """
        ...

    def drop(self) -> None:
        """Forgets the calls that were sent and are not answered yet."""
        ...

    def close(self) -> None:
        """Ends all workers, whatever they are doing."""
        ...


PATIENCE_S = 1.0  # of whoever waits for replies and has nothing else to do


def run_all(executor: Executor, calls: Sequence[Call], shared: Values = NOTHING) -> Iterator[Reply]:
    """Sends all calls at once, and yields each reply as soon as it is there."""
    unanswered = len(calls)
    try:
        for call in calls:
            executor.send(call, shared)
        while unanswered:
            for reply in executor.receive(PATIENCE_S):
                unanswered -= 1
                yield reply
    finally:
        executor.drop()


def check_workers(workers: int) -> None:
    """Refuses a number of workers that could do nothing."""
    if workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}", hint="use one per core")
