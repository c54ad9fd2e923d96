"""Keeps observations, numbered in the order in which they become visible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, func, insert, select
from sqlalchemy.exc import IntegrityError

from podium.errors import UsageError
from podium.store.cells import text_of
from podium.store.engine import reading, writing
from podium.store.records import ObservationRecord
from podium.store.retention import prune
from podium.store.rows import observation_of, observation_row
from podium.store.schema import CHECKPOINTS, OBSERVATIONS
from podium.store.turn import take_turn

_MOST_KEYS = 10_000
"""Keys in one question; databases have limits."""

_ADD = insert(OBSERVATIONS)
_NEWEST = select(
    select(func.max(OBSERVATIONS.c.id)).scalar_subquery(),
    select(func.max(CHECKPOINTS.c.last_id)).scalar_subquery(),
)
_KNOWN = select(OBSERVATIONS.c.key, OBSERVATIONS.c.id).where(
    OBSERVATIONS.c.key.in_(bindparam("keys", expanding=True))
)
_SINCE = (
    select(OBSERVATIONS)
    .where(OBSERVATIONS.c.id > bindparam("id"))
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
        """Adds observations, all or none, and gives their ids; they are kept once this returns.

        One whose key is in the store already is not added: it has the id of the first.

        Raises:
            UsageError: a value cannot be kept as it is.
        """
        return self.add_rows([observation_row(record) for record in records])

    def add_rows(self, rows: Sequence[dict[str, Any]]) -> list[int]:
        """Adds rows of observations as `add` does."""
        try:
            return self._add_in_turn(rows) if rows else []
        except IntegrityError as error:
            problem = f"the database refuses the observations: {error.orig}"
            raise UsageError(problem, hint="try it again") from error

    def _add_in_turn(self, rows: Sequence[dict[str, Any]]) -> list[int]:
        with writing(self.engine) as connection:
            take_turn(connection)
            ids, fresh = _numbered(rows, _known_keys(connection, rows), _newest(connection))
            if fresh:
                connection.execute(_ADD, fresh)
        return ids

    def since(self, id: int, most: int = 1000) -> list[ObservationRecord]:
        """Lists the observations after one, in the order of their ids."""
        with reading(self.engine) as connection:
            found = connection.execute(_SINCE, {"id": id, "most": most})
            return [observation_of(row) for row in found]

    def newest(self) -> int:
        """Gives the highest id that was ever given; 0 where there is none."""
        with reading(self.engine) as connection:
            return _newest(connection)

    def count(self) -> int:
        """Counts the observations that are kept."""
        with reading(self.engine) as connection:
            return int(connection.scalar(select(func.count()).select_from(OBSERVATIONS)) or 0)

    def counts(self) -> dict[tuple[str, str], int]:
        """Counts the observations that are kept, by job type and GPU type."""
        pair = (OBSERVATIONS.c.job_type, OBSERVATIONS.c.gpu_type)
        query = select(*pair, func.count()).group_by(*pair).order_by(*pair)
        with reading(self.engine) as connection:
            found = connection.execute(query)
            return {(text_of(job), text_of(gpu)): int(count) for job, gpu, count in found}

    def prune(self, keep: int) -> int:
        """Deletes all but the newest of each pair of job type and GPU type, and counts them.

        What some checkpoint does not contain is kept: it has not been learned for good.

        Raises:
            UsageError: less than one of each pair should be kept.
        """
        return prune(self.engine, keep)


def _newest(connection: Connection) -> int:
    # Checkpoints count too: whoever empties the table must not make ids start again below them.
    return max(int(found or 0) for found in connection.execute(_NEWEST).one())


def _known_keys(connection: Connection, rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    keys = list({row["key"] for row in rows if row["key"] is not None})
    known: dict[str, int] = {}
    for first in range(0, len(keys), _MOST_KEYS):
        asked = {"keys": keys[first : first + _MOST_KEYS]}
        known.update((key, number) for key, number in connection.execute(_KNOWN, asked))
    return known


def _numbered(
    rows: Sequence[dict[str, Any]], known: Mapping[str, int], newest: int
) -> tuple[list[int], list[dict[str, Any]]]:
    """Gives the id of every row, and the rows that are new, with their ids."""
    ids: list[int] = []
    fresh: list[dict[str, Any]] = []
    by_key = dict(known)
    for row in rows:
        key = row["key"]
        if key is None or key not in by_key:
            newest += 1
            fresh.append({**row, "id": newest})
            if key is not None:
                by_key[key] = newest
        ids.append(newest if key is None else by_key[key])
    return ids, fresh
