"""Asks generators that take long to answer, while the run does other things."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue

from podium.search.generators.generator import Proposal, Spent
from podium.search.run.batch import Sample

MOST_AT_ONCE = 64
"""Requests that are under way at a time; a generator may allow fewer."""

Write = Callable[[Sample], Proposal | Spent]
Answer = tuple[Sample, Proposal | Spent]


class Writers:
    """Has samples written in threads; answers come in any order, and are paid for when they do."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._threads: ThreadPoolExecutor | None = None
        self._asked: dict[Future[Proposal | Spent], Sample] = {}
        self._done: SimpleQueue[Future[Proposal | Spent]] = SimpleQueue()

    @property
    def numbers(self) -> set[int]:
        """Lists the candidates that are asked for and not answered yet."""
        return {each.number for each in self._asked.values()}

    def ask(self, sample: Sample) -> None:
        """Asks for a sample, and returns at once."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="podium-writer")
        future = self._threads.submit(self._write, sample)
        self._asked[future] = sample
        future.add_done_callback(self._done.put)

    def answers(self, timeout_s: float) -> list[Answer]:
        """Returns the answers that are there, after a wait for the first; an error is raised."""
        found = []
        with suppress(Empty):
            found.append(self._done.get(block=timeout_s > 0, timeout=timeout_s or None))
            while True:
                found.append(self._done.get_nowait())
        return [(self._asked.pop(each), each.result()) for each in found if each in self._asked]

    def close(self) -> list[Answer]:
        """Asks nobody any more; returns the answers to what was under way, which is paid for."""
        if self._threads is None:
            return []
        self._threads.shutdown(cancel_futures=True)
        threads, self._threads = self._threads, None
        del threads
        begun = [(sample, each) for each, sample in self._asked.items() if not each.cancelled()]
        self._asked = {}
        return [(sample, each.result()) for sample, each in begun if each.exception() is None]
