"""Runs work in one thread that does not keep the process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonExecutor(Executor):
    """Runs one call after the other.

    Python waits for the threads of its own executors at the end, however long they take: a store
    that never answers would keep the process for ever.
    """

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self.unsettled = 0  # calls that have not returned
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queues a call.

        Raises:
            RuntimeError: it is closed.
        """
        promised: Future[T] = Future()

        def run() -> None:
            if not promised.set_running_or_notify_cancel():
                return
            try:
                result = work(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
                promised.set_exception(error)
            else:
                promised.set_result(result)

        with self._lock:
            if self._is_closed:
                raise RuntimeError("the executor is closed")
            self.unsettled += 1
            self._calls.put(run)
        return promised

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accepts no more calls; by default waits until all have returned."""
        del cancel_futures  # whoever submitted may cancel
        with self._lock:
            self._is_closed = True
            self._calls.put(None)
        if wait:
            self._thread.join()

    def _work(self) -> None:
        while (run := self._calls.get()) is not None:
            run()
            with self._lock:
                self.unsettled -= 1
