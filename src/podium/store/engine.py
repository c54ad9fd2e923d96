"""Opens databases, runs transactions, and says in words what a database objects to."""

from __future__ import annotations

import functools
import sqlite3
import time
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.pool import ConnectionPoolEntry

from podium.errors import InputError, MissingError, PodiumError
from podium.store.address import POSTGRESQL, file_of, label_of
from podium.store.patience import watch

BUSY_S = 60.0
"""How long a writer waits for another one, unless it is set otherwise."""

STATEMENT_S = 60.0
"""How long PostgreSQL may work on one statement."""

_KEEP_ALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}
_LEAST_NETWORK_S = 2.0

TURN_LOCK = 0x6F62736572766564
"""The lock of PostgreSQL that whoever changes observations queues for: "observed" in ASCII."""

_TAKE_TURN = text("SELECT pg_advisory_xact_lock(:key)")

FILES = ("", "-wal", "-shm")
"""What is added to the name of a SQLite database for each of its files."""

_FILES_KEY = "podium files"

File = tuple[Path, tuple[int, int] | None]
"""The path of a file, with the device and the number that it has there."""

_PAUSE_S = 0.01
_SYNCHRONOUS = "synchronous"


class LostStore(MissingError):  # noqa: N818 - reads as the sentence it makes
    """The file of the store was deleted, moved or replaced while it was open."""


def open_engine(url: URL, limit_s: float = BUSY_S) -> Engine:
    """Opens the engine of a database, and creates the folder of a SQLite file.

    Args:
        url: the address.
        limit_s: how long a writer waits for others. PostgreSQL ends transactions that stand idle
            for half that time: a process that was stopped in the middle holds nobody up.
    """
    file = file_of(url)
    if file is None:
        return _open_postgresql(url, limit_s)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"the folder of the store cannot be created: {error.strerror}"
        raise InputError.at(file.parent, problem, hint="name another file for the store") from error
    engine = create_engine(url, connect_args={"timeout": limit_s})
    watch(engine, label_of(url))
    event.listen(engine, "connect", functools.partial(_set_up_sqlite, limit_s, file))
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _open_postgresql(url: URL, limit_s: float) -> Engine:
    network_s = max(limit_s, _LEAST_NETWORK_S)
    bounds = {
        **_KEEP_ALIVE,
        "connect_timeout": round(network_s),
        "tcp_user_timeout": round(network_s * 1000),
    }
    # What the address says itself is not overruled.
    defaults = {name: value for name, value in bounds.items() if name not in url.query}
    # Who waits for a lock and then looks must see what the holder of the lock wrote.
    engine = create_engine(
        url, pool_pre_ping=True, isolation_level="READ COMMITTED", connect_args=defaults
    )
    limits_s = {
        "lock_timeout": limit_s,
        "idle_in_transaction_session_timeout": limit_s / 2,
        "statement_timeout": max(limit_s, STATEMENT_S),
    }
    options = str(url.query.get("options", ""))
    words = [
        f"SET {name} = {round(seconds * 1000)}"
        for name, seconds in limits_s.items()
        if name not in options
    ]
    if words:
        event.listen(engine, "connect", functools.partial(_set_up_postgresql, "; ".join(words)))
    return engine


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Yields a connection that sees one state of the database."""
    with in_words(engine.url), engine.begin() as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Yields a connection whose changes are all committed when the block ends, or none of them."""
    with in_words(engine.url), engine.connect() as connection:
        connection.execution_options(is_writing=True)
        _check_files(connection.info)
        with connection.begin():
            yield connection
        _check_files(connection.info)


def surest(engine: Engine) -> Engine:
    """Returns an engine on the same connections whose writes survive a power failure too.

    PostgreSQL promises that by itself; SQLite has to wait for the disk at the end of a transaction.
    """
    return engine.execution_options(**{_SYNCHRONOUS: "FULL"})


