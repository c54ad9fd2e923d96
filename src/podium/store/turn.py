"""Lets those who change observations do so one after another."""

from __future__ import annotations

from sqlalchemy import Connection, text

from podium.store.address import POSTGRESQL

_LOCK = 0x6F62736572766564
"""The lock of PostgreSQL that they queue for: "observed" in ASCII."""

_TAKE = text("SELECT pg_advisory_xact_lock(:key)")


def take_turn(connection: Connection) -> None:
    """Waits until no other transaction has the turn; it is given back when this one ends.

    PostgreSQL gives the lock back after the transaction's rows can be seen, so that whoever comes
    next sees them. SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == POSTGRESQL:
        connection.execute(_TAKE, {"key": _LOCK})
