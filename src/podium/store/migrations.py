"""Brings a database to the newest schema: numbered steps, forward only, each recorded."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, inspect, text

from podium.errors import InputError, UsageError
from podium.store.address import POSTGRESQL, label_of
from podium.store.engine import let_take_its_time, reading, writing

TABLE = "podium_schema"

_LOCK = 0x706F6469756D
"""The lock of PostgreSQL that migrating processes queue for: "podium" in ASCII."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number, what it is for, and SQL that both databases understand.

    A step that has been released is never edited; what it got wrong is fixed by a later one.
    """

    number: int
    name: str
    statements: tuple[str, ...]


def migrate(engine: Engine, migrations: Sequence[Migration]) -> None:
    """Applies the steps that a database lacks; several processes may do so at the same time.

    Raises:
        UsageError: a newer Podium has changed the database.
    """
    newest = migrations[-1].number
    with reading(engine) as connection:
        found = version_of(connection)
    if found == newest:
        return
    if found > newest:
        raise _too_new(engine, found, newest)
    with writing(engine) as connection:
        _apply(connection, engine, migrations)


def refuse_programs(engine: Engine, names: Collection[str]) -> None:
    """Refuses a file of SQLite in which something else than tables stands, or acts, for Podium's.

    Raises:
        InputError: a view could compute for ever, and fill the memory with rows that nobody wrote;
            a trigger could undo, or do again, what is written and deleted.
    """
    if engine.dialect.name == POSTGRESQL:
        return
    with reading(engine) as connection:
        found = connection.exec_driver_sql("PRAGMA table_list").all()
        listed = "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"
        triggers = connection.exec_driver_sql(listed).all()
    told = [
        (f'"{name}" is a {kind} and not a table', "restore a backup, or name another store")
        for _, name, kind, *_ in found
        if name.lower() in names and kind != "table"
    ] + [
        (
            f'the trigger "{name}" changes what Podium keeps in "{table}"',
            f'DROP TRIGGER "{name}" in sqlite3 removes it; or name another store',
        )
        for name, table in triggers
        if table.lower() in names
    ]
    for problem, hint in told:
        raise InputError.at(label_of(engine.url), problem, hint=hint)


def version_of(connection: Connection) -> int:
    """Returns the number of the newest step that was applied; 0 for an empty database."""
    if not inspect(connection).has_table(TABLE):
        return 0
    return int(connection.scalar(text(f"SELECT max(version) FROM {TABLE}")) or 0)


def _apply(connection: Connection, engine: Engine, migrations: Sequence[Migration]) -> None:
    let_take_its_time(connection)
    if engine.dialect.name == POSTGRESQL:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    found = version_of(connection)  # another process may have been faster
    if found > migrations[-1].number:
        raise _too_new(engine, found, migrations[-1].number)
    if found == 0:
        connection.execute(
            text(
                f"CREATE TABLE IF NOT EXISTS {TABLE} (version BIGINT NOT NULL PRIMARY KEY, "
                "name TEXT NOT NULL, applied_s DOUBLE PRECISION NOT NULL)"
            )
        )
    for step in migrations:
        if step.number > found:
            _take(connection, step)


def _take(connection: Connection, step: Migration) -> None:
    for statement in step.statements:
        connection.exec_driver_sql(_spoken(statement, connection.dialect.name))
    connection.execute(
        text(f"INSERT INTO {TABLE} (version, name, applied_s) VALUES (:number, :name, :now_s)"),
        {"number": step.number, "name": step.name, "now_s": time.time()},
    )


def _spoken(statement: str, dialect: str) -> str:
    # SQLite makes 0.0 of -0.0 in a column of numbers; one without a type keeps every bit.
    # A key that is an INTEGER to the letter needs no index besides the table.
    if dialect == POSTGRESQL:
        return statement
    return statement.replace(" DOUBLE PRECISION", "").replace(
        " BIGINT NOT NULL PRIMARY KEY", " INTEGER NOT NULL PRIMARY KEY"
    )


def _too_new(engine: Engine, found: int, newest: int) -> UsageError:
    return UsageError(
        f"the store has schema {found}, but this Podium knows schemas only up to {newest}",
        where=label_of(engine.url),
        hint="install the newer Podium that wrote it, or name another store",
    )
