"""Finds the observations that go with a name that is forgotten: of it, or beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Select, select, update

from podium.store.cells import Damage, list_of, text_of
from podium.store.schema import OBSERVATIONS

JOB_TYPE, GPU_TYPE = "job_type", "gpu_type"

_AT_ONCE = 1000
"""Rows or names in one statement; databases have limits."""

_FREED: Mapping[str, None] = {"key": None, "job_id": None}
_IS_NAMED = OBSERVATIONS.c.key.is_not(None) | OBSERVATIONS.c.job_id.is_not(None)
_BESIDE = select(OBSERVATIONS.c.id, OBSERVATIONS.c.colocated_job_types).where(
    OBSERVATIONS.c.colocated_job_types != "[]"
)


def is_under(row: Mapping[str, Any], marker: Mapping[str, Any]) -> bool:
    """Returns whether an observation belongs to what a marker forgets."""
    kind = marker["forgets"]
    if row["forgets"]:
        return False
    if row[kind] == marker[kind]:
        return True
    return kind == JOB_TYPE and text_of(marker[kind]) in neighbours(row["colocated_job_types"])


def free_names(connection: Connection, markers: Iterable[Mapping[str, Any]]) -> None:
    """Frees the keys and jobs of everything that is forgotten, at once."""
    names: dict[str, list[str]] = {JOB_TYPE: [], GPU_TYPE: []}
    for marker in markers:
        names[marker["forgets"]].append(marker[marker["forgets"]])
    for kind, cells in names.items():
        for part in _parts(cells):
            under = OBSERVATIONS.c[kind].in_(part)
            connection.execute(update(OBSERVATIONS).where(under, _IS_NAMED).values(_FREED))
    for ids in _parts(beside(connection, names[JOB_TYPE], _BESIDE.where(_IS_NAMED))):
        connection.execute(update(OBSERVATIONS).where(OBSERVATIONS.c.id.in_(ids)).values(_FREED))


def beside(connection: Connection, cells: Iterable[str], among: Select[Any] = _BESIDE) -> list[int]:
    """Lists the observations of jobs that ran beside some job types."""
    names = {text_of(cell) for cell in cells}
    if not names:
        return []
    known: dict[str, bool] = {}  # the same neighbours come again and again
    found = []
    for id, text in connection.execute(among):
        if text not in known:
            known[text] = not names.isdisjoint(neighbours(text))
        if known[text]:
            found.append(id)
    return found


def neighbours(cell: str) -> list[str]:
    """Lists the job types beside a job; a damaged row has none, for it is never learned."""
    try:
        return list_of(cell, (str,))
    except Damage:
        return []


def _parts(entries: list[Any]) -> Iterable[list[Any]]:
    return (entries[first : first + _AT_ONCE] for first in range(0, len(entries), _AT_ONCE))
