"""Turns records into rows of their table, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Row

from podium.errors import UnknownName, UsageError
from podium.settings import Secrets
from podium.store.cells import (
    Damage,
    json_cell,
    list_of,
    mapping_of,
    number_cell,
    number_of,
    text_cell,
    text_of,
    whole_of,
)
from podium.store.records import (
    MOST_ID,
    OUTCOMES,
    STATES,
    STATUSES,
    CandidateRecord,
    CheckpointRecord,
    DamagedRow,
    ObservationRecord,
    RunRecord,
)

T = TypeVar("T")
Cell = Callable[[Any, str], Any]
Value = Callable[[Any], Any]

_NONE_KNOWN = Secrets()  # what stands where secrets stand is hidden all the same
_TOLD = ("name", "settings", "summary")

LONGEST_NAME = 256
"""Characters; PostgreSQL has room for two such names in one entry of an index."""


def run_row(record: RunRecord) -> dict[str, Any]:
    """Returns the row of a run.

    Raises:
        UsageError: a value cannot be kept as it is.
    """
    if not is_id(record.id):
        advice = "an id is printable text without spaces"
        raise UsageError(f"{record.id!a} cannot be the id of a run", hint=advice)
    if record.status not in STATUSES:
        raise UnknownName.among("status", record.status, STATUSES, where=f'run "{record.id}"')
    shown = {name: _NONE_KNOWN.hide_all(getattr(record, name)) for name in _TOLD}
    return _row(replace(record, **shown), _RUN_CELLS, f'run "{record.id}"')


def is_id(text: str) -> bool:
    """Returns whether a text can be the id of a run: it is typed at command lines."""
    return text.isprintable() and bool(text) and " " not in text


def candidate_row(record: CandidateRecord) -> dict[str, Any]:
    """Returns the row of a candidate.

    Raises:
        UsageError: a value cannot be kept as it is.
    """
    label = label_of(record.run_id, record.number)
    if record.state not in STATES:
        raise UnknownName.among("state", record.state, STATES, where=label)
    return _row(record, _CANDIDATE_CELLS, label)


def run_of(row: Row[Any]) -> RunRecord:
    """Returns the record of a run's row.

    Raises:
        DamagedRow: it cannot be read.
    """
    return _record(RunRecord, row, _RUN_VALUES, ("runs", row.id))


def candidate_of(row: Row[Any]) -> CandidateRecord:
    """Returns the record of a candidate's row.

    Raises:
        DamagedRow: it cannot be read.
    """
    place = ("candidates", f"{row.run_id} {row.number}")
    return _record(CandidateRecord, row, _CANDIDATE_VALUES, place)


def observation_row(record: ObservationRecord) -> dict[str, Any]:
    """Returns the row of an observation, without its id: the store assigns it.

    Raises:
        UsageError: a value cannot be kept as it is.
    """
    label = f'observation of "{record.job_type[:LONGEST_NAME]}"'
    for name in ("job_type", "gpu_type", "key", "job_id"):
        text = getattr(record, name)
        if text is not None and len(text) > LONGEST_NAME:
            _check_length(text, f"{label}, {name}")
    if record.outcome not in OUTCOMES:
        raise UnknownName.among("outcome", record.outcome, OUTCOMES, where=label)
    row = _row(record, _OBSERVATION_CELLS, label)
    del row["id"]
    return row


def checkpoint_row(record: CheckpointRecord) -> dict[str, Any]:
    """Returns the row of a checkpoint.

    Raises:
        UsageError: a value cannot be kept as it is.
    """
    label = f'checkpoint "{record.name[:LONGEST_NAME]}"'
    _check_length(record.name, label)
    return _row(record, _CHECKPOINT_CELLS, label)


def observation_of(row: Row[Any]) -> ObservationRecord | DamagedRow:
    """Returns the record of an observation's row, or what is wrong with it."""
    try:
        return _record(ObservationRecord, row, _OBSERVATION_VALUES, ("observations", row.id))
    except DamagedRow as damaged:
        return damaged


def checkpoint_of(row: Row[Any]) -> CheckpointRecord:
    """Returns the record of a checkpoint's row.

    Raises:
        DamagedRow: it cannot be read.
    """
    return _record(CheckpointRecord, row, _CHECKPOINT_VALUES, ("checkpoints", row.name))


def is_number(id: Any) -> bool:
    """Returns whether this can be the id of an observation."""
    return isinstance(id, int) and 0 <= id < MOST_ID


def summary_cell(summary: Mapping[str, Any], run_id: str) -> str:
    """Prepares a run's summary alone."""
    return json_cell(_NONE_KNOWN.hide_all(summary), f'run "{run_id}", summary')


def label_of(run_id: str, number: int) -> str:
    """Names a candidate in messages."""
    return f'candidate {number} of run "{run_id}"'


def _row(record: object, cells: Mapping[str, Cell], label: str) -> dict[str, Any]:
    row = {}
    for name, cell in cells.items():
        value = getattr(record, name)
        try:
            row[name] = cell(value, "")
        except UsageError:
            # Where it stands is only told of what is refused: to name every cell takes longer.
            row[name] = cell(value, f"{label}, {name}")
    return row


def _record(
    make: Callable[..., T], row: Row[Any], values: Mapping[str, Value], place: tuple[str, Any]
) -> T:
    name, cells = "", row._mapping
    found = {}
    try:
        for name, value in values.items():
            found[name] = value(cells[name])
    except Damage as damage:
        raise DamagedRow.of(*place, f"{name} {damage}") from damage
    return make(**found)


