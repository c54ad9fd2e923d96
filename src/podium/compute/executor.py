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

    def close(self) -> None:
        """Ends all workers, whatever they are doing."""
        ...


def check_workers(workers: int) -> None:
    """Refuses a number of workers that could do nothing."""
    if workers < 1:
        raise UsageError(f"workers must be at least 1, got {workers}", hint="use one per core")
