"""Follows the observations of all replicas, so that each learns the same."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Protocol

from podium.errors import PodiumError
from podium.store.records import CheckpointRecord, DamagedRow, ObservationRecord
from podium.store.store import Store

AT_ONCE = 1000
"""Observations that are read together."""

SOON_S = 0.05
"""Others are waited for so long where that must not take long."""


class Learner(Protocol):
    """Learns from observations one by one, and can be put away and taken up again."""

    def observe(self, record: ObservationRecord) -> None:
        """Learns from an observation, or raises a PodiumError and stays as it was."""

    def forget(self, names: Sequence[tuple[str, str]]) -> None:
        """Becomes as though each "job_type" or "gpu_type" of a name had never been observed."""

    def state(self) -> Mapping[str, Any]:
        """Returns all that was learned as JSON, in objects of its own."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replaces all that was learned, or raises whatever a damaged state leads to."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts what a follower met."""

    last_id: int = 0  # of the last observation that is learned
    learned: int = 0
    refused: int = 0  # the learner objected to them, or they cannot be read
    missed: int = 0  # deleted, and in no checkpoint: somebody emptied tables by hand
    refusal: str = ""  # why the last one was refused


class Follower:
    """Shows a learner every observation in the store once, in the order of their ids.

    All followers see the same order, so that what they learn is the same to the last bit. It begins
    with the checkpoint, and goes back to it where observations were deleted that it had yet to see.
    Threads may share it.
    """

    def __init__(
        self,
        store: Store,
        learner: Learner,
        name: str = "online",
        clock: Callable[[], float] = time.time,
        on_damage: Callable[[DamagedRow], None] = lambda _damaged: None,
    ) -> None:
        self._store = store
        self._learner = learner
        self._name = name
        self._clock = clock
        self._on_damage = on_damage  # hears of each row that is passed over
        self._is_started = False
        self._progress = Progress()
        self._lock = threading.Lock()

    @property
    def progress(self) -> Progress:
        """Returns how far it has followed."""
        return self._progress

    def catch_up(self) -> int:
        """Learns all that is in the store, and counts the observations it was shown."""
        with self._lock:
            return self._catch_up()

    def keep_up(self) -> bool:
        """Learns all that is in the store, unless that may take seconds; returns whether it did.

        It may where others are at it for long, or where names are to be forgotten.
        """
        if not self._lock.acquire(timeout=SOON_S):
            return False
        try:
            found = self._store.observations.since(self._progress.last_id, AT_ONCE)
            if any(map(_is_marker, found)):
                return False
            self._catch_up()
            return True
        finally:
            self._lock.release()

    def reach(self, id: int) -> None:
        """Learns at least up to an observation; whoever comes late finds it done by others."""
        if self._progress.last_id >= id:
            return
        with self._lock:
            if self._progress.last_id < id:
                self._catch_up()

    def checkpoint(self) -> bool:
        """Saves what is learned, unless another replica has saved more; returns whether it did."""
        with self._lock:
            last_id, state = self._progress.last_id, self._learner.state()
        if not last_id:
            return False
        return self._store.checkpoints.save(
            CheckpointRecord(self._name, last_id, state, recorded_s=self._clock())
        )

    def _catch_up(self) -> int:
        if not self._is_started:
            self._take_checkpoint()
            for damaged in self._store.observations.misnumbered():
                self._pass_over(damaged, self._progress.last_id)
            self._is_started = True
        shown = 0
        while found := self._store.observations.since(self._progress.last_id, AT_ONCE):
            if _has_gap(self._progress.last_id, found) and self._take_checkpoint():
                continue
            for is_forgotten, rows in groupby(found, _is_marker):
                if is_forgotten:
                    self._forget([row for row in rows if isinstance(row, ObservationRecord)])
                    continue
                for row in rows:
                    self._show(row)
            shown += len(found)
            if len(found) < AT_ONCE:  # those were all: to ask again takes as long as to learn some
                break
        return shown

    def _show(self, row: ObservationRecord | DamagedRow) -> None:
        if isinstance(row, DamagedRow):
            self._pass_over(row, row.id)
        else:
            self._observe(row)

    def _pass_over(self, damaged: DamagedRow, last_id: int) -> None:
        progress = self._progress
        refused, refusal = progress.refused + 1, str(damaged)
        self._progress = replace(progress, last_id=last_id, refused=refused, refusal=refusal)
        self._on_damage(damaged)

    def _take_checkpoint(self) -> bool:
        """Goes on from the checkpoint if it is ahead and can be read."""
        try:
            found = self._store.checkpoints.load(self._name)
            if found is None or found.last_id <= self._progress.last_id:
                return False
            self._restore(found)
        except DamagedRow as damaged:
            self._on_damage(damaged)
            return False
        self._progress = replace(self._progress, last_id=found.last_id)
        return True

    def _restore(self, found: CheckpointRecord) -> None:
        try:
            self._learner.restore(found.state)
        except PodiumError:
            raise  # it can be read, and speaks of another configuration
        except Exception as error:
            problem = f"state cannot be restored: {type(error).__name__}: {error}"
            raise DamagedRow.of("checkpoints", self._name, problem) from error

    def _forget(self, markers: Sequence[ObservationRecord]) -> None:
        """Forgets names that follow one another together: each costs as much as all of them."""
        progress = self._progress
        last_id, count = markers[-1].id, len(markers)
        self._learner.forget([(each.forgets, getattr(each, each.forgets)) for each in markers])
        missed = progress.missed + last_id - progress.last_id - count
        learned = progress.learned + count
        self._progress = replace(progress, last_id=last_id, missed=missed, learned=learned)

    def _observe(self, record: ObservationRecord) -> None:
        progress = self._progress
        missed = progress.missed + record.id - progress.last_id - 1
        progress = replace(progress, last_id=record.id, missed=missed)
        try:
            self._learner.observe(record)
        except PodiumError as error:
            refusal = f"observation {record.id}: {error}"
            self._progress = replace(progress, refused=progress.refused + 1, refusal=refusal)
        else:
            self._progress = replace(progress, learned=progress.learned + 1)


def _is_marker(row: ObservationRecord | DamagedRow) -> bool:
    return isinstance(row, ObservationRecord) and bool(row.forgets)


def _has_gap(last_id: int, found: Sequence[ObservationRecord | DamagedRow]) -> bool:
    return found[-1].id - last_id != len(found)
