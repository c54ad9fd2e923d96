"""Keeps Ray actors that judge: gives them tasks, notices the death of one, and replaces it.

Ray itself restarts nothing and repeats nothing here: what became of a task is known at any time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from podium.errors import MissingError, PodiumError
from podium.search.run.ray.cluster import RayCluster
from podium.search.run.ray.judge import RayJudge
from podium.search.run.ray.message import PROBLEM, error_of

MOST_FAILED_STARTS = 3
"""So many actors in a row may die before they are ready; those who remain do the work then."""

PATIENCE_S = 60.0  # beyond its own limits, for an actor that does not answer
_LOOK_S = 1.0
_FAREWELL_S = 2.0


@dataclass(slots=True, eq=False)
class Member:
    """Is one actor, and what it is doing."""

    actor: Any
    answer: Any = None  # that is waited for
    until: float = 0.0
    is_ready: bool = False
    pid: int = 0
    machine: str = ""
    task: int | None = None  # by number; an answer without a task is of no use to anybody


@dataclass(frozen=True, slots=True)
class Answer:
    """Is what became of a task: what the actor told, or nothing if the actor was lost."""

    task: int
    told: Mapping[str, Any] | None
    reason: str = ""


@dataclass(slots=True)
class Crew:
    """Holds the actors."""

    cluster: RayCluster
    setup: Mapping[str, Any]
    size: int
    start_s: float
    baseline: list[dict[str, float]] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    missing_walls: set[str] = field(default_factory=set)  # of the sandbox, on any machine
    _failed_starts: int = 0

    def start(self) -> None:
        """Creates all actors; they get ready while others work."""
        self.members = [self._new_member() for _ in range(self.size)]

    def wait_until_ready(self) -> None:
        """Waits for the first actor that can work."""
        while not any(each.is_ready for each in self.members):
            for _ in self.listen():
                pass

    def idle(self) -> list[Member]:
        """Lists the actors that wait for work."""
        return [each for each in self.members if each.is_ready and each.answer is None]

    def give(self, member: Member, task: int, call: Callable[[Any], Any], limit_s: float) -> None:
        """Gives an idle actor a task."""
        member.task, member.answer = task, call(member.actor)
        member.until = time.monotonic() + limit_s + PATIENCE_S

    def listen(self) -> Iterator[Answer]:
        """Waits a moment for answers; actors that died, or are silent for too long, are lost."""
        waiting = {each.answer: each for each in self.members if each.answer is not None}
        done, _ = self.cluster.ray.wait(list(waiting), num_returns=1, timeout=_LOOK_S)
        for answer in done:
            yield from self._hear(waiting[answer])
        for member in [each for each in waiting.values() if self._is_overdue(each)]:
            if not member.is_ready:
                raise self._nobody(f"none answered within {self.start_s + PATIENCE_S:g} s")
            yield from self._lose(member, "it did not answer in time")

    def forget(self) -> None:
        """Drops all tasks: actors finish what they are at, and nobody listens."""
        for member in self.members:
            member.task = None

    def close(self) -> None:
        """Ends all actors, and with them the confined processes, on whatever machine."""
        members, self.members = self.members, []
        with suppress(Exception):  # an actor that is gone has nothing left to close
            farewell = [each.actor.close.remote() for each in members]
            self.cluster.ray.wait(farewell, num_returns=len(farewell), timeout=_FAREWELL_S)
        for member in members:
            self._kill(member)

    def _hear(self, member: Member) -> Iterator[Answer]:
        exceptions = self.cluster.ray.exceptions
        try:
            told = self.cluster.ray.get(member.answer)
        except exceptions.RayTaskError:
            raise
        except exceptions.RayError as error:
            yield from self._lose(member, _first_line(error))
            return
        task, member.task, member.answer = member.task, None, None
        if not member.is_ready:
            self._welcome(member, told)
        elif PROBLEM in told:  # of the machine, not of the candidate
            member.task = task
            yield from self._lose(member, str(error_of(told)))
        elif task is not None:
            yield Answer(task, told)

    def _welcome(self, member: Member, told: Mapping[str, Any]) -> None:
        if PROBLEM in told:
            raise error_of(told)
        member.pid, member.machine = told["pid"], told["machine"]
        self.missing_walls.update(told["missing_walls"])
        if self.baseline and self.baseline != told["baseline"]:
            raise PodiumError(
                "fgd reaches other figures on this machine than on the others",
                where=member.machine,
                hint="give every machine the same traces and the same versions of NumPy and Numba",
            )
        self.baseline, member.is_ready, self._failed_starts = told["baseline"], True, 0

    def _lose(self, member: Member, reason: str) -> Iterator[Answer]:
        self._kill(member)
        self.members.remove(member)
        self._failed_starts += not member.is_ready
        if self._failed_starts < MOST_FAILED_STARTS:
            self.members.append(self._new_member())
        if not self.members:
            raise self._nobody(reason)
        if member.task is not None:
            yield Answer(member.task, None, reason)

    def _is_overdue(self, member: Member) -> bool:
        if member.answer is None or time.monotonic() < member.until:
            return False
        # An actor for which the cluster has no room yet may wait while others work.
        return member.is_ready or not any(each.is_ready for each in self.members)

    def _nobody(self, reason: str) -> MissingError:
        missing = "No module named 'podium" in reason
        hint = "install podium-scheduler[ray] on every machine of the cluster, the same version"
        return MissingError(
            f"no actor gets ready on the Ray cluster: {reason}",
            where=f"{self.cluster.cpus:g} cores",
            hint=hint if missing else "ray status shows what the cluster has room for",
        )

    def _kill(self, member: Member) -> None:
        with suppress(Exception):  # it may be dead, or its machine
            self.cluster.ray.kill(member.actor)

    def _new_member(self) -> Member:
        kind = self.cluster.ray.remote(RayJudge)
        # Two calls at a time: one works, and one can end it.
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "max_concurrency": 2}
        actor = kind.options(**options).remote(self.setup)
        until = time.monotonic() + self.start_s + PATIENCE_S
        return Member(actor, actor.get_ready.remote(), until)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "No module named" in line]
    return (telling or lines or [type(error).__name__])[0]
