"""Keeps runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from podium.errors import UnknownName, UsageError, close_names
from podium.store.cells import text_cell, text_of
from podium.store.engine import reading, writing
from podium.store.records import STATUSES, DamagedRow, RunRecord
from podium.store.rows import run_of, run_row, summary_cell
from podium.store.schema import RUNS


@dataclass(frozen=True, slots=True)
class Runs:
    """Creates, finds, changes and deletes runs. Threads may share it."""

    engine: Engine

    def create(self, record: RunRecord) -> None:
        """Adds a run whose id is new."""
        row = run_row(record)
        try:
            with writing(self.engine) as connection:
                connection.execute(insert(RUNS), row)
        except IntegrityError as error:
            problem = f'run "{record.id}" is already in the store'
            raise UsageError(problem, hint="give the new run another id") from error

    def get(self, reference: str) -> RunRecord:
        """Finds a run by its id, its name, or the beginning of its id where no other begins so.

        Raises:
            UnknownName: no run is called so.
            UsageError: several runs are.
            DamagedRow: the run cannot be read.
        """
        with reading(self.engine) as connection:
            found = _called(connection, reference) if reference.isprintable() else []
            if not found:
                raise unknown_run(connection, reference)
        if len(found) > 1:
            raise _ambiguous(reference, found)
        return run_of(found[0])

    def all(self, kind: str | None = None) -> list[RunRecord]:
        """Lists runs that can be read, the newest first."""
        return [each for each in self._each(kind) if isinstance(each, RunRecord)]

    def damaged(self, kind: str | None = None) -> list[DamagedRow]:
        """Lists runs that cannot be read."""
        return [each for each in self._each(kind) if isinstance(each, DamagedRow)]

    def _each(self, kind: str | None) -> list[RunRecord | DamagedRow]:
        query = select(RUNS).order_by(RUNS.c.created_s.desc(), RUNS.c.id)
        if kind is not None:
            query = query.where(RUNS.c.kind == kind)
        with reading(self.engine) as connection:
            return [_read(row) for row in connection.execute(query)]

    def update(
        self, id: str, *, status: str | None = None, summary: Mapping[str, Any] | None = None
    ) -> None:
        """Changes the status or the summary of a run; None leaves it as it is."""
        if status is not None and status not in STATUSES:
            raise UnknownName.among("status", status, STATUSES, where=f'run "{id}"')
        changes: dict[str, Any] = {} if status is None else {"status": status}
        if summary is not None:
            changes["summary"] = summary_cell(summary, id)
        if not changes:
            return
        with writing(self.engine) as connection:
            done = connection.execute(update(RUNS).where(RUNS.c.id == id).values(changes))
            if not done.rowcount:
                raise unknown_run(connection, id)

    def delete(self, id: str) -> None:
        """Deletes a run with all that belongs to it, but not its folder."""
        with writing(self.engine) as connection:
            if not connection.execute(delete(RUNS).where(RUNS.c.id == id)).rowcount:
                raise unknown_run(connection, id)


def _read(row: Row[Any]) -> RunRecord | DamagedRow:
    try:
        return run_of(row)
    except DamagedRow as damaged:
        return damaged


def _called(connection: Connection, reference: str) -> list[Row[Any]]:
    """Lists the runs that a reference may mean; a whole id or name goes before a beginning."""
    cell = text_cell(reference, "run")
    starts = func.substr(RUNS.c.id, 1, len(reference)) == reference
    query = select(RUNS).where(or_(starts, RUNS.c.name == cell)).order_by(RUNS.c.id)
    found = list(connection.execute(query)) if reference else []
    exact = [row for row in found if row.id == reference]
    return exact or [row for row in found if row.name == cell] or found


def _ambiguous(reference: str, found: list[Row[Any]]) -> UsageError:
    ids = ", ".join(row.id for row in found)
    if found[0].name == text_cell(reference, "run"):
        return UsageError(f'several runs are named "{reference}"', hint=f"use an id: {ids}")
    return UsageError(f'several runs begin with "{reference}"', hint=f"use a longer prefix: {ids}")


def unknown_run(connection: Connection, id: str) -> UnknownName:
    """Names runs whose ids are close to one that is in no store."""
    ids = [id for id in connection.scalars(select(RUNS.c.id)) if isinstance(id, str)]
    if not ids:
        return UnknownName(f'unknown run "{id}"', hint="the store contains no runs")
    cells = connection.scalars(select(RUNS.c.name))
    names = {text_of(cell) for cell in cells if isinstance(cell, str)}
    return UnknownName.among("run", id, [*ids, *close_names(id, names)])
