"""Keeps what was learned from observations, so that they need not all be learned again."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Engine, delete, insert, select, update

from podium.store.cells import text_cell
from podium.store.engine import reading, take_turn, writing
from podium.store.records import CheckpointRecord
from podium.store.rows import checkpoint_of, checkpoint_row, is_number
from podium.store.schema import CHECKPOINTS


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Saves, loads and deletes the latest checkpoint of each name. Threads may share it."""

    engine: Engine

    def save(self, record: CheckpointRecord) -> bool:
        """Replaces the checkpoint of that name unless it contains more; returns whether it did.

        Raises:
            UsageError: a value cannot be kept as it is.
        """
        row = checkpoint_row(record)
        with writing(self.engine) as connection:
            take_turn(connection)
            query = select(CHECKPOINTS.c.last_id).where(_is(record.name))
            found = connection.scalar(query)
            if found is None:
                connection.execute(insert(CHECKPOINTS), row)
                return True
            if is_number(found) and found > record.last_id:  # what is damaged contains nothing
                return False
            connection.execute(update(CHECKPOINTS).where(_is(record.name)).values(row))
            return True

    def load(self, name: str) -> CheckpointRecord | None:
        """Returns the latest checkpoint of a name, or nothing.

        Raises:
            DamagedRow: it cannot be read.
        """
        query = select(CHECKPOINTS).where(_is(name))
        with reading(self.engine) as connection:
            row = connection.execute(query).first()
            return None if row is None else checkpoint_of(row)

    def all(self) -> list[CheckpointRecord]:
        """Lists the checkpoints in order of their names."""
        query = select(CHECKPOINTS).order_by(CHECKPOINTS.c.name)
        with reading(self.engine) as connection:
            return [checkpoint_of(row) for row in connection.execute(query)]

    def delete(self, name: str) -> bool:
        """Deletes an unused checkpoint by name; returns whether there was one."""
        with writing(self.engine) as connection:
            return bool(connection.execute(delete(CHECKPOINTS).where(_is(name))).rowcount)


def _is(name: str) -> ColumnElement[bool]:
    return CHECKPOINTS.c.name == text_cell(name, "name of a checkpoint")
