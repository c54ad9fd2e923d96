"""Writes the placements of a run, one row per pod, as CSV or Parquet."""

from __future__ import annotations

import csv
import importlib.util
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from podium.errors import MissingExtra
from podium.files.draft import drafted
from podium.reports.target import checked_target
from podium.sim.result import Placement, Result

COLUMNS = ("pod", "arrival_s", "start_s", "node", "gpu_slots", "reason")
SUFFIXES = (".csv", ".parquet")


def check_placements(path: Path) -> str:
    """Gives the format that a file's name asks for; refuses what could not be written."""
    suffix = checked_target(path, SUFFIXES)
    if suffix == ".parquet" and importlib.util.find_spec("polars") is None:
        raise MissingExtra.named("plots", "writing Parquet")
    return suffix


def write_placements(result: Result, path: Path) -> int:
    """Writes one row per pod in order of arrival; gives how many."""
    write = {".csv": _write_csv, ".parquet": _write_parquet}[check_placements(path)]
    with drafted(path) as draft:
        return write(result, draft)


def _rows(result: Result) -> Iterator[dict[str, object]]:
    for placement in result.placements():
        yield {name: _value(placement, name) for name in COLUMNS}


def _value(placement: Placement, name: str) -> object:
    value = getattr(placement, name)
    return "-".join(map(str, value)) if name == "gpu_slots" else value


def _write_csv(result: Result, path: Path) -> int:
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in _rows(result):
            writer.writerow(row)
            count += 1
    return count


def _write_parquet(result: Result, path: Path) -> int:
    import polars

    rows = list(_rows(result))
    kinds = {name: polars.Float64 if name.endswith("_s") else polars.String for name in COLUMNS}
    packed = BytesIO()  # polars has errors of its own for disks
    polars.DataFrame(rows, schema=kinds).write_parquet(packed)
    path.write_bytes(packed.getvalue())
    return len(rows)