def _check_length(name: str | None, where: str) -> None:
    if name is not None and len(name) > LONGEST_NAME:
        problem = f"a name of {len(name):,} characters is too long"
        raise UsageError(problem, where=where, hint=f"give at most {LONGEST_NAME}")


def _whole(value: int, _where: str) -> int:
    return int(value)


def _flag(value: bool, _where: str) -> bool:
    return bool(value)


def _number_or_none(value: float | None, where: str) -> float | None:
    return None if value is None else number_cell(value, where)


def _text_or_none(value: str | None, where: str) -> str | None:
    return None if value is None else text_cell(value, where)


def _text_or_none_of(cell: str | None) -> str | None:
    return None if cell is None else text_of(cell)


def _numbers(cell: str) -> tuple[float, ...]:
    return tuple(map(float, list_of(cell, (int, float))))


def _texts(cell: str) -> tuple[str, ...]:
    found = list_of(cell, (str,))
    try:
        "".join(found).encode()
    except UnicodeEncodeError as error:
        raise Damage("contains half a surrogate pair") from error
    return tuple(found)


def _list_of(*kinds: type) -> Value:
    return lambda cell: tuple(list_of(cell, kinds))


def _sizes(cell: str) -> dict[str, Any]:
    found = mapping_of(cell)
    for name, value in found.items():
        try:
            float(number_of(value))
        except (Damage, OverflowError) as error:
            raise Damage(f'has no number for "{name[:64]}"') from error
    return found


def _kind(cell: str) -> str:
    if cell not in ("", "job_type", "gpu_type"):
        raise Damage(f"is {cell!a:.64}, which this version does not know")
    return cell


def _outcome(cell: str) -> str:
    if cell not in OUTCOMES:
        raise Damage(f"is {cell!a:.64}, which this version does not know")
    return cell


def _id(cell: int) -> int:
    if not is_number(whole_of(cell)):
        raise Damage("is not the id of an observation")
    return cell


def _number_or_none_of(cell: float | None) -> float | None:
    return None if cell is None else number_of(cell)


_TEXT = (text_cell, text_of)
_JSON = (json_cell, mapping_of)
_TEXTS = (json_cell, _texts)
_WHOLES = (json_cell, _list_of(int))
_MAPPINGS = (json_cell, _list_of(dict))
_SIZES = (json_cell, _sizes)
_NUMBERS = (json_cell, _numbers)
_NUMBER = (number_cell, number_of)
_WHOLE = (_whole, whole_of)
_ID = (_whole, _id)
_KIND = (text_cell, _kind)
_OUTCOME = (text_cell, _outcome)
_FLAG = (_flag, bool)
_NUMBER_OR_NONE = (_number_or_none, _number_or_none_of)
_TEXT_OR_NONE = (_text_or_none, _text_or_none_of)

_RUN: dict[str, tuple[Cell, Value]] = {
    "id": _TEXT, "kind": _TEXT, "name": _TEXT, "created_s": _NUMBER, "settings": _JSON,
    "status": _TEXT, "summary": _JSON, "folder": _TEXT,
}  # fmt: skip
_CANDIDATE: dict[str, tuple[Cell, Value]] = {
    "run_id": _TEXT, "number": _WHOLE, "batch": _WHOLE, "island": _WHOLE, "kind": _TEXT,
    "source": _TEXT, "operators": _TEXTS, "parents": _WHOLES, "prompt": _TEXT, "thought": _TEXT,
    "text": _TEXT, "fingerprint": _TEXT, "signature": _TEXT, "behaviour": _NUMBERS,
    "state": _TEXT, "accepted": _FLAG, "gate": _TEXT, "reason": _TEXT,
    "fitness": _NUMBER_OR_NONE, "complexity": _WHOLE, "may_hold": _FLAG, "scores": _JSON,
    "cases": _MAPPINGS, "diagnostics": _TEXT, "seconds": _NUMBER, "cost": _JSON,
}  # fmt: skip
_OBSERVATION: dict[str, tuple[Cell, Value]] = {
    "id": _ID, "recorded_s": _NUMBER, "job_type": _TEXT, "gpu_type": _TEXT,
    "runtime_s": _NUMBER, "colocated_job_types": _TEXTS, "features": _SIZES, "source": _TEXT,
    "key": _TEXT_OR_NONE, "job_id": _TEXT_OR_NONE, "forgets": _KIND,
    "outcome": _OUTCOME, "unlearned": _TEXT,
}  # fmt: skip
_CHECKPOINT: dict[str, tuple[Cell, Value]] = {
    "name": _TEXT, "last_id": _ID, "state": _JSON, "recorded_s": _NUMBER,
}  # fmt: skip
_RUN_CELLS = {name: cell for name, (cell, _) in _RUN.items()}
_RUN_VALUES = {name: value for name, (_, value) in _RUN.items()}
_CANDIDATE_CELLS = {name: cell for name, (cell, _) in _CANDIDATE.items()}
_CANDIDATE_VALUES = {name: value for name, (_, value) in _CANDIDATE.items()}
_OBSERVATION_CELLS = {name: cell for name, (cell, _) in _OBSERVATION.items()}
_OBSERVATION_VALUES = {name: value for name, (_, value) in _OBSERVATION.items()}
_CHECKPOINT_CELLS = {name: cell for name, (cell, _) in _CHECKPOINT.items()}
_CHECKPOINT_VALUES = {name: value for name, (_, value) in _CHECKPOINT.items()}
