"""Reads single fields of parsed YAML or JSON, where every value is still of any kind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from podium.files.excerpt import excerpt
from podium.model.cluster import LIMIT
from podium.model.quantity import parse_quantity

_LARGEST = 10**30
_BOOLEANS = {"true": True, "false": False}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class FieldError(ValueError):
    """A field of a document does not hold what it should."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def mapping_at(parent: Mapping[str, Any], key: str, field: str) -> Mapping[str, Any]:
    """Gives the mapping under a key, empty where there is none."""
    value = parent.get(key)
    if value is None:
        return {}
    # What a parser made is nearly always a dict, and asking for the type itself is much faster.
    if type(value) is not dict and not isinstance(value, Mapping):
        raise FieldError(field, f"a mapping is expected, not {shown(value)}")
    return value


def list_at(parent: Mapping[str, Any], key: str, field: str) -> list[Any]:
    """Gives the list under a key, empty where there is none."""
    value = parent.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise FieldError(field, f"a list is expected, not {shown(value)}")
    return value


def mappings_at(parent: Mapping[str, Any], key: str, field: str) -> list[Mapping[str, Any]]:
    """Gives the list of mappings under a key, empty where there is none."""
    values = list_at(parent, key, field)
    for index, value in enumerate(values):
        if type(value) is not dict and not isinstance(value, Mapping):
            raise FieldError(f"{field}[{index}]", f"a mapping is expected, not {shown(value)}")
    return values


def text_of(value: Any, field: str) -> str:
    """Reads a scalar as the text it was written as; nothing reads as the empty text."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise FieldError(field, f"a string is expected, not {shown(value)}")


def texts_at(parent: Mapping[str, Any], key: str, field: str) -> dict[str, str]:
    """Reads a mapping of texts, such as labels and annotations."""
    values = mapping_at(parent, key, field)
    return {name: text_of(value, f"{field}.{name}") for name, value in values.items()}


def whole_of(value: Any, field: str, least: int = 0, most: int = LIMIT) -> int:
    """Reads a whole number within limits, also written as a quantity such as 1k."""
    number = _quantity(value, field)
    if number.denominator != 1 or not least <= number <= most:
        raise FieldError(
            field, f"a whole number from {least} to {most} is expected, not {shown(value)}"
        )
    return int(number)


def quantity_of(value: Any, field: str) -> Fraction:
    """Reads a Kubernetes quantity of at least 0."""
    number = _quantity(value, field)
    # Comparing fractions takes ten times as long, and every pod asks for a few.
    if number.numerator < 0:
        raise FieldError(field, f"a quantity of at least 0 is expected, not {shown(value)}")
    if number.numerator > _LARGEST * number.denominator:
        raise FieldError(field, f"{shown(value)} is too large")
    return number


def number_of(value: Any, field: str) -> float:
    """Reads a number that a float can hold."""
    try:
        return float(_quantity(value, field))
    except OverflowError:
        raise FieldError(field, f"{shown(value)} is too large") from None


def flag_of(value: Any, field: str) -> bool:
    """Reads true or false."""
    flag = _BOOLEANS.get(text_of(value, field).lower())
    if flag is None:
        raise FieldError(field, f"true or false is expected, not {shown(value)}")
    return flag


def time_of(value: Any, field: str) -> float:
    """Reads an RFC 3339 time as seconds since 1970."""
    text = text_of(value, field)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise FieldError(
            field, f"a time such as 2023-07-01T12:00:00Z is expected, not {shown(value)}"
        )
    return (moment - _EPOCH).total_seconds()


def shown(value: Any) -> str:
    """Shows a value in a message, cut to one short line."""
    return excerpt(value, quote='"')


@lru_cache(maxsize=4096)
def _parsed(value: str | int | float) -> Fraction:
    # Thousands of pods ask for the same few amounts.
    return parse_quantity(value)


def _quantity(value: Any, field: str) -> Fraction:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise FieldError(field, f"a quantity is expected, not {shown(value)}")
    try:
        return _parsed(value)
    except ValueError as error:
        raise FieldError(
            field, f"a quantity such as 4, 500m or 16Gi is expected, not {shown(value)}"
        ) from error
