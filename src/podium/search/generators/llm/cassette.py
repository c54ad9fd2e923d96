"""Records the traffic with language models as JSON lines, and plays it back without a key."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from podium.errors import InputError
from podium.files.bounded import open_regular
from podium.files.draft import in_words
from podium.files.excerpt import excerpt
from podium.files.json_text import parse_value
from podium.files.text_file import reading
from podium.search.generators.llm.budget import Charge
from podium.search.generators.llm.exchange import Exchange, Reply, Try

VERSION = 1
_HEADER = {"cassette": "podium", "version": VERSION}

Question = Mapping[str, Any]
"""What was asked: the request's seed, both messages, the models and their settings."""


class Recorder:
    """Appends exchanges to a cassette; threads may share one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._lock = path, threading.Lock()
        self._file = _opened(path)
        if os.fstat(self._file.fileno()).st_size == 0:
            self._write(_HEADER)
            return
        try:
            read_cassette(path)  # a resumed run goes on with a cassette, and with nothing else
            _drop_cut_line(path, self._file)
        except BaseException:
            self._file.close()
            raise

    def add(self, question: Question, exchange: Exchange) -> None:
        """Writes an exchange down before anything is made of it."""
        self._write({"question": question, **asdict(exchange)})

    def close(self) -> None:
        """Closes the file."""
        with suppress(OSError):  # what could not be written was told when it was
            self._file.close()

    def _write(self, row: Mapping[str, Any]) -> None:
        line = json.dumps(row) + "\n"
        with self._lock, in_words(self._path):
            self._file.write(line)
            self._file.flush()


class Player:
    """Plays recorded exchanges back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = read_cassette(path)
        self._by_digest = {_digest(row["question"]): row for row in self._rows}

    def find(self, question: Question) -> Exchange:
        """Finds what was answered.

        Raises:
            InputError: this was never asked; says what differs from what was.
        """
        row = self._by_digest.get(_digest(question))
        if row is None:
            raise InputError.at(
                self._path,
                f"the cassette does not contain this request: {self._difference(question)}",
                hint="replay with the settings and version of the recording, or record again",
            )
        return _exchange(row)

    def _difference(self, question: Question) -> str:
        if not self._rows:
            return "the cassette is empty"
        nearest = max(self._rows, key=lambda row: _likeness(row["question"], question))
        return difference(nearest["question"], question)


def read_cassette(path: Path) -> list[dict[str, Any]]:
    """Reads every exchange; a last line that was cut off by a crash is left out."""
    if not path.exists():
        raise InputError.at(
            path, "no such cassette",
            hint="give the file cassette.jsonl in the folder of a recorded run",
        )  # fmt: skip
    rows: list[dict[str, Any]] = []
    number = 0
    with reading(path, newline="\n") as stream:
        for line in stream:
            if not line.endswith("\n"):
                break
            number += 1
            rows += [_row(line, path, number)]
    if not rows:
        raise InputError.at(path, "not a cassette: the file is empty", hint="record one first")
    return rows[1:]


def _row(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row: dict[str, Any] = parse_value(line)
        _check_row(row, number)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"not a cassette: {excerpt(error, 200)}"
        hint = "give the file cassette.jsonl in the folder of a recorded run"
        raise InputError.at(path, message, line=number, hint=hint) from error
    return row


def _opened(path: Path) -> TextIO:
    """Opens a cassette to append to; no link is followed to a file of somebody else."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        return os.fdopen(open_regular(path, flags), "a", encoding="utf-8")
    except OSError as error:
        problem = f"cannot be recorded to: {error.strerror or error}"
        raise InputError.at(path, problem, hint="begin a new run") from error


def _drop_cut_line(path: Path, file: TextIO) -> None:
    whole = path.read_bytes()
    if not whole.endswith(b"\n"):
        os.ftruncate(file.fileno(), whole.rfind(b"\n") + 1)


def difference(recorded: Question, asked: Question) -> str:
    """Describes the first difference between two requests."""
    for key in asked:
        if recorded.get(key) == asked[key]:
            continue
        if isinstance(asked[key], str) and isinstance(recorded.get(key), str):
            return f"{key}, {_first_line(recorded[key], asked[key])}"
        return f"{key} is {asked[key]}, recorded {recorded.get(key)}"
    return "it was recorded differently"


def _first_line(recorded: str, asked: str) -> str:
    old, new = recorded.splitlines(), asked.splitlines()
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    at = min(len(old), len(new)) if same is None else same
    had = repr(old[at][:80]) if at < len(old) else "nothing"
    has = repr(new[at][:80]) if at < len(new) else "nothing"
    return f"line {at + 1}, is {has}, recorded {had}"


def _likeness(recorded: Question, asked: Question) -> tuple[int, float]:
    equal = sum(recorded.get(key) == value for key, value in asked.items())
    texts = str(recorded.get("user", "")), str(asked.get("user", ""))
    return equal, difflib.SequenceMatcher(None, *texts).quick_ratio()


def _digest(question: Question) -> str:
    text = json.dumps(question, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _check_row(row: Any, number: int) -> None:
    if number > 1:
        _exchange(row)
        _digest(row["question"])
    elif not isinstance(row, dict) or row.get("cassette") != "podium":
        raise ValueError("the first line is not a cassette header")
    elif row.get("version") != VERSION:
        raise ValueError(f"version {row.get('version')}; this Podium reads version {VERSION}")


def _exchange(row: Mapping[str, Any]) -> Exchange:
    tries = [
        Try(
            each["model"], tuple(each["sent"]), Reply(**each["reply"]), Charge(**each["charge"]),
            each["seconds"],
        )
        for each in row["tries"]
    ]  # fmt: skip
    return Exchange(tuple(tries), row["spent"], row.get("is_stopped", False), row["note"])
