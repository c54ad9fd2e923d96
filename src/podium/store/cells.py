"""Turns values into what every database keeps unchanged, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from podium.errors import UsageError

# PostgreSQL has no NUL in texts. It is written as two characters, the first of which nobody uses
# and is doubled where somebody does.
_ESCAPE = "\x1a"
_NUL, _ESCAPED_NUL, _ESCAPED_ESCAPE = "\x00", _ESCAPE + "0", _ESCAPE * 2

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)

_EMPTY: dict[type, str] = {tuple: "[]", list: "[]", dict: "{}"}
_NOTHING: dict[str, type] = {"[]": list, "{}": dict}

Path = tuple[()] | tuple[Any, str | int]
"""Leads to a value within a document: the path of what holds it, and its name there."""


def text_cell(value: str, where: str) -> str:
    """Prepares a text; half a surrogate pair is no text."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        code = ord(value[error.start])
        raise UsageError(
            f"character {error.start:,} is half a surrogate pair (U+{code:04X})",
            where=where,
            hint="replace it before the text is stored",
        ) from error
    if _ESCAPE in value or _NUL in value:
        return value.replace(_ESCAPE, _ESCAPED_ESCAPE).replace(_NUL, _ESCAPED_NUL)
    return value


class Damage(ValueError):  # noqa: N818 - reads as the sentence it makes
    """A cell does not hold what was written: somebody else wrote there, or its disk failed."""


def text_of(cell: str) -> str:
    """Reads a text.

    Raises:
        Damage: it is none.
    """
    if not isinstance(cell, str):  # SQLite keeps whatever it is given
        raise Damage("is not text")
    if _ESCAPE not in cell:
        return cell
    parts = cell.split(_ESCAPED_ESCAPE)
    return _ESCAPE.join(part.replace(_ESCAPED_NUL, _NUL) for part in parts)


def json_cell(value: object, where: str) -> str:
    """Writes mappings, lists, texts, numbers, flags and None as JSON."""
    if not value and type(value) in _EMPTY:  # as most are
        return _EMPTY[type(value)]
    return text_cell(_JSON.encode(_plain(value, where)), where)


def json_of(cell: str) -> Any:
    """Reads JSON back.

    Raises:
        Damage: it is none, or none that can be read.
    """
    if not isinstance(cell, str):
        raise Damage("is not text")
    if cell in _NOTHING:
        return _NOTHING[cell]()
    try:
        return json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise Damage("is not JSON") from error


def mapping_of(cell: str) -> dict[str, Any]:
    """Reads a JSON object back."""
    found = json_of(cell)
    if not isinstance(found, dict):
        raise Damage("is not a JSON object")
    return found


def list_of(cell: str, kinds: tuple[type, ...] = (object,)) -> list[Any]:
    """Reads a JSON list back, all of whose entries are of some kinds."""
    found = json_of(cell)
    if not isinstance(found, list) or not all(isinstance(each, kinds) for each in found):
        raise Damage("is not a JSON list of the expected values")
    return found


def number_of(cell: float) -> float:
    """Reads a number."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise Damage("is not a number")
    return cell


def whole_of(cell: int) -> int:
    """Reads a whole number."""
    if isinstance(cell, bool) or not isinstance(cell, int):
        raise Damage("is not a whole number")
    return cell


def number_cell(value: float, where: str) -> float:
    """Prepares a number; NaN would come back as nothing."""
    if math.isnan(value):
        raise UsageError("NaN is not a number", where=where, hint="leave out what was not measured")
    return float(value)


def _plain(value: object, where: str, path: Path = ()) -> object:
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else _refuse(f"number {value}", where, path)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                _refuse(f"name that is not text: {name!r}", where, path)
        return {name: _plain(each, where, (path, name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, where, (path, index)) for index, each in enumerate(value)]
    return _refuse(type(value).__name__, where, path)


def _refuse(what: str, where: str, path: Path) -> NoReturn:
    steps: list[str] = []
    while path:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    raise UsageError(
        f"JSON has no {what}",
        where=where + "".join(reversed(steps)),
        hint="store mappings, lists, texts, Python's own finite numbers, True, False or None",
    )
