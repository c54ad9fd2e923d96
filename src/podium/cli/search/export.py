"""Writes all candidates of a run as a table that other programs read."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.options import Json, RunId, StoreUrl, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.terminal import on_one_line
from podium.experiments.places import blaming
from podium.experiments.runs import find_search, open_runs

if TYPE_CHECKING:
    from podium.search.run.lineage import Step


_FORMULA = ("=", "+", "-", "@")
"""What begins a formula in spreadsheets."""


def export(
    ctx: typer.Context,
    run: RunId,
    to: Annotated[
        Path | None,
        typer.Option("--csv", help="CSV file to write; -: standard output. [default: -]",
                     show_default=False),
    ] = None,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:  # fmt: skip
    """Writes all candidates of a run as CSV, or with their texts as JSON."""
    from podium.search.run.lineage import steps_of

    settings = read_settings(ctx, {"store.url": store})
    with open_runs(settings) as kept:
        with blaming("argument RUN"):
            record = find_search(kept, run)
        steps = steps_of(kept.candidates.of(record.id))
    if is_json:
        print_json([{**each.as_object(), "text": each.record.text} for each in steps])
    elif to is None or str(to) == "-":
        _write(sys.stdout, steps)
    else:
        from podium.files.draft import in_words

        with in_words(to), to.open("w", encoding="utf-8", newline="") as file:
            _write(file, steps)
        Screen(settings.display).note(f"{to}: {figures.counted(len(steps), 'candidate')}")


def _write(file: Any, steps: list[Step]) -> None:
    from podium.search.run.lineage import COLUMNS

    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in steps:
        told = each.as_object()
        told["parents"] = " ".join(map(str, told["parents"]))
        told["reason"] = " ".join(told["reason"].split())
        writer.writerow([_shown(told[name]) for name in COLUMNS])


def _shown(value: Any) -> Any:
    # A file is looked at in a terminal or a spreadsheet: what others wrote must not act there.
    if not isinstance(value, str):
        return value
    return on_one_line(f"'{value}" if value.startswith(_FORMULA) else value)
