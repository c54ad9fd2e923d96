"""Measures speed and memory on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.group import new_app
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.errors import UsageError
from podium.experiments.places import traces_folder

if TYPE_CHECKING:
    from podium.reports.bench.measurement import Measurement

app = new_app()


@app.command()
@stoppable
def bench(
    ctx: typer.Context,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Only figures whose name contains this.")
    ] = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Measures speed and memory on this machine.

    Compares them with their targets. Exits with 1 when a target is missed.
    """
    settings = read_settings(ctx, {"traces.folder": traces})
    screen = Screen(settings.display)

    from podium.cli.watch import announce_compilation
    from podium.reports.bench.benchmark import MEASURES, OTHER_PROCESSES, measure_all
    from podium.reports.bench.measurement import machine

    wanted = [name for name in MEASURES if not only or any(part in name for part in only)]
    if not wanted:
        raise UsageError(
            "no figure has that name",
            where=f"flag --only {' '.join(only or [])}",
            hint=f"one of {', '.join(MEASURES)}",
        )
    if not set(wanted) <= OTHER_PROCESSES:
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
        titles = ["figure", "measured", "target", "ok", "reference", "", "ratio"]
        screen.table(titles, [_row(measurement) for measurement in found])
        screen.note(described)
    if not all(measurement.ok for measurement in found):
        raise typer.Exit(1)


def _row(measurement: Measurement) -> tuple[object, ...]:
    unit, reference = measurement.unit, measurement.reference
    return (
        measurement.name,
        _amount(measurement.value, unit),
        f"{'at most' if measurement.is_ceiling else 'at least'} "
        f"{_amount(measurement.target, unit)}",
        measurement.ok,
        None if reference is None else _amount(reference, unit),
        measurement.reference_name,
        figures.decimal(measurement.ratio, 2),
    )


def _amount(value: float, unit: str) -> figures.Figure:
    if unit == "s":
        return figures.duration(value)
    digits = 2 if unit == "x" else 0
    return figures.Figure(f"{figures.decimal(value, digits)} {unit}")
