"""Ends statements of SQLite that have no end, and lets signals through while one works.

A file may come from somebody else. PostgreSQL has a limit of time for this, see `engine`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.pool import ConnectionPoolEntry

from podium.errors import InputError

STEP = 1_000_000
"""Instructions of SQLite between two looks: about ten milliseconds."""

MOST_STEPS = 5_000
"""Of one statement: a minute, as in PostgreSQL; the largest of Podium's own take a few."""

_KEY = "podium patience"


class Patience:
    """Counts the steps of the statement that a connection works on."""

    def __init__(self) -> None:
        self.left = MOST_STEPS

    @property
    def is_over(self) -> bool:
        """Returns whether the statement took more steps than it may."""
        return self.left < 0

    def step(self) -> bool:
        """Counts a step; a true answer ends the statement."""
        self.left -= 1
        return self.is_over


def watch(engine: Engine, label: str) -> None:
    """Limits every statement of an engine of SQLite."""

    def begin(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
        patience = record.info[_KEY] = Patience()
        connection.set_progress_handler(lambda: patience.step(), STEP)

    def renew(connection: Any, *_rest: object) -> None:
        connection.info[_KEY].left = MOST_STEPS

    event.listen(engine, "connect", begin)
    event.listen(engine, "before_cursor_execute", renew)
    event.listen(engine, "handle_error", _explaining(label))


def _explaining(label: str) -> Callable[[ExceptionContext], None]:
    def explain(context: ExceptionContext) -> None:
        if str(context.original_exception) != "interrupted" or context.connection is None:
            return
        if not context.connection.info[_KEY].is_over:
            raise KeyboardInterrupt  # what a signal raised; SQLite knows that it was ended alone
        raise InputError.at(
            label, "a statement of the store does not end",
            hint="the store was made to hang, or is far too large: name another one",
        )  # fmt: skip

    return explain
