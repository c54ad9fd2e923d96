"""Deletes old observations: a number of each pair stays, and all that was not learned for good.

What was observed under names that are forgotten goes altogether.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Delete, Engine, Row, bindparam, delete, func, select

from podium.errors import UsageError
from podium.store.engine import reading, take_turn, writing
from podium.store.forgotten import GPU_TYPE, JOB_TYPE, beside
from podium.store.schema import CHECKPOINTS, OBSERVATIONS

_AT_ONCE = 5000
"""Rows that one transaction deletes; writers wait for it."""

_MOST_IDS = 1000
"""Ids in one statement; databases have limits."""

_RANK = func.row_number().over(
    partition_by=(OBSERVATIONS.c.job_type, OBSERVATIONS.c.gpu_type),
    order_by=OBSERVATIONS.c.id.desc(),
)
_RANKED = select(
    OBSERVATIONS.c.job_type, OBSERVATIONS.c.gpu_type, OBSERVATIONS.c.id, _RANK.label("rank")
).subquery()
_OLDEST_KEPT = select(_RANKED.c.job_type, _RANKED.c.gpu_type, _RANKED.c.id).where(
    _RANKED.c.rank == bindparam("keep")
)
_OLDER = (
    select(OBSERVATIONS.c.id)
    .where(
        OBSERVATIONS.c.job_type == bindparam("job_type"),
        OBSERVATIONS.c.gpu_type == bindparam("gpu_type"),
        OBSERVATIONS.c.id < bindparam("first"),
    )
    .order_by(OBSERVATIONS.c.id)
    .limit(_AT_ONCE)
)
_DELETE = delete(OBSERVATIONS).where(OBSERVATIONS.c.id.in_(_OLDER))
_FORGOTTEN = select(OBSERVATIONS).where(
    OBSERVATIONS.c.forgets.in_((JOB_TYPE, GPU_TYPE)), OBSERVATIONS.c.id <= bindparam("covered")
)
_COVERED = select(func.min(CHECKPOINTS.c.last_id))


def prune(engine: Engine, keep: int) -> int:
    """Deletes all observations but the newest of each pair that every checkpoint contains."""
    if keep < 1:
        problem = f"cannot keep {keep} observations of each pair"
        raise UsageError(problem, hint="keep at least 1")
    deleted = sum(_delete(engine, pair) for pair in _excess(engine, keep))
    return deleted + sum(_drop(engine, marker) for marker in _forgotten(engine))


def _excess(engine: Engine, keep: int) -> Iterator[dict[str, Any]]:
    """Returns the pairs with too many observations, and the first id that stays of each."""
    with reading(engine) as connection:
        covered = _covered(connection)
        found = connection.execute(_OLDEST_KEPT, {"keep": keep}).all() if covered else []
    for job_type, gpu_type, first in found:
        first_kept = min(first, covered + 1)
        yield {"job_type": job_type, "gpu_type": gpu_type, "first": first_kept}


def _forgotten(engine: Engine) -> list[Row[Any]]:
    """Lists the names that every checkpoint has forgotten."""
    with reading(engine) as connection:
        covered = _covered(connection)
        return list(connection.execute(_FORGOTTEN, {"covered": covered})) if covered else []


def _drop(engine: Engine, marker: Row[Any]) -> int:
    """Deletes what was observed under a name until it was forgotten, then the note of that."""
    name = getattr(marker, marker.forgets)
    is_older = (OBSERVATIONS.c[marker.forgets] == name) & (OBSERVATIONS.c.id < marker.id)
    older = select(OBSERVATIONS.c.id).where(is_older).limit(_AT_ONCE)
    deleted = _delete_all(engine, delete(OBSERVATIONS).where(OBSERVATIONS.c.id.in_(older)))
    if marker.forgets == JOB_TYPE:
        deleted += _drop_beside(engine, name, marker.id)
    with writing(engine) as connection:
        take_turn(connection)
        connection.execute(delete(OBSERVATIONS).where(OBSERVATIONS.c.id == marker.id))
    return deleted


def _drop_beside(engine: Engine, name: str, before: int) -> int:
    """Deletes the runs of others beside a job type: learned again, they would bring it back."""
    with reading(engine) as connection:
        ids = [id for id in beside(connection, [name]) if id < before]
    for first in range(0, len(ids), _MOST_IDS):
        with writing(engine) as connection:
            take_turn(connection)
            part = ids[first : first + _MOST_IDS]
            connection.execute(delete(OBSERVATIONS).where(OBSERVATIONS.c.id.in_(part)))
    return len(ids)


def _covered(connection: Connection) -> int:
    return int(connection.scalar(_COVERED) or 0)


def _delete(engine: Engine, pair: dict[str, Any]) -> int:
    return _delete_all(engine, _DELETE, pair)


def _delete_all(engine: Engine, part: Delete, values: dict[str, Any] | None = None) -> int:
    deleted = 0
    while True:
        with writing(engine) as connection:
            take_turn(connection)
            gone = connection.execute(part, values or {}).rowcount
        deleted += gone
        if gone < _AT_ONCE:
            return deleted
