"""Writes placements and timelines as tables: CSV, JSON or Parquet."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import TextIO

from podium.errors import InputError, MissingExtra, UsageError
from podium.files.draft import drafted
from podium.sim.result import Placement, Result
from podium.sim.timeline import Timeline, timeline


def checked_target(path: Path, suffixes: tuple[str, ...]) -> str:
    """Returns the suffix that names the format; refuses a file that cannot be written."""
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise UsageError(
            f'the format "{path.suffix or path.name}" cannot be written',
            where=str(path),
            hint=f"name a file that ends in {' or '.join(suffixes)}",
        )
    if not path.parent.is_dir():
        raise InputError.at(path, "folder does not exist", hint=f"create the folder {path.parent}")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError.at(path, "the file cannot be written", hint="name another file")
    return suffix


STANDARD_OUTPUT = Path("-")
COLUMNS = tuple(each.name for each in fields(Placement))
PLACEMENT_SUFFIXES = (".csv", ".parquet")


def check_placements(path: Path) -> str:
    """Returns the format that a file's name asks for; refuses what cannot be written."""
    if path == STANDARD_OUTPUT:
        return ".csv"
    suffix = checked_target(path, PLACEMENT_SUFFIXES)
    if suffix == ".parquet" and importlib.util.find_spec("polars") is None:
        raise MissingExtra.named("plots", "writing Parquet")
    return suffix


def write_placements(result: Result, path: Path) -> int:
    """Writes one row per pod in order of arrival; returns how many."""
    write = {".csv": _write_placement_rows, ".parquet": _write_parquet}[check_placements(path)]
    if path == STANDARD_OUTPUT:
        return _write_rows(result, sys.stdout)
    with drafted(path) as draft:
        return write(result, draft)


def _rows(result: Result) -> Iterator[dict[str, object]]:
    for placement in result.placements():
        yield {name: _value(placement, name) for name in COLUMNS}


def _value(placement: Placement, name: str) -> object:
    value = getattr(placement, name)
    return "-".join(map(str, value)) if name == "gpu_slots" else value


def _write_placement_rows(result: Result, path: Path) -> int:
    with path.open("w", newline="", encoding="utf-8") as file:
        return _write_rows(result, file)


def _write_rows(result: Result, file: TextIO) -> int:
    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in _rows(result):
        writer.writerow(row)
        count += 1
    return count


def _write_parquet(result: Result, path: Path) -> int:
    frame = result.to_frame()
    packed = BytesIO()  # polars has errors of its own for disks
    frame.write_parquet(packed)
    path.write_bytes(packed.getvalue())
    return len(frame)


TIMELINE_SUFFIXES = (".csv", ".json")


def write_timeline(result: Result, path: Path) -> int:
    """Writes the sampled moments in order; returns how many."""
    write = {".csv": _write_moments, ".json": _write_json}[checked_target(path, TIMELINE_SUFFIXES)]
    sampled = timeline(result)
    with drafted(path) as draft:
        write(sampled, draft)
    return len(sampled)


def _write_moments(sampled: Timeline, path: Path) -> None:
    columns = sampled.as_columns()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_json(sampled: Timeline, path: Path) -> None:
    path.write_text(json.dumps(sampled.as_rows(), indent=1) + "\n", encoding="utf-8")
