"""Asks a policy for a limited time, and no longer for a while once it is late too often.

A policy from a file is anybody's code and may never end for some pods. It runs in a thread of its
own, for which the event loop waits no longer than the limit. A thread that does not come back is
left behind, and pods like the one it is busy with are never scored again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from podium.errors import PolicyError
from podium.policies.policy import Policy
from podium.policies.thread import PolicyThread

MOST_LATE = 3
"""Answers in a row that may be late before a policy is no longer asked."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0
"""For how long it is not asked, twice as long each time: a short fault is over soon, and one that
lasts costs one late answer a minute."""

MOST_LEFT = 2
"""Threads that were left behind and may go on: each takes a core."""

T = TypeVar("T")


class LateError(PolicyError):
    """A policy does not answer in time, or was late too often to be asked now."""


class Guard:
    """Stands before one policy for as long as the service runs; the clock is passed in.

    This one takes the policy for one that ends, as those that come with Podium do.
    """

    def __init__(
        self, policy: str, limit_s: float, log: FilteringBoundLogger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.policy = policy
        self._limit_s = limit_s
        self._log = log
        self._clock = clock
        self._late = 0  # answers in a row
        self._pause_s = 0.0  # 0: it is asked as usual
        self._until_s = 0.0  # when the pause ends

    @property
    def is_slow(self) -> bool:
        """Returns whether the policy was late too often, and not in time since."""
        return self._pause_s > 0

    def ask(
        self, about: bytes, work: Callable[[], T], start_again: Callable[[], None],
        limit_s: float | None = None,
    ) -> T:  # fmt: skip
        """Runs something that calls the policy.

        Args:
            about: tells what is asked apart; what never ended is not asked again.
            work: calls the policy.
            start_again: gives up what somebody may still write to who never ended.
            limit_s: where it is not that of an answer.

        Raises:
            LateError: the policy is not asked, or does not end in time; it goes on then.
        """
        if self._clock() < self._until_s:
            raise self._too_slow("it was late too often")
        return self._run(about, work, start_again, self._limit_s if limit_s is None else limit_s)

    def pause(self) -> None:
        """Stops asking, for longer than the last time."""
        if not self._pause_s:
            problem = "the policy is too slow: no node is preferred until it is in time again"
            self._log.error(problem, policy=self.policy, limit_s=self._limit_s)
        self._late = 0
        self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        self._until_s = self._clock() + self._pause_s

    def close(self) -> None:
        """Ends what can be ended."""

    def _run(
        self, about: bytes, work: Callable[[], T], start_again: Callable[[], None], limit_s: float
    ) -> T:
        del about, start_again
        since_s = self._clock()
        try:
            return work()
        finally:
            self._count(is_late=self._clock() - since_s > limit_s)

    def _count(self, *, is_late: bool) -> None:
        self._late = self._late + 1 if is_late else 0
        if self._late >= MOST_LATE or (is_late and self._pause_s):
            self.pause()
        elif not is_late and self._pause_s:
            self._pause_s = self._until_s = 0.0
            self._log.info("the policy is in time again", policy=self.policy)

    def _too_slow(self, problem: str) -> LateError:
        return LateError(f"the policy is too slow: {problem}", where=self.policy)


class ThreadGuard(Guard):
    """Runs a policy that may never end in a thread, and waits no longer than the limit.

    To hand a score over and back takes some 40 us, and longer where all cores are busy.
    """

    def __init__(
        self, policy: str, limit_s: float, log: FilteringBoundLogger,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        super().__init__(policy, limit_s, log, clock)
        self._thread: PolicyThread | None = None
        self._about, self._since_s = b"", 0.0  # what the thread is asked, and since when
        self._left: list[PolicyThread] = []
        self._endless: set[bytes] = set()

    @property
    def is_slow(self) -> bool:
        """Returns whether the policy was late too often, or does not end."""
        return super().is_slow or self._is_stuck()

    def close(self) -> None:
        """Ends the thread, where it can be ended."""
        if self._thread is not None:
            self._thread.leave()

    def _run(
        self, about: bytes, work: Callable[[], T], start_again: Callable[[], None], limit_s: float
    ) -> T:
        if about in self._endless:
            raise self._too_slow("it did not end for a pod that asks for the same")
        thread = self._free_thread(start_again)
        self._about, self._since_s = about, self._clock()
        thread.begin(work)
        has_ended = thread.has_ended(limit_s)
        self._count(is_late=not has_ended)
        if not has_ended:
            raise self._too_slow(f"it did not end within {limit_s:g} s")
        found: T = thread.result()
        return found

    def _free_thread(self, start_again: Callable[[], None]) -> PolicyThread:
        """Finds a thread that is not busy; one that was for a whole pause is left behind."""
        if self._thread is not None and not self._thread.has_ended():
            if not self._pause_s:
                if self._is_stuck():
                    self.pause()
                raise self._too_slow("it has not ended for an earlier pod")
            self._leave(self._thread)
            start_again()
        if self._thread is None:
            self._left = [each for each in self._left if each.is_alive]
            if len(self._left) > MOST_LEFT:
                self.pause()
                raise self._too_slow("it does not end for several kinds of pods")
            self._thread = PolicyThread(f"policy {self.policy}")
        return self._thread

    def _is_stuck(self) -> bool:
        thread = self._thread  # metrics are read in another thread
        is_busy = thread is not None and thread.is_busy
        return is_busy and self._clock() - self._since_s > MOST_LATE * self._limit_s

    def _leave(self, thread: PolicyThread) -> None:
        thread.leave()
        self._left.append(thread)
        if self._about:  # else it was no pod, but the table
            self._endless.add(self._about)
        self._thread = None
        problem = "the policy does not end for some pods: those like them are not scored"
        self._log.error(problem, policy=self.policy, kinds=len(self._endless))


def guard_of(policy: Policy, limit_s: float, log: FilteringBoundLogger) -> Guard:
    """Makes the guard of a policy: a file is anybody's code."""
    made = ThreadGuard if policy.origin == "file" else Guard
    return made(policy.name, limit_s, log)
