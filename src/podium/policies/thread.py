"""Runs what calls a policy in a thread that can be left behind: a policy may never end.

Compiled code cannot be interrupted from outside, and plain Python only between two steps. So the
threads are daemons: no process waits for them at its end.
"""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Outcome(Generic[T]):
    """Is what a call returned or raised."""

    __slots__ = ("_error", "_value")

    def __init__(self, work: Callable[[], T]) -> None:
        self._value: T | None = None
        self._error: Exception | None = None
        try:
            self._value = work()
        except Exception as error:  # noqa: BLE001 - whoever waits for it raises it
            self._error = error

    def get(self) -> T:
        """Returns what was returned, or raises what was raised."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class PolicyThread:
    """Runs one call after another for one caller, who need not wait for their ends."""

    def __init__(self, name: str) -> None:
        self._asked, self._ended = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._ended.acquire()
        self._work: Callable[[], Any] = lambda: None
        self._outcome: Outcome[Any] | None = None
        self._is_waited_for = False
        self._is_left = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[], Any]) -> None:
        """Begins a call; the last one has ended."""
        assert not self._is_waited_for
        self._work, self._is_waited_for = work, True
        self._asked.release()

    def has_ended(self, limit_s: float = 0.0) -> bool:
        """Waits for the end of the call, and returns whether it came."""
        if self._is_waited_for and self._ended.acquire(timeout=limit_s):
            self._is_waited_for = False
        return not self._is_waited_for

    def worked_s(self) -> float:
        """Returns for how long the thread has worked, by a clock that differences are taken of.

        A busy machine does not move it on; where threads have no such clock, time does.
        """
        if sys.platform != "linux":
            return time.monotonic()
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident or 0))

    @property
    def is_busy(self) -> bool:
        """Returns whether a call has begun whose end nobody has seen; takes part in no waiting."""
        return self._is_waited_for

    def result(self) -> Any:
        """Returns or raises what the call that has ended did."""
        outcome, self._outcome = self._outcome, None
        assert outcome is not None
        return outcome.get()

    def leave(self) -> None:
        """Ends the thread as soon as it can be: plain Python now, compiled code when it returns."""
        self._is_left = True
        if self._is_waited_for:
            ident, ending = ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(SystemExit)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ending)
        self._asked.release()

    @property
    def is_alive(self) -> bool:
        """Returns whether the thread still runs."""
        return self._thread.is_alive()

    def _run(self) -> None:
        with suppress(SystemExit):  # it was left
            self._asked.acquire()
            while not self._is_left:
                self._outcome = Outcome(self._work)
                self._work = lambda: None  # what it holds is large
                self._ended.release()
                self._asked.acquire()


async def in_thread(work: Callable[[], T]) -> T:
    """Runs something beside the event loop, in a thread that nobody waits for at the end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Outcome[T]] = loop.create_future()

    def tell(outcome: Outcome[T]) -> None:
        if not future.done():
            future.set_result(outcome)

    def run() -> None:
        outcome = Outcome(work)
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=run, name="beside", daemon=True).start()
    return (await future).get()