@contextmanager
def in_words(url: URL) -> Iterator[None]:
    """Turns what a database objects to into an error for people."""
    try:
        yield
    except IntegrityError:
        raise  # whoever wrote the rows knows what is wrong with them
    except OperationalError as error:
        raise MissingError(
            f"the store cannot be used: {_first_line(error)}",
            where=label_of(url),
            hint=_advice(url, str(error.orig)),
        ) from error
    except NoConnection as error:
        raise MissingError(
            "the store is too busy: no connection became free",
            where=label_of(url),
            hint="try again, or use fewer threads",
        ) from error
    except DBAPIError as error:
        raise _objection(url, error) from error


def take_turn(connection: Connection) -> None:
    """Waits until no other transaction changes observations; the turn ends with this one.

    PostgreSQL gives the lock back after the transaction's rows can be seen, so that whoever comes
    next sees them. SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == POSTGRESQL:
        connection.execute(_TAKE_TURN, {"key": TURN_LOCK})


def _objection(url: URL, error: DBAPIError) -> PodiumError:
    if error.connection_invalidated:  # PostgreSQL hung up
        problem = f"the store cannot be used: {_first_line(error)}"
        return MissingError(problem, where=label_of(url), hint=_advice(url))
    problem = f"the database reports: {_first_line(error)}"
    advice = "name another file or database for the store"
    return InputError.at(label_of(url), problem, hint=advice)


def _first_line(error: DBAPIError) -> str:
    return next(iter(str(error.orig).strip().splitlines()), type(error.orig).__name__)


def _advice(url: URL, problem: str = "") -> str:
    if "locked" in problem:
        return "find out which process holds the lock, and try again when it is done"
    if "already exists" in problem or "no such" in problem:
        return "the tables were changed by hand: restore a backup, or name another store"
    if url.get_backend_name() == POSTGRESQL:
        return "check that the server runs, and the user, password and database in the address"
    return "check the file's path and permissions, and the space on its disk"


def _set_up_postgresql(words: str, connection: Any, _record: Any) -> None:
    connection.autocommit = True
    connection.execute(words)
    connection.autocommit = False


def _set_up_sqlite(
    limit_s: float, file: Path, connection: sqlite3.Connection, record: ConnectionPoolEntry
) -> None:
    # Python's own notion of when a transaction begins is switched off: _begin_sqlite says it.
    connection.isolation_level = None
    connection.execute("PRAGMA trusted_schema = OFF")  # the file may be somebody else's
    _use_write_ahead_log(connection, limit_s)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens all its files
    _note_files(record.info, file)


def _use_write_ahead_log(connection: sqlite3.Connection, limit_s: float) -> None:
    # SQLite does not wait when two connections switch a new file over at the same time.
    deadline_s = time.monotonic() + limit_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline_s:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and then wants to write is refused at once when another
    # one wrote in between; one that takes the lock at its beginning waits for it.
    options = connection.get_execution_options()
    if not options.get("is_writing", False):
        connection.exec_driver_sql("BEGIN")
        return
    connection.exec_driver_sql(f"PRAGMA synchronous = {options.get(_SYNCHRONOUS, 'NORMAL')}")
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def _note_files(info: MutableMapping[Any, Any], file: Path) -> None:
    """Notes the files that a new connection has opened."""
    paths = [Path(f"{file.absolute()}{end}") for end in FILES]
    info[_FILES_KEY] = tuple((path, _identity(path)) for path in paths)


def _check_files(info: MutableMapping[Any, Any]) -> None:
    """Looks whether the files of a connection are where they were; other databases have none.

    A process goes on writing to a file that was deleted or moved, and nobody will ever read what
    it writes. So every transaction that writes looks: before it begins, and again after it is
    committed, before anybody hears of it.

    Raises:
        LostStore: one of them is not.
    """
    files: tuple[File, ...] = info.get(_FILES_KEY, ())
    for path, identity in files:
        if _identity(path) != identity:
            raise LostStore(
                "the file of the store was deleted, moved or replaced while it was open",
                where=str(path),
                hint="put it back, or start again: anything written now would be lost",
            )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
