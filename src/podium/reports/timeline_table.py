"""Writes the timeline of a run, one row per sampled moment, as CSV or JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from podium.files.draft import drafted
from podium.reports.target import checked_target
from podium.sim.result import Result
from podium.sim.timeline import Timeline, timeline

SUFFIXES = (".csv", ".json")


def write_timeline(result: Result, path: Path) -> int:
    """Writes the sampled moments in their order; gives how many."""
    write = {".csv": _write_csv, ".json": _write_json}[checked_target(path, SUFFIXES)]
    sampled = timeline(result)
    with drafted(path) as draft:
        write(sampled, draft)
    return len(sampled)


def _write_csv(sampled: Timeline, path: Path) -> None:
    columns = sampled.as_columns()
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _write_json(sampled: Timeline, path: Path) -> None:
    path.write_text(json.dumps(sampled.as_rows(), indent=1) + "\n", encoding="utf-8")
