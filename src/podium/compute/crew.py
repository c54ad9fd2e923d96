"""Employs workers that may die: hands them calls, notices a loss, and replaces who is lost.

Where workers live and how calls reach them is a host's business: processes of this machine, or
actors of a Ray cluster. A host restarts nothing and repeats nothing, so that what became of a
call is known at any time.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from podium.compute.executor import NOTHING, Call, Reply, run_all
from podium.compute.losses import Losses
from podium.compute.worker import Values, Welcome, WorkerSpec, greeting_of, reply_of
from podium.errors import MissingError, PodiumError

MOST_ATTEMPTS = 4
"""So often workers may be lost over one call before that is an error."""

MOST_FAILED_STARTS = 3
"""So many workers in a row may die before they are ready; those who remain do the work then."""

PATIENCE_S = 60.0  # beyond its own limits, for a worker that does not answer
_LOOK_S = 1.0


class WorkerLost(Exception):  # noqa: N818 - reads as the sentence it makes
    """A worker died, or its machine did."""


class Host(Protocol):
    """Starts workers somewhere and carries calls to them; handles and answers are its own."""

    def start(self, spec: WorkerSpec) -> tuple[Any, Any]:
        """Starts a worker; returns its handle and the answer to wait for: its greeting."""
        ...

    def share(self, values: Values) -> Any:
        """Prepares values that go along with many calls."""
        ...

    def call(self, worker: Any, task: Values, shared: Any) -> Any:
        """Sends a task to an idle worker; returns the answer to wait for."""
        ...

    def wait(self, answers: Sequence[Any], timeout_s: float) -> Sequence[Any]:
        """Waits until an answer is there; returns those that are."""
        ...

    def receive(self, answer: Any) -> Values:
        """Reads an answer that is there.

        Raises:
            WorkerLost: it never will be.
        """
        ...

    def kill(self, worker: Any) -> None:
        """Ends a worker, dead or alive."""
        ...

    def close(self, workers: Sequence[Any]) -> None:
        """Asks workers to end, then kills them."""
        ...

    def advice(self, reason: str) -> tuple[str, str]:
        """Returns where workers were to start, and what to do when none can."""
        ...


@dataclass(slots=True, eq=False)
class Member:
    """One worker, and what it is doing."""

    worker: Any
    answer: Any = None  # that is waited for
    until: float = 0.0
    is_ready: bool = False
    pid: int = 0
    machine: str = ""
    call: Call | None = None  # an answer without a call is of no use to anybody


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call: the worker's reply, or none if the worker was lost."""

    call: Call
    values: Values | None
    reason: str = ""


@dataclass(slots=True)
class Crew:
    """Keeps as many workers as it was asked for."""

    host: Host
    spec: WorkerSpec
    size: int
    welcome: Welcome
    members: list[Member] = field(default_factory=list)
    _failed_starts: int = 0
    _losses: Losses = field(init=False)

    def __post_init__(self) -> None:
        self._losses = Losses(self.size)

    def start(self) -> None:
        """Creates all workers; they get ready while others work."""
        for _ in range(self.size):
            self.members.append(self._new_member())

    def wait_until_ready(self) -> None:
        """Waits for the first worker that can work."""
        while not any(each.is_ready for each in self.members):
            for _ in self.listen():
                pass

    def idle(self) -> list[Member]:
        """Lists the workers that wait for a call."""
        return [each for each in self.members if each.is_ready and each.answer is None]

    def assign(self, member: Member, call: Call, shared: Any) -> None:
        """Sends a call to an idle worker."""
        member.call, member.answer = call, self.host.call(member.worker, call.task, shared)
        member.until = time.monotonic() + call.limit_s + PATIENCE_S

    def listen(self, timeout_s: float = _LOOK_S) -> Iterator[Outcome]:
        """Waits a moment for answers; workers that died, or are silent for too long, are lost."""
        waiting = {each.answer: each for each in self.members if each.answer is not None}
        for answer in self.host.wait(list(waiting), timeout_s) if waiting else ():
            yield from self._hear(waiting[answer])
        for member in [each for each in waiting.values() if self._is_overdue(each)]:
            if not member.is_ready:
                raise self._nobody(f"none answered within {self.spec.start_s + PATIENCE_S:g} s")
            yield from self._lose(member, "it did not answer in time")

    def drop_calls(self) -> None:
        """Drops all calls: workers finish what they are at, and nobody listens."""
        for member in self.members:
            member.call = None

    def close(self) -> None:
        """Ends all workers, on whatever machine."""
        members, self.members = self.members, []
        self.host.close([each.worker for each in members])

    def _hear(self, member: Member) -> Iterator[Outcome]:
        try:
            answer = self.host.receive(member.answer)
        except WorkerLost as error:
            yield from self._lose(member, str(error))
            return
        member.answer = None
        if not member.is_ready:
            self._admit(member, answer)
            return
        if member.call is None:
            return
        reply = reply_of(answer)
        if isinstance(reply, PodiumError):  # of the machine, not of the task
            yield from self._lose(member, str(reply))
            return
        call, member.call = member.call, None
        self._losses.make_up()
        yield Outcome(call, reply)

    def _admit(self, member: Member, answer: Values) -> None:
        greeting = greeting_of(answer)
        self.welcome(greeting)
        member.pid, member.machine, member.is_ready = greeting.pid, greeting.machine, True
        self._failed_starts = 0

    def _lose(self, member: Member, reason: str) -> Iterator[Outcome]:
        self.host.kill(member.worker)
        self.members.remove(member)
        self._failed_starts += not member.is_ready
        if self._losses.add():
            _, hint = self.host.advice(reason)
            told = f"workers were lost again and again, {self._losses.total} times in all: {reason}"
            raise MissingError(told, hint=f"{hint}; fix that, then start again or resume")
        if self._failed_starts < MOST_FAILED_STARTS:
            self.members.append(self._new_member())
        if not self.members:
            raise self._nobody(reason)
        if member.call is not None:
            yield Outcome(member.call, None, reason)

    def _is_overdue(self, member: Member) -> bool:
        if member.answer is None or time.monotonic() < member.until:
            return False
        # A worker for which there is no room yet may wait while others work.
        return member.is_ready or not any(each.is_ready for each in self.members)

    def _nobody(self, reason: str) -> MissingError:
        where, hint = self.host.advice(reason)
        return MissingError(f"no worker could be started: {reason}", where=where, hint=hint)

    def _new_member(self) -> Member:
        until = time.monotonic() + self.spec.start_s + PATIENCE_S
        return Member(*self.host.start(self.spec), until)


