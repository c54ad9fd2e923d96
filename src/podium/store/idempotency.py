"""Numbers observations, and recognises those that were stored before.

An observation may have two names: the key of the request that reported it, and the id of its job.
Either counts once. A name that was used for another observation is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from podium.errors import UsageError
from podium.store.cells import Damage, mapping_of, text_of
from podium.store.forgotten import is_under, neighbours
from podium.store.records import Receipt
from podium.store.schema import OBSERVATIONS

KEY, JOB_ID = "key", "job_id"

_MOST_NAMES = 10_000
"""Names in one question; databases have limits."""

_KNOWN = {
    name: select(OBSERVATIONS).where(
        OBSERVATIONS.c[name].in_(bindparam("names", expanding=True)),
    )
    for name in (KEY, JOB_ID)
}
_COMPARED = ("job_type", "gpu_type", "runtime_s", "forgets", "outcome")
_SHOWN = {KEY: "Idempotency-Key", JOB_ID: "job_id"}

Cells = Mapping[str, Any]


class ReusedName(UsageError):  # noqa: N818 - reads as the sentence it makes
    """Two observations that differ have the same name."""

    @classmethod
    def of(cls, kind: str, name: str) -> ReusedName:
        """Says which it is."""
        shown = _SHOWN[kind]
        return cls(
            f'the {shown} "{text_of(name)[:64]}" was used for another observation',
            where=shown,
            hint="use a new name for every observation; to repeat one, send exactly the same",
        )


class Register:
    """Enters observations after the last one, groups as a whole or not at all."""

    def __init__(self, newest: int, known: Iterable[tuple[str, Cells]]) -> None:
        self._newest = newest
        self._known: dict[tuple[str, str], Cells] = {
            (kind, cells[kind]): cells for kind, cells in known
        }
        self.fresh: list[dict[str, Any]] = []

    def enter(self, group: Sequence[Cells]) -> list[Receipt] | ReusedName:
        """Returns a receipt for each of a group, or the name that is already used."""
        begun, receipts = len(self.fresh), list[Receipt]()
        for row in group:
            earlier = self._earlier(row)
            if isinstance(earlier, ReusedName):
                self._undo(begun)
                return earlier
            receipts.append(
                self._add(row) if earlier is None else Receipt(earlier["id"], is_repeat=True)
            )
        return receipts

    def _earlier(self, row: Cells) -> Cells | ReusedName | None:
        found: Cells | None = None
        for kind in (KEY, JOB_ID):
            known = None if row[kind] is None else self._known.get((kind, row[kind]))
            if known is None:
                continue
            is_other = found is not None and found["id"] != known["id"]
            if is_other or not _is_same(row, known, kind):
                return ReusedName.of(kind, row[kind])
            found = known
        return found

    def _add(self, row: Cells) -> Receipt:
        self._newest += 1
        made = {**row, "id": self._newest}
        self.fresh.append(made)
        if row["forgets"]:
            self._free(made)
        for kind in (KEY, JOB_ID):
            if row[kind] is not None:
                self._known.setdefault((kind, row[kind]), made)
        return Receipt(self._newest)

    def _free(self, marker: Cells) -> None:
        """Frees the names of what is forgotten, for observations that come after."""
        for each in self.fresh:
            if is_under(each, marker):
                each[KEY] = each[JOB_ID] = None
        self._known = {
            name: cells for name, cells in self._known.items() if not is_under(cells, marker)
        }

    def _undo(self, begun: int) -> None:
        for made in self.fresh[begun:]:
            for kind in (KEY, JOB_ID):
                if self._known.get((kind, made[kind])) is made:
                    del self._known[kind, made[kind]]
        self._newest -= len(self.fresh) - begun
        del self.fresh[begun:]


def known_of(connection: Connection, rows: Sequence[Cells]) -> list[tuple[str, Cells]]:
    """Finds the observations whose names are among those of the rows, with the kind of name."""
    found: list[tuple[str, Cells]] = []
    for kind, query in _KNOWN.items():
        names = list({row[kind] for row in rows if row[kind] is not None})
        for first in range(0, len(names), _MOST_NAMES):
            asked = {"names": names[first : first + _MOST_NAMES]}
            found += [(kind, row._asdict()) for row in connection.execute(query, asked)]
    return found


def _is_same(row: Cells, known: Cells, kind: str) -> bool:
    if any(row[name] != known[name] for name in _COMPARED):
        return False
    if kind == KEY and row[JOB_ID] != known[JOB_ID]:
        return False
    # A request is sent again as it was; a job may be told of again in other words.
    said = {row["unlearned"], known["unlearned"]}
    if kind == KEY and "" not in said and len(said) > 1:
        return False
    return _contents(row) == _contents(known)


def _contents(row: Cells) -> tuple[list[str], dict[str, float] | None]:
    try:
        features = mapping_of(row["features"])
    except Damage:
        return [], None  # like nothing that is ever told
    return sorted(neighbours(row["colocated_job_types"])), features
