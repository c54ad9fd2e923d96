"""Keeps the candidates of runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from podium.errors import PodiumError, UnknownName, UsageError
from podium.store.engine import reading, writing
from podium.store.records import JUDGED, CandidateRecord, DamagedRow
from podium.store.rows import candidate_of, candidate_row, label_of
from podium.store.runs import unknown_run
from podium.store.schema import CANDIDATES, RUNS

_SPARE = 100
"""Candidates that are looked at beyond those asked for, in place of damaged ones."""

KEY = ("run_id", "number")
_ADD = insert(CANDIDATES)
_CHANGE = (
    update(CANDIDATES)
    .where(*(CANDIDATES.c[name] == bindparam(f"old_{name}") for name in KEY))
    .values({name: bindparam(name) for name in CANDIDATES.c.keys() if name not in KEY})  # noqa: SIM118
)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Adds, judges and finds candidates. Threads may share it."""

    engine: Engine

    def propose(self, records: Iterable[CandidateRecord]) -> None:
        """Adds new candidates, all or none; they are kept once this returns.

        Raises:
            UsageError: a run has a candidate of that number already.
            UnknownName: there is no such run.
        """
        rows = _rows(records)
        if not rows:
            return
        try:
            with writing(self.engine) as connection:
                connection.execute(_ADD, rows)
        except IntegrityError as error:
            with reading(self.engine) as connection:
                raise _refusal(connection, rows) from error

    def judge(self, records: Iterable[CandidateRecord]) -> None:
        """Replaces candidates by their judged records, all or none; kept once this returns.

        Raises:
            UsageError: a record is not judged.
            UnknownName: a candidate was never proposed.
        """
        rows = _rows(records)
        for row in rows:
            if row["state"] != JUDGED:
                where = label_of(row["run_id"], row["number"])
                raise UsageError("the record is not judged", where=where, hint=f"state: {JUDGED}")
        if not rows:
            return
        with writing(self.engine) as connection:
            done = connection.execute(_CHANGE, [_renamed(row) for row in rows])
            if done.rowcount != len(rows):
                raise _absence(connection, rows)

    def of(self, run_id: str, first: int = 0) -> list[CandidateRecord]:
        """Lists the candidates of a run from a number on, in the order of their numbers."""
        query = select(CANDIDATES).where(
            CANDIDATES.c.run_id == run_id, CANDIDATES.c.number >= first
        )
        with reading(self.engine) as connection:
            found = connection.execute(query.order_by(CANDIDATES.c.number))
            return [candidate_of(row) for row in found]

    def get(self, run_id: str, number: int) -> CandidateRecord:
        """Finds one candidate.

        Raises:
            UnknownName: there is no such run, or it has no candidate of that number.
        """
        query = select(CANDIDATES).where(
            CANDIDATES.c.run_id == run_id, CANDIDATES.c.number == number
        )
        with reading(self.engine) as connection:
            row = connection.execute(query).first()
            if row is None:
                raise _unknown(connection, run_id, number)
            return candidate_of(row)

    def run_that_wrote(self, fingerprint: str, except_kind: str) -> str | None:
        """Finds the first run with a candidate that computes this, unless all are of a kind."""
        query = (
            select(CANDIDATES.c.run_id)
            .where(CANDIDATES.c.fingerprint == fingerprint, CANDIDATES.c.kind != except_kind)
            .order_by(CANDIDATES.c.run_id)
            .limit(1)
        )
        with reading(self.engine) as connection:
            found: str | None = connection.scalar(query)
            return found

    def count(self, run_id: str) -> int:
        """Counts the candidates of a run."""
        query = select(func.count()).select_from(CANDIDATES).where(CANDIDATES.c.run_id == run_id)
        with reading(self.engine) as connection:
            return int(connection.scalar(query) or 0)

    def best(self, run_id: str, limit: int) -> list[CandidateRecord]:
        """Lists accepted candidates of a run, the fittest first, without those that are damaged."""
        query = (
            select(CANDIDATES)
            .where(
                CANDIDATES.c.run_id == run_id,
                CANDIDATES.c.accepted,
                CANDIDATES.c.fitness.is_not(None),
            )
            .order_by(CANDIDATES.c.fitness.desc(), CANDIDATES.c.number)
            .limit(limit + _SPARE)
        )
        found: list[CandidateRecord] = []
        with reading(self.engine) as connection:
            for row in connection.execute(query):
                with suppress(DamagedRow):
                    found.append(candidate_of(row))
        return found[:limit]


def _rows(records: Iterable[CandidateRecord]) -> list[dict[str, Any]]:
    rows = [candidate_row(record) for record in records]
    twice = [key for key, times in Counter(_keys(rows)).items() if times > 1]
    if twice:
        raise UsageError(f"{label_of(*twice[0])} is listed twice", hint="give each number once")
    return rows


def _keys(rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, int]]:
    return ((row["run_id"], row["number"]) for row in rows)


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    # SQLAlchemy keeps a column's own name for the value that it sets.
    return {f"old_{name}" if name in KEY else name: value for name, value in row.items()}


def _refusal(connection: Connection, rows: Sequence[dict[str, Any]]) -> PodiumError:
    for run_id, number in _keys(rows):
        if not _has_run(connection, run_id):
            return unknown_run(connection, run_id)
        if _has_candidate(connection, run_id, number):
            problem = f"{label_of(run_id, number)} is already in the store"
            return UsageError(problem, hint="propose it under the next free number")
    return UsageError("the database rejected the candidates", hint="try again")


def _absence(connection: Connection, rows: Sequence[dict[str, Any]]) -> UnknownName:
    absent = (key for key in _keys(rows) if not _has_candidate(connection, *key))
    return _unknown(connection, *next(absent))


def _unknown(connection: Connection, run_id: str, number: int) -> UnknownName:
    if not _has_run(connection, run_id):
        return unknown_run(connection, run_id)
    query = select(func.min(CANDIDATES.c.number), func.max(CANDIDATES.c.number))
    first, last = connection.execute(query.where(CANDIDATES.c.run_id == run_id)).one()
    known = "it has none yet" if first is None else f"its numbers go from {first} to {last}"
    return UnknownName(f'run "{run_id}" has no candidate {number}', hint=known)


def _has_run(connection: Connection, run_id: str) -> bool:
    return connection.scalar(select(RUNS.c.id).where(RUNS.c.id == run_id)) is not None


def _has_candidate(connection: Connection, run_id: str, number: int) -> bool:
    query = select(CANDIDATES.c.number).where(
        CANDIDATES.c.run_id == run_id, CANDIDATES.c.number == number
    )
    return connection.scalar(query) is not None
