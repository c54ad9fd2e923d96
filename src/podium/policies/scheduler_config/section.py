"""Reads sections of a configuration document, and says where a value is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.errors import InputError, UnknownName, advice_on
from podium.files.excerpt import excerpt


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping of a document, with its file and its place in it."""

    file: Path
    place: str
    values: Mapping[str, Any]

    def error(self, message: str, *, key: str = "", hint: str = "") -> InputError:
        """Builds an error that names the file and the place."""
        return InputError.at(self.file, message, column=self._place(key), hint=hint)

    def only(self, known: Iterable[str], kind: str = "setting") -> Section:
        """Refuses keys that are not known; a misspelt one must not go unnoticed."""
        names = set(known)
        for key in self.values:
            if key not in names:
                where = f"{self.file}, {self.place}" if self.place else str(self.file)
                raise UnknownName.among(kind, str(key), names, where=where)
        return self

    def section(self, key: str) -> Section:
        """Reads the mapping under a key; an empty one when it is not there."""
        value = self.values.get(key)
        return Section(self.file, self._place(key), self._mapping(value, key))

    def sections(self, key: str) -> list[Section]:
        """Reads the mappings listed under a key."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(f"{excerpt(value, 40)} is not a list", key=key)
        return [
            Section(self.file, f"{self._place(key)}[{i}]", self._mapping(each, f"{key}[{i}]"))
            for i, each in enumerate(value)
        ]

    def text(self, key: str, default: str = "") -> str:
        """Reads a text."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(f"{excerpt(value, 40)} is not a string", key=key)
        return value

    def number(self, key: str, low: int, high: int, default: int) -> int:
        """Reads a whole number within bounds."""
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            message = f"{excerpt(value, 40)} is not a whole number from {low} to {high}"
            raise self.error(message, key=key)
        return value

    def one_of(self, key: str, known: Iterable[str], default: str) -> str:
        """Reads one of the known texts."""
        names = list(known)
        value = self.text(key, default)
        if value not in names:
            raise self.error(f'unknown {key} "{value}"', key=key, hint=advice_on(value, names))
        return value

    def _place(self, key: str) -> str:
        return ".".join(part for part in (self.place, key) if part)

    def _mapping(self, value: Any, key: str) -> Mapping[str, Any]:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(f"{excerpt(value, 40)} is not a mapping", key=key)
        return value
