"""Declares the tables, and creates them in an empty database.

Texts, numbers and flags have a column each. What is a list or a mapping is JSON in a column of
text: both databases give it back as it was written, to the last bit of a float.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.types import UserDefinedType

from podium.errors import InputError, UsageError
from podium.store.address import POSTGRESQL, label_of
from podium.store.engine import reading, writing

SCHEMA = 1
"""Counts the forms that the tables have had; a store of another one is refused."""

_LOCK = 0x706F6469756D
"""The lock of PostgreSQL that processes queue for to create tables: "podium" in ASCII."""


class _Untyped(UserDefinedType[Any]):
    """SQLite makes 0.0 of -0.0 in a column of numbers; one without a type keeps every bit."""

    cache_ok = True

    def get_col_spec(self, **_options: object) -> str:
        """Returns what is written behind the name of the column."""
        return ""


_NUMBER: Double[float] = Double().with_variant(_Untyped(), "sqlite")
# A key that is an INTEGER to the letter needs no index besides the table in SQLite.
_ID = BigInteger().with_variant(Integer(), "sqlite")

METADATA = MetaData()

_VERSION = Column("version", BigInteger, primary_key=True, autoincrement=False)
VERSIONS = Table("podium_schema", METADATA, _VERSION)

RUNS = Table(
    "runs",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_s", _NUMBER, nullable=False),
    Column("settings", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("folder", Text, nullable=False),
)

CANDIDATES = Table(
    "candidates",
    METADATA,
    Column("run_id", Text, ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("batch", BigInteger, nullable=False),
    Column("island", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("operators", Text, nullable=False),
    Column("parents", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("thought", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("behaviour", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("gate", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("fitness", _NUMBER),
    Column("complexity", BigInteger, nullable=False),
    Column("may_hold", Boolean, nullable=False),
    Column("scores", Text, nullable=False),
    Column("cases", Text, nullable=False),
    Column("diagnostics", Text, nullable=False),
    Column("seconds", _NUMBER, nullable=False),
    Column("cost", Text, nullable=False),
)
Index(
    "candidates_by_fitness",
    CANDIDATES.c.run_id, CANDIDATES.c.accepted, CANDIDATES.c.fitness.desc(), CANDIDATES.c.number,
)  # fmt: skip

OBSERVATIONS = Table(
    "observations",
    METADATA,
    Column("id", _ID, primary_key=True, autoincrement=False),
    Column("recorded_s", _NUMBER, nullable=False),
    Column("job_type", Text, nullable=False),
    Column("gpu_type", Text, nullable=False),
    Column("runtime_s", _NUMBER, nullable=False),
    Column("colocated_job_types", Text, nullable=False),
    Column("features", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("key", Text, unique=True),
    Column("job_id", Text, unique=True),
    Column("forgets", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("unlearned", Text, nullable=False),
    Index("observations_by_pair", "job_type", "gpu_type", "id"),
)

CHECKPOINTS = Table(
    "checkpoints",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("last_id", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("recorded_s", _NUMBER, nullable=False),
)


def prepare(engine: Engine) -> None:
    """Creates the tables of an empty database; several processes may do so at the same time.

    Raises:
        UsageError: the tables have another form.
        InputError: a view stands in the place of a table, or a trigger acts on one.
    """
    _refuse_programs(engine)
    with reading(engine) as connection:
        found = _schema_of(connection)
    if found is None:
        with writing(engine) as connection:
            found = _created(connection)
    if found != SCHEMA:
        raise UsageError(
            f"the store has schema {found}, but this Podium reads schema {SCHEMA}",
            where=label_of(engine.url),
            hint="use the Podium that wrote it, or name another store",
        )


def _created(connection: Connection) -> int:
    if connection.dialect.name == POSTGRESQL:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    found = _schema_of(connection)  # another process may have been faster
    if found is not None:
        return found
    METADATA.create_all(connection, checkfirst=False)
    connection.execute(insert(VERSIONS), {"version": SCHEMA})
    return SCHEMA


def _schema_of(connection: Connection) -> int | None:
    if not inspect(connection).has_table(VERSIONS.name):
        return None
    found: int | None = connection.scalar(select(func.max(VERSIONS.c.version)))
    return found


def _refuse_programs(engine: Engine) -> None:
    # A view could compute for ever, and fill the memory with rows that nobody wrote; a trigger
    # could undo, or do again, what is written and deleted.
    if engine.dialect.name == POSTGRESQL:
        return
    with reading(engine) as connection:
        found = connection.exec_driver_sql("PRAGMA table_list").all()
        listed = "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'"
        triggers = connection.exec_driver_sql(listed).all()
    told = [
        (f'"{name}" is a {kind} and not a table', "restore a backup, or name another store")
        for _, name, kind, *_ in found
        if name.lower() in METADATA.tables and kind != "table"
    ] + [
        (
            f'the trigger "{name}" changes what Podium keeps in "{table}"',
            f'DROP TRIGGER "{name}" in sqlite3 removes it; or name another store',
        )
        for name, table in triggers
        if table.lower() in METADATA.tables
    ]
    for problem, hint in told:
        raise InputError.at(label_of(engine.url), problem, hint=hint)
