"""Reads a TOML file and knows the line of every key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.errors import InputError, SettingsError
from podium.files.text_file import read_text

MOST_BYTES = 64 << 10
LONGEST_STATEMENT = 50
"""Lines of a value; what follows a longer one is told without its line."""


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a TOML file with the lines of its keys."""

    data: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]
    label: str
    path: Path
    text: str = ""

    @property
    def folder(self) -> Path:
        """Returns the folder that paths in the file are relative to."""
        return self.path.parent

    def place(self, *path: str) -> str:
        """Names the file and line where a key stands."""
        line = self.lines.get(path)
        return f"{self.label}, line {line}" if line else self.label


def read_document(path: Path, label: str) -> Document:
    """Reads a file; one that is not there reads as empty."""
    import tomllib

    try:
        if not path.exists():
            return Document({}, {}, label, path)
        text = read_text(path, MOST_BYTES)
        data = tomllib.loads(text)
        _check_numbers(data)
    except (OSError, InputError) as problem:
        told = getattr(problem, "message", "") or str(problem)
        hint = "check that this is the file you meant"
        raise SettingsError(f"the file cannot be read: {told}", where=label, hint=hint) from problem
    except tomllib.TOMLDecodeError as problem:
        raise _malformed(str(problem), label) from problem
    except RecursionError as problem:
        raise _unreadable("it is nested too deeply", label) from problem
    except ValueError as problem:  # int() refuses numbers with thousands of digits
        raise _unreadable("a number has too many digits", label) from problem
    return Document(data, key_lines(text), label, path, text)


def key_lines(text: str) -> dict[tuple[str, ...], int]:
    """Maps the path of each key and table to the line where it begins.

    The parser reports no lines, so it is fed one statement at a time: the lines that have to be
    taken together until they parse.
    """
    import tomllib

    lines: dict[tuple[str, ...], int] = {}
    prefix: tuple[str, ...] = ()
    statement: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        statement.append(line)
        try:
            parsed = tomllib.loads("\n".join(statement))
        except (ValueError, RecursionError):
            if len(statement) > LONGEST_STATEMENT:
                break
            continue
        is_header = statement[0].lstrip().startswith("[")
        paths = list(_paths(parsed))
        if is_header:
            prefix = max(paths, key=len)
        for path in paths:
            lines.setdefault(path if is_header else prefix + path, number - len(statement) + 1)
        statement = []
    return lines


def _paths(table: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, value in table.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, *rest) for rest in _paths(value))


def _check_numbers(value: Any) -> None:
    """Refuses whole numbers beyond 64 bits, as TOML does; Python would not even write them out."""
    if isinstance(value, int) and value.bit_length() > 64:
        raise ValueError("beyond 64 bits")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in inner:
        _check_numbers(each)


def _unreadable(problem: str, label: str) -> SettingsError:
    hint = "check that this is the file you meant"
    return SettingsError(f"not TOML: {problem}", where=label, hint=hint)


def _malformed(message: str, label: str) -> SettingsError:
    match = re.search(r" \(at line (\d+), column (\d+)\)", message)
    where = f"{label}, line {match[1]}, column {match[2]}" if match else label
    text = message.replace(match[0], "") if match else message
    return SettingsError(f"not TOML: {text}", where=where, hint='write lines such as key = "value"')
