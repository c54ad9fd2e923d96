"""Runs one policy on one trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.case_options import (
    CaseOptions,
    HoldLimit,
    MaxHolds,
    MaxRounds,
    Policy,
    Seed,
    TierName,
)
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.knowledge import knowledge
from podium.cli.options import Json, Save, StoreUrl, kept_note, read_settings, typed_command
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.watch import watching
from podium.errors import UsageError
from podium.experiments.places import place_of
from podium.experiments.runs import check_keeping
from podium.experiments.simulate import Simulation

if TYPE_CHECKING:
    from podium.settings import Settings
    from podium.sim import Result

    Writer = Callable[[Result, Path], int]

app = new_app()

STANDARD_OUTPUT = Path("-")


@app.command()
@stoppable
@with_blocks
def simulate(
    ctx: typer.Context,
    *,
    policy: Policy = None,
    case: CaseOptions,
    seed: Seed = None,
    placements: Annotated[
        Path | None,
        typer.Option(
            "--placements", help="Write one row per pod: a .csv or .parquet file, or - to print it."
        ),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", help="Write the resources in use over time (.csv or .json)."),
    ] = None,
    tier: TierName = None,
    hold_limit: HoldLimit = None,
    max_holds: MaxHolds = None,
    max_rounds: MaxRounds = None,
    save: Save = None,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Runs one policy on one trace."""
    flags = {
        **case.settings(),
        "simulate.policy": policy,
        "simulate.seed": seed,
        "simulate.hold_limit": hold_limit,
        "simulate.max_holds": max_holds,
        "simulate.max_rounds": max_rounds,
        "compile.tier": tier,
        "store.url": store,
    }
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)
    if save is not None:
        check_keeping(settings, save)
    writers = _writers(placements, timeline)
    if is_json and placements == STANDARD_OUTPUT:
        raise UsageError(
            "--placements - and --json both print to standard output", hint="leave one of them out"
        )
    found = _run(screen, settings, case)
    for write, path, what in writers:
        count = write(found.result, path)
        if path != STANDARD_OUTPUT:
            screen.note(f"wrote {count:,} {what} to {path}")
    if save is not None:
        _keep(screen, settings, case, found, save)
    if is_json:
        print_json(found.as_object())
    elif placements != STANDARD_OUTPUT:
        show(screen, found.summary)


def _run(screen: Screen, settings: Settings, case: CaseOptions) -> Simulation:
    from podium.experiments.case import named_policy
    from podium.experiments.simulate import simulate

    reference, place = settings.simulate.policy, place_of(settings, "simulate.policy")
    with watching(screen) as listener:
        policy = named_policy(reference, place, is_ignoring_unknown=case.is_ignoring_unknown)
        return simulate(settings, case.inputs(), policy, listener)


def _keep(
    screen: Screen, settings: Settings, case: CaseOptions, found: Simulation, name: str
) -> None:
    from podium.experiments.runs import Keeping, keep_simulation

    record = keep_simulation(settings, case.inputs(), found, Keeping(name, typed_command()))
    screen.note(kept_note(record))


def _writers(placements: Path | None, timeline: Path | None) -> list[tuple[Writer, Path, str]]:
    """Lists the files to write, and refuses what cannot be written before the run begins."""
    from podium.reports import tables

    found: list[tuple[Writer, Path, str]] = []
    if placements is not None and placements == timeline:
        raise UsageError(
            "--placements and --timeline name the same file",
            where=str(timeline),
            hint="name two files",
        )
    if placements is not None:
        tables.check_placements(placements)
        found.append((tables.write_placements, placements, "placements"))
    if timeline is not None:
        tables.checked_target(timeline, tables.TIMELINE_SUFFIXES)
        found.append((tables.write_timeline, timeline, "moments"))
    return found


def show(screen: Screen, found: dict[str, Any]) -> None:
    """Prints a run's summary for people."""
    screen.fields(
        {
            "policy": found["policy"],
            "trace": f"{found['trace']}, cluster {found['cluster']}, {found['protocol']}, "
            f"seed {found['seed']}",
            **knowledge(found),
            "cluster": f"{figures.counted(found['nodes'], 'node')}, "
            f"{figures.counted(found['gpus'], 'GPU')}",
            "pods": f"{found['pods']:,}: {_bound(found)}{found['placed']:,} placed, "
            f"{found['unplaced']:,} unplaced, {found['held']:,} held",
            **_preemption(found),
            **_refusals(found),
            "GPU allocation": figures.percent(found["gpu_allocation"]),
            "CPU allocation": figures.percent(found["cpu_allocation"]),
            "memory allocation": figures.percent(found["memory_allocation"]),
            "fragmentation": f"{figures.percent(found['fragmentation'])} of all GPUs",
            **_waiting(found),
            **_loads(found),
            "decisions": f"{found['decisions']:,} in {figures.duration(found['wall_s'])} "
            f"({found['tier']})" + (f", {found['holds']:,} of them held" if found["holds"] else ""),
            "digest": found["digest"],
        }
    )


def _bound(found: dict[str, Any]) -> str:
    """Says how many pods ran already; what became of pods is said of the others."""
    if "bound" not in found:
        return ""
    return f"{found['bound']:,} running, {found['pods'] - found['bound']:,} pending: "


def _preemption(found: dict[str, Any]) -> dict[str, object]:
    if "evictions" not in found:
        return {}
    told = figures.counted(found["evictions"], "pod")
    if found["evictions"] and "lost_gpu_s" in found:
        told += f"; {found['lost_gpu_s'] / 3600:,.1f} GPU hours lost"
    return {"evicted": told}


def _refusals(found: dict[str, Any]) -> dict[str, object]:
    told = [f"{reason} {count:,}" for reason, count in found.get("refusals", {}).items()]
    return {"not placed for": ", ".join(told)} if told else {}


def _waiting(found: dict[str, Any]) -> dict[str, object]:
    if found["protocol"] != "replay":
        return {}
    spans = [figures.duration(found[f"wait_{name}_s"]) for name in ("mean", "p95", "p99", "max")]
    return {
        "waiting": f"{figures.counted(found['waited'], 'pod')}; mean {spans[0]}, p95 {spans[1]}, "
        f"p99 {spans[2]}, max {spans[3]}",
        "makespan": figures.duration(found["makespan_s"]),
    }


def _loads(found: dict[str, Any]) -> dict[str, object]:
    curve = found.get("allocation_at", {})
    return {
        f"allocated at {load} %": figures.percent(curve[load])
        for load in ("80", "100", "130")
        if load in curve
    }
