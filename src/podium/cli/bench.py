"""Measures Podium's speed and memory on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from podium.cli import figures
from podium.cli.group import new_app
from podium.cli.options import Json, TracesFolder, read_settings, traces_folder
from podium.cli.render import Screen, print_json
from podium.errors import UsageError

app = new_app()


@app.command()
def bench(
    ctx: typer.Context,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only figures whose name contains this.")
    ] = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Measures speed and memory against their targets; exit 1 if one is missed."""
    settings = read_settings(ctx, {"traces.folder": traces})
    screen = Screen(settings.display)

    from podium.cli.watch import announce_compilation
    from podium.reports.benchmark import MEASURES, machine, measure_all

    wanted = [name for name in MEASURES if not only or any(part in name for part in only)]
    if not wanted:
        raise UsageError("nothing is measured under that name", hint=", ".join(MEASURES))
    announce_compilation(screen)
    found = []
    with screen.progress("measuring", len(wanted)) as advance:
        for measurement in measure_all(traces_folder(settings), wanted):
            found.append(measurement)
            advance()
    described = machine()
    if is_json:
        print_json([{**m.as_object(), "machine": described} for m in found])
    else:
        screen.table(
            ["figure", "measured", "target", "ok", "reference", "ratio"],
            [
                (
                    m.name,
                    f"{figures.text_of(m.value)} {m.unit}",
                    f"{'at most' if m.is_ceiling else 'at least'} {figures.text_of(m.target)}",
                    m.ok,
                    f"{figures.text_of(m.reference)} ({m.reference_name})" if m.reference else None,
                    figures.decimal(m.ratio, 2),
                )
                for m in found
            ],
        )
        screen.note(described)
    if not all(m.ok for m in found):
        raise typer.Exit(1)