class CrewExecutor:
    """Runs calls on a crew; the call of a worker that died is repeated by another."""

    def __init__(self, host: Host, spec: WorkerSpec, workers: int, welcome: Welcome) -> None:
        self.crew = Crew(host, spec, workers, welcome)
        self._waiting: deque[tuple[Call, Any]] = deque()  # with what goes along, as the host has it
        self._unanswered: dict[int, tuple[Call, Any]] = {}
        self._attempts: Counter[int] = Counter()
        self._shared: tuple[Values, Any] = (NOTHING, None)  # last given, and as the host has it
        try:
            self.crew.start()
        except BaseException:
            self.close()
            raise

    def get_ready(self) -> None:
        """Waits for the first worker that can work."""
        self.crew.wait_until_ready()

    def run(self, calls: Sequence[Call], shared: Values = NOTHING) -> Iterator[Reply]:
        """Yields the reply to each call as soon as it is there."""
        return run_all(self, calls, shared)

    def send(self, call: Call, shared: Values = NOTHING) -> None:
        """Puts a call behind those that were sent before."""
        if self._shared[1] is None or self._shared[0] is not shared:
            self._shared = shared, self.crew.host.share(shared)
        self._unanswered[call.key] = call, self._shared[1]
        self._waiting.append((call, self._shared[1]))
        self._assign()

    def receive(self, timeout_s: float) -> list[Reply]:
        """Returns the replies that are there, after a wait for the first."""
        self._assign()
        found: list[Reply] = []
        for outcome in self.crew.listen(timeout_s) if self._unanswered else ():
            call = outcome.call
            self._attempts[call.key] += 1
            if outcome.values is not None:
                del self._unanswered[call.key]
                found.append(Reply(call.key, outcome.values))
            elif self._attempts[call.key] < MOST_ATTEMPTS:
                self._waiting.appendleft(self._unanswered[call.key])
            else:
                raise self._given_up(outcome, self._attempts[call.key])
        # Workers are busy again before whoever asked looks at what they found.
        self._assign()
        return found

    def drop(self) -> None:
        """Forgets the calls that are not answered yet; workers finish what they are at."""
        self._waiting.clear()
        self._unanswered.clear()
        self._attempts.clear()
        self.crew.drop_calls()

    def _assign(self) -> None:
        for member in self.crew.idle()[: len(self._waiting)]:
            self.crew.assign(member, *self._waiting.popleft())

    def processes(self) -> list[tuple[str, int]]:
        """Lists the machine and the process of every worker that is ready."""
        return [(each.machine, each.pid) for each in self.crew.members if each.is_ready]

    def close(self) -> None:
        """Ends all workers."""
        self.crew.close()

    def _given_up(self, outcome: Outcome, attempts: int) -> MissingError:
        _, hint = self.crew.host.advice(outcome.reason)
        return MissingError(
            f"the workers on {outcome.call} were lost {attempts} times: {outcome.reason}",
            hint=f"{hint}; fix that, then start again or resume",
        )
