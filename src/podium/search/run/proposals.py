"""Has proposals written by several threads, since some generators wait for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from podium.search.generator import Proposal, Spent
from podium.search.run.samples import Sample

MOST_AT_ONCE = 8

Write = Callable[[Sample], Proposal | Spent]
Written = list[tuple[Sample, Proposal | Spent]]


def as_written(samples: Sequence[Sample], write: Write) -> Iterator[Written]:
    """Gives proposals as they come, in any order: they are paid for, and to be kept at once.

    What nobody has begun to write when this is left early is never asked for.
    """
    threads = ThreadPoolExecutor(max(1, min(MOST_AT_ONCE, len(samples))))
    try:
        waiting = {threads.submit(write, each): each for each in samples}
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            yield [(waiting.pop(each), each.result()) for each in done]
    finally:
        threads.shutdown(cancel_futures=True)
