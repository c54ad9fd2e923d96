"""Keeps observations, numbered in the order in which they become visible."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, delete, exists, func, insert, select
from sqlalchemy.exc import IntegrityError

from podium.errors import UsageError
from podium.store.cells import text_cell, text_of
from podium.store.engine import reading, take_turn, writing
from podium.store.forgotten import free_names
from podium.store.idempotency import Register, ReusedName, known_of
from podium.store.records import MOST_ID, DamagedRow, ObservationRecord, Receipt
from podium.store.retention import prune
from podium.store.rows import observation_of, observation_row
from podium.store.schema import CHECKPOINTS, OBSERVATIONS

_IS_RUN = OBSERVATIONS.c.forgets == ""
_LATER = OBSERVATIONS.alias()
# A note to forget one kind of name leaves the other empty, so that the index of pairs finds it.
_IS_FORGOTTEN = exists().where(
    _LATER.c.forgets == "job_type",
    _LATER.c.job_type == OBSERVATIONS.c.job_type,
    _LATER.c.gpu_type == "",
    _LATER.c.id > OBSERVATIONS.c.id,
) | exists().where(
    _LATER.c.forgets == "gpu_type",
    _LATER.c.job_type == "",
    _LATER.c.gpu_type == OBSERVATIONS.c.gpu_type,
    _LATER.c.id > OBSERVATIONS.c.id,
)
_ADD = insert(OBSERVATIONS)
_NEWEST = select(
    select(func.max(OBSERVATIONS.c.id)).where(OBSERVATIONS.c.id < MOST_ID).scalar_subquery(),
    select(func.max(CHECKPOINTS.c.last_id))
    .where(CHECKPOINTS.c.last_id < MOST_ID)
    .scalar_subquery(),
)
_SINCE = (
    select(OBSERVATIONS)
    .where(OBSERVATIONS.c.id > bindparam("id"), OBSERVATIONS.c.id < MOST_ID)
    .order_by(OBSERVATIONS.c.id)
    .limit(bindparam("most"))
)


@dataclass(frozen=True, slots=True)
class Observations:
    """Adds, finds, counts and prunes observations. Threads may share it.

    Writers take turns until their transaction ends. So ids have no gaps, and an observation never
    becomes visible after one with a higher id: whoever follows by id misses none.
    """

    engine: Engine

    def add(self, records: Iterable[ObservationRecord]) -> list[int]:
        """Adds observations, all or none, and returns their ids; they are stored once this returns.

        One whose key or job is already in the store is not added: it has the id of the first.

        Raises:
            ReusedName: the key or the job was that of another observation.
            UsageError: a value cannot be kept as it is.
        """
        (receipts,) = self.add_groups([[observation_row(record) for record in records]])
        if isinstance(receipts, ReusedName):
            raise receipts
        return [each.id for each in receipts]

    def add_checked(self, record: ObservationRecord, check: Callable[[], None]) -> Receipt:
        """Adds an observation unless a check objects, while nobody else can add any.

        Raises:
            ReusedName: the key or the job was that of another observation.
            UsageError: a value cannot be kept as it is.
            Exception: whatever the check raises; nothing is added then.
        """
        (receipts,) = self.add_groups([[observation_row(record)]], check)
        if isinstance(receipts, ReusedName):
            raise receipts
        return receipts[0]

    def add_groups(
        self,
        groups: Sequence[Sequence[dict[str, Any]]],
        check: Callable[[], None] = lambda: None,
    ) -> list[list[Receipt] | ReusedName]:
        """Adds groups of rows as `add` does, in one transaction; those with reused names are not.

        Raises:
            UsageError: the database refuses some of them.
        """
        try:
            return self._add_in_turn(groups, check)
        except IntegrityError as error:
            problem = f"the database rejected the observations: {error.orig}"
            raise UsageError(problem, hint="try again") from error

    def _add_in_turn(
        self, groups: Sequence[Sequence[dict[str, Any]]], check: Callable[[], None]
    ) -> list[list[Receipt] | ReusedName]:
        rows = [row for group in groups for row in group]
        if not rows:
            return [[] for _ in groups]
        with writing(self.engine) as connection:
            take_turn(connection)
            register = Register(_newest(connection), known_of(connection, rows))
            receipts = [register.enter(group) for group in groups]
            if register.fresh:
                check()
                free_names(connection, [row for row in register.fresh if row["forgets"]])
                connection.execute(_ADD, register.fresh)
        return receipts

    def names(self, kind: str, asked: Iterable[str]) -> set[str]:
        """Finds those of some "job_type" or "gpu_type" that runs were kept of, not forgotten since.

        Whoever learns may have objected to them.
        """
        cells = {text_cell(name, kind): name for name in asked}
        column = OBSERVATIONS.c[kind]
        query = select(column).where(column.in_(cells), _IS_RUN, ~_IS_FORGOTTEN).distinct()
        with reading(self.engine) as connection:
            return {cells[cell] for cell in connection.scalars(query)}

    def since(self, id: int, most: int = 1000) -> list[ObservationRecord | DamagedRow]:
        """Lists the observations after one, in the order of their ids, damaged ones as such."""
        with reading(self.engine) as connection:
            found = connection.execute(_SINCE, {"id": id, "most": most})
            return [observation_of(row) for row in found]

    def misnumbered(self, most: int = 100) -> list[DamagedRow]:
        """Lists observations whose ids are none that any store gave; `since` leaves them out."""
        query = select(OBSERVATIONS.c.id).where(OBSERVATIONS.c.id >= MOST_ID).limit(most)
        with reading(self.engine) as connection:
            ids = connection.scalars(query).all()
        return [DamagedRow.of("observations", id, "the id was never assigned") for id in ids]

    def newest(self) -> int:
        """Returns the highest id that was ever assigned; 0 if there is none."""
        with reading(self.engine) as connection:
            return _newest(connection)

    def count(self) -> int:
        """Counts the observations that are kept."""
        with reading(self.engine) as connection:
            return int(connection.scalar(select(func.count()).where(_IS_RUN)) or 0)

    def counts(self) -> dict[tuple[str, str], int]:
        """Counts the observations that are kept, by job type and GPU type."""
        pair = (OBSERVATIONS.c.job_type, OBSERVATIONS.c.gpu_type)
        query = select(*pair, func.count()).where(_IS_RUN).group_by(*pair).order_by(*pair)
        with reading(self.engine) as connection:
            found = connection.execute(query)
            return {(text_of(job), text_of(gpu)): int(count) for job, gpu, count in found}

    def probe(self, *, is_thorough: bool = False) -> None:
        """Raises what an observation would meet that is added now, and adds none.

        Args:
            is_thorough: adds one and deletes it again, which needs as much room on the disk.
        """
        with writing(self.engine) as connection:
            take_turn(connection)
            if is_thorough:
                id = _newest(connection) + 1
                connection.execute(_ADD, {**observation_row(_nothing()), "id": id})
                connection.execute(delete(OBSERVATIONS).where(OBSERVATIONS.c.id == id))

    def prune(self, keep: int) -> int:
        """Deletes all but the newest of each pair of job type and GPU type, and counts them.

        What some checkpoint does not contain is kept: it has not been learned for good.

        Raises:
            UsageError: less than one of each pair should be kept.
        """
        return prune(self.engine, keep)


def _nothing() -> ObservationRecord:
    name = f"probe {uuid.uuid4()}"
    return ObservationRecord(name, name, 1.0, recorded_s=0.0, key=name, job_id=name)


def _newest(connection: Connection) -> int:
    # Checkpoints count too: whoever empties the table must not make ids start again below them.
    return max(int(found or 0) for found in connection.execute(_NEWEST).one())
