"""Does work in one thread, which does not keep the process from ending."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Workshop(Executor):
    """Does one piece of work after the other.

    Python waits for the threads of its own executors at the end, however long they take: a store
    that never answers would keep the process for ever.
    """

    def __init__(self, name: str) -> None:
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self.unsettled = 0  # pieces of work that are not done
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Takes an order.

        Raises:
            RuntimeError: it is closed.
        """
        promised: Future[T] = Future()

        def fulfil() -> None:
            if not promised.set_running_or_notify_cancel():
                return
            try:
                result = work(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - whoever waits for it is told
                promised.set_exception(error)
            else:
                promised.set_result(result)

        with self._lock:
            if self._is_closed:
                raise RuntimeError("no work is taken any more")
            self.unsettled += 1
            self._orders.put(fulfil)
        return promised

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more orders; by default waits until all are done."""
        del cancel_futures  # whoever ordered may cancel
        with self._lock:
            self._is_closed = True
            self._orders.put(None)
        if wait:
            self._thread.join()

    def _work(self) -> None:
        while (fulfil := self._orders.get()) is not None:
            fulfil()
            with self._lock:
                self.unsettled -= 1
