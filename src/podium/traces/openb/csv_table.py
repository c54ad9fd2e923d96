"""Walks over the rows of a CSV file and reads single cells, each with its place."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from podium.errors import InputError
from podium.model.cluster import LIMIT
from podium.traces.fields import FieldError
from podium.traces.rejects import Rejects

LONGEST_ROW = 1 << 20

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}(\.0*)?")


@dataclass(frozen=True, slots=True)
class Row:
    """Holds the cells of one row by column."""

    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """Gives a cell as text, empty where the file lacks the column."""
        return self.cells.get(column, "").strip()

    def whole(self, column: str, absent: int | None = None) -> int:
        """Reads a whole number; an empty cell gives `absent` where there is one."""
        text = self.text(column)
        if not text and absent is not None:
            return absent
        if not _WHOLE.fullmatch(text):
            raise FieldError(column, f'a whole number is expected, not "{text[:40]}"')
        return int(text.partition(".")[0])

    def amount(self, column: str, absent: int | None = None) -> int:
        """Reads a whole number that a record can hold, from 0."""
        number = self.whole(column, absent)
        if not 0 <= number <= LIMIT:
            raise FieldError(column, f"0 to {LIMIT} is expected, not {number}")
        return number

    def time(self, column: str) -> float | None:
        """Reads seconds; an empty cell gives None."""
        text = self.text(column)
        if not text:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = math.nan
        if not (math.isfinite(seconds) and seconds >= 0):
            raise FieldError(column, f'seconds of at least 0 are expected, not "{text[:40]}"')
        return seconds


class _Lines:
    """Gives the lines of a stream for as long as rows come of them: quotes join lines to a row."""

    def __init__(self, stream: TextIO, path: Path) -> None:
        self.stream = stream
        self.path = path
        self.taken = 0  # characters of the row

    def __iter__(self) -> Iterator[str]:
        for line in self.stream:
            self.taken += len(line)
            if self.taken > LONGEST_ROW:
                message = f"a row is longer than {LONGEST_ROW:,} characters"
                raise InputError.at(
                    self.path, message, hint="check for a quote that is never closed"
                )
            yield line


@dataclass(frozen=True, slots=True)
class Table:
    """Holds an open CSV file behind its header."""

    path: Path
    columns: tuple[str, ...]
    _lines: Iterator[list[str]]
    _line_number: Callable[[], int]
    _source: _Lines

    @classmethod
    def opened(cls, stream: TextIO, path: Path, hint: str) -> Table:
        """Reads the header."""
        lines = _Lines(stream, path)
        reader = csv.reader(lines, strict=True)
        try:
            header = next(reader, None)
        except csv.Error as error:
            raise InputError.at(path, f"is not valid CSV: {error}", line=1, hint=hint) from error
        if header is None:
            raise InputError.at(path, "the file is empty", hint=hint)
        columns = tuple(column.strip() for column in header)
        twice = sorted({column for column in columns if columns.count(column) > 1})
        if twice:
            message = f"the header names {', '.join(twice)} twice"
            raise InputError.at(path, message, line=1, hint="give every column once")
        return cls(path, columns, reader, lambda: reader.line_num, lines)

    def rows(self, rejects: Rejects) -> Iterator[tuple[int, Row]]:
        """Yields the line and cells of every row that has a cell for every column."""
        while (cells := self._next()) is not None:
            line = self._line_number()
            if cells and len(cells) != len(self.columns):
                message = f"{len(self.columns)} cells are expected, not {len(cells)}"
                rejects.add(InputError.at(self.path, message, line=line))
            elif cells:
                yield line, Row(dict(zip(self.columns, cells, strict=True)))

    def reject(self, line: int, error: FieldError, rejects: Rejects) -> None:
        """Hands over a bad cell with its place."""
        column = f"column {error.field}"
        rejects.add(InputError.at(self.path, str(error), line=line, column=column))

    def _next(self) -> list[str] | None:
        self._source.taken = 0
        try:
            return next(self._lines, None)
        except csv.Error as error:
            line = self._line_number()
            hint = "correct the row; a text that holds a comma or a quote stands in double quotes"
            message = f"is not valid CSV: {error}"
            raise InputError.at(self.path, message, line=line, hint=hint) from error
