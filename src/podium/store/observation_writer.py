"""Writes observations of many threads in few transactions: whoever waits shares the next one."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from podium.errors import InputError, MissingError, PodiumError, UsageError
from podium.store.closing import Closing
from podium.store.idempotency import ReusedName
from podium.store.observations import Observations
from podium.store.records import ObservationRecord, Receipt
from podium.store.rows import observation_row

CAPACITY = 10_000
"""Observations that may wait; a second's worth and more on any disk."""

LEAST_GATHER_S, MOST_GATHER_S = 0.001, 0.02
"""Bounds of how long a transaction waits for as many as shared the last ones."""

AT_ONCE = 1000
"""Observations in one transaction, unless one submission alone has more."""


@dataclass(frozen=True, slots=True)
class _Submission:
    rows: list[dict[str, Any]]
    stored: Future[list[Receipt]] = field(default_factory=Future)


class ObservationWriter(Closing):
    """Commits what threads submit, in batches and in their order, from one thread of its own.

    A disk takes milliseconds to confirm a transaction, however large it is. While it does, the next
    batch gathers; so the more submit at the same time, the more each confirmation is worth.
    """

    def __init__(self, observations: Observations, capacity: int = CAPACITY) -> None:
        self._observations = observations
        self._capacity = capacity
        self._waiting: deque[_Submission] = deque()
        self._size = 0
        self._in_hand = 0  # in the transaction that is under way
        self._usual_size = 1  # submissions that shared the last transactions
        self._took_s = 0.0  # the last transaction
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="podium-observations", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Counts the observations that no transaction has taken up yet."""
        return self._size

    @property
    def unsettled(self) -> int:
        """Counts the observations of which it is not yet known whether they are kept."""
        with self._changed:
            return self._size + self._in_hand

    def submit(
        self, records: Iterable[ObservationRecord], wait_s: float = 0.0
    ) -> Future[list[Receipt]]:
        """Submits observations; the result comes once all of them are stored, or none.

        The result may also be a ReusedName, raised: a key or job was that of another observation.

        Args:
            records: observations that are added together.
            wait_s: how long to wait for room where too many are waiting.

        Raises:
            UsageError: a value cannot be kept as it is, or the writer is closed.
            MissingError: the store is too slow for all that is submitted.
        """
        made = _Submission([observation_row(record) for record in records])
        with self._changed:
            has_room = self._changed.wait_for(lambda: self._takes(len(made.rows)), wait_s)
            if self._is_closed:
                raise UsageError(
                    "the writer of observations is closed", hint="open the store again"
                )
            if not has_room:
                problem = f"{self._size:,} observations are already waiting to be stored"
                raise MissingError(problem, hint="send them again in a moment")
            made.stored.set_running_or_notify_cancel()  # from here on nobody can cancel it
            self._waiting.append(made)
            self._size += len(made.rows)
            # Each call makes the writer's thread take turns with this one for nothing.
            if len(self._waiting) in (1, self._usual_size):
                self._changed.notify_all()
        return made.stored

    def withdraw(self, promised: Future[list[Receipt]]) -> bool:
        """Withdraws observations nobody waits for; returns True if they are surely not stored."""
        with self._changed:
            found = next((each for each in self._waiting if each.stored is promised), None)
            if found is None:
                return False
            self._waiting.remove(found)
            self._size -= len(found.rows)
            self._changed.notify_all()
            return True

    def add(self, records: Iterable[ObservationRecord], wait_s: float = 60.0) -> list[int]:
        """Submits observations and waits until they are stored; returns their ids."""
        return [each.id for each in self.submit(records, wait_s).result()]

    def close(self) -> None:
        """Stores all that was submitted, and takes no more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def _takes(self, count: int) -> bool:
        # A submission larger than all room is taken when nothing else waits.
        return self._is_closed or not self._size or self._size + count <= self._capacity

    def _work(self) -> None:
        while batch := self._next_batch():
            started = time.monotonic()
            self._commit(batch)
            self._took_s = time.monotonic() - started

    def _next_batch(self) -> list[_Submission]:
        batch: list[_Submission] = []
        taken = 0
        with self._changed:
            self._in_hand = 0
            self._gather()
            while self._waiting and (not batch or taken + len(self._waiting[0].rows) <= AT_ONCE):
                batch.append(self._waiting.popleft())
                taken += len(batch[-1].rows)
            self._size -= taken
            self._in_hand = taken
            self._usual_size = max(len(batch), 3 * self._usual_size // 4)
            self._changed.notify_all()
        return batch

    def _gather(self) -> None:
        """Waits for something to store, and for as many as shared the last transactions.

        They tend to come back. Whoever is left behind would share the next transaction with fewer,
        and the one after it. It takes no longer than the last one did, which is what it may save.
        """
        while not self._is_closed:
            self._changed.wait_for(lambda: self._waiting or self._is_closed)
            longest_s = min(max(self._took_s, LEAST_GATHER_S), MOST_GATHER_S)
            self._changed.wait_for(self._are_all_back, longest_s)
            if self._waiting:  # all of it may have been withdrawn meanwhile
                return

    def _are_all_back(self) -> bool:
        return self._is_closed or len(self._waiting) >= self._usual_size

    def _commit(self, batch: list[_Submission]) -> None:
        try:
            receipts = self._observations.add_groups([each.rows for each in batch])
        except (InputError, UsageError) as error:
            self._commit_apart(batch, error)
        except BaseException as error:  # noqa: BLE001 - whatever it is, somebody waits for it
            _fail(batch, error)
        else:
            for each, found in zip(batch, receipts, strict=True):
                if isinstance(found, ReusedName):
                    each.stored.set_exception(found)
                else:
                    each.stored.set_result(found)

    def _commit_apart(self, batch: list[_Submission], error: PodiumError) -> None:
        """Stores what the database does not object to, where it objects to a part of a batch."""
        if len(batch) == 1:
            _fail(batch, error)
            return
        for each in batch:
            self._commit([each])


def _fail(batch: list[_Submission], error: BaseException) -> None:
    for each in batch:
        each.stored.set_exception(error)
