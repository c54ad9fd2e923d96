"""Writes the placements of a run, one row per pod, as CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from podium.errors import MissingExtra, UsageError
from podium.sim.result import Placement, Result

COLUMNS = ("pod", "arrival_s", "start_s", "node", "gpu_slots", "reason")


def write_placements(result: Result, path: Path) -> int:
    """Writes one row per pod in order of arrival; gives how many."""
    if path.suffix == ".csv":
        return _write_csv(result, path)
    if path.suffix == ".parquet":
        return _write_parquet(result, path)
    raise UsageError(
        f'placements cannot be written as "{path.suffix or path.name}"',
        where=str(path),
        hint="name a file that ends in .csv or .parquet",
    )


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
    try:
        import polars
    except ImportError as error:
        raise MissingExtra.named("plots", "writing Parquet") from error
    rows = list(_rows(result))
    kinds = {name: polars.Float64 if name.endswith("_s") else polars.String for name in COLUMNS}
    polars.DataFrame(rows, schema=kinds).write_parquet(path)
    return len(rows)
