"""Runs one policy on one trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podium.cli import figures, show_online, simulate_online
from podium.cli.group import new_app
from podium.cli.options import Json, TracesFolder, place_of, read_settings
from podium.cli.render import Screen, print_json
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.sim import Result

    Writer = Callable[[Result, Path], int]

app = new_app()

Policy = Annotated[
    str | None, typer.Option("--policy", help="Policy by name or file.", show_default=False)
]
TraceName = Annotated[
    str | None, typer.Option("--trace", help="Trace by name or file.", show_default=False)
]
ClusterName = Annotated[
    str | None, typer.Option("--cluster", help="Cluster by name or file.", show_default=False)
]
ProtocolName = Annotated[
    str | None, typer.Option("--protocol", help="replay, inflation or rounds.", show_default=False)
]
Load = Annotated[
    float | None,
    typer.Option("--load", help="Divides the time between arrivals (replay).", show_default=False),
]
Ratio = Annotated[
    float | None,
    typer.Option("--ratio", help="GPU demand over capacity (inflation).", show_default=False),
]
Seed = Annotated[int | None, typer.Option("--seed", help="Seed of the run.", show_default=False)]
Orders = Annotated[
    Path | None,
    typer.Option("--orders", help="Arrival orders and node ranks (.jsonl, .jsonl.gz)."),
]
Nodes = Annotated[int | None, typer.Option("--nodes", help="Nodes of a generated cluster.", min=1)]
Pods = Annotated[int | None, typer.Option("--pods", help="Pods of a generated trace.", min=1)]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave out bad rows and list them.")]
NodeOrder = Annotated[
    Literal["shuffled", "listed"],
    typer.Option("--node-order", help="Who wins ties: a seeded shuffle, or the order listed."),
]
TierName = Annotated[
    str | None,
    typer.Option("--tier", help="auto, python, cached or scan; never changes a result."),
]
HoldLimit = Annotated[
    int | None, typer.Option("--hold-limit", help="Decisions until a held pod returns.")
]
MaxHolds = Annotated[int | None, typer.Option("--max-holds", help="Holds allowed per pod.")]
MaxRounds = Annotated[
    int | None, typer.Option("--max-rounds", help="How often the queue is offered (rounds).")
]
IgnoreUnknown = Annotated[
    bool,
    typer.Option("--ignore-unknown-plugins", help="Leave unknown scheduler plugins out, named."),
]
Seeds = Annotated[
    str | None,
    typer.Option("--seeds", help="Worlds: 1000-1019 or 1,5,9 (online).", show_default=False),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", help="Jobs that arrive (online).", show_default=False)
]
JobTypes = Annotated[
    int | None, typer.Option("--job-types", help="Types of jobs (online).", show_default=False)
]
GpuTypes = Annotated[
    int | None, typer.Option("--gpu-types", help="Types of GPUs (online).", show_default=False)
]
Noise = Annotated[
    float | None,
    typer.Option("--noise", help="Spread of run times; 0.2: 20 % (online).", show_default=False),
]
PairSpread = Annotated[
    float | None,
    typer.Option(
        "--pair-spread",
        help="How far jobs differ in which GPUs suit them, in ln(run time) (online).",
        show_default=False,
    ),
]
Neighbours = Annotated[
    float | None,
    typer.Option(
        "--neighbours", help="Share of jobs beside another one (online).", show_default=False
    ),
]


Plot = Annotated[
    Path | None,
    typer.Option(
        "--plot",
        help="Draw what was lost while learning (.svg or .png) (online).",
        show_default=False,
    ),
]


@app.command()
def simulate(
    ctx: typer.Context,
    policy: Policy = None,
    trace: TraceName = None,
    cluster: ClusterName = None,
    protocol: ProtocolName = None,
    ratio: Ratio = None,
    load: Load = None,
    seed: Seed = None,
    orders: Orders = None,
    placements: Annotated[
        Path | None,
        typer.Option("--placements", help="Write one row per pod (.csv or .parquet)."),
    ] = None,
    timeline: Annotated[
        Path | None,
        typer.Option("--timeline", help="Write what was in use over time (.csv or .json)."),
    ] = None,
    nodes: Nodes = None,
    pods: Pods = None,
    node_order: NodeOrder = "shuffled",
    tier: TierName = None,
    hold_limit: HoldLimit = None,
    max_holds: MaxHolds = None,
    max_rounds: MaxRounds = None,
    is_skipping_bad: SkipBad = False,
    is_ignoring_unknown: IgnoreUnknown = False,
    traces: TracesFolder = None,
    seeds: Seeds = None,
    jobs: Jobs = None,
    job_types: JobTypes = None,
    gpu_types: GpuTypes = None,
    noise: Noise = None,
    pair_spread: PairSpread = None,
    neighbours: Neighbours = None,
    plot: Plot = None,
    is_json: Json = False,
) -> None:
    """Runs one policy on one trace and prints what came of it.

    With the policy "online", the agent of `podium serve` learns from jobs with hidden run times.
    """
    flags = {
        "simulate.policy": policy,
        "simulate.trace": trace,
        "simulate.cluster": cluster,
        "simulate.protocol": protocol,
        "simulate.ratio": ratio,
        "simulate.load": load,
        "simulate.seed": seed,
        "simulate.hold_limit": hold_limit,
        "simulate.max_holds": max_holds,
        "simulate.max_rounds": max_rounds,
        "compile.tier": tier,
        "traces.folder": traces,
    }
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)
    wishes = simulate_online.Wishes(
        seeds, jobs, job_types, gpu_types, noise, pair_spread, neighbours, plot
    )
    if simulate_online.is_meant(ctx, settings, wishes):
        found = simulate_online.run(screen, settings, wishes)
        return print_json(found) if is_json else show_online.show(screen, found)

    from podium.cli.case import Inputs, load_case, named_policy
    from podium.cli.watch import inform, run_watched
    from podium.reports.summary import summarise

    inputs = Inputs(orders, nodes, pods, is_skipping_bad, node_order)
    writers = _writers(placements, timeline)
    chosen = named_policy(
        settings.simulate.policy,
        place_of(settings, "simulate.policy"),
        is_ignoring_unknown=is_ignoring_unknown,
    )
    case = load_case(settings, inputs)
    notes = [*case.notes, *chosen.notes]
    inform(screen, notes)
    result = run_watched(screen, case, chosen)
    figures_found = summarise(result)
    for write, path, what in writers:
        screen.note(f"wrote {write(result, path):,} {what} to {path}")
    if is_json:
        print_json({**figures_found, "notes": notes})
    else:
        show(screen, figures_found)


def _writers(placements: Path | None, timeline: Path | None) -> list[tuple[Writer, Path, str]]:
    """Lists what is to be written, and refuses what cannot be before the run begins."""
    from podium.reports import placement_table, timeline_table
    from podium.reports.target import checked_target

    found: list[tuple[Writer, Path, str]] = []
    if placements is not None and placements == timeline:
        raise UsageError(
            "placements and timeline would be one file",
            where=str(timeline),
            hint="name two files",
        )
    if placements is not None:
        placement_table.check_placements(placements)
        found.append((placement_table.write_placements, placements, "placements"))
    if timeline is not None:
        checked_target(timeline, timeline_table.SUFFIXES)
        found.append((timeline_table.write_timeline, timeline, "moments"))
    return found


def show(screen: Screen, found: dict[str, Any]) -> None:
    """Prints a run's summary for people."""
    screen.fields(
        {
            "policy": found["policy"],
            "trace": f"{found['trace']} on {found['cluster']}, {found['protocol']}, "
            f"seed {found['seed']}",
            "cluster": f"{figures.counted(found['nodes'], 'node')}, "
            f"{figures.counted(found['gpus'], 'GPU')}",
            "pods": f"{found['pods']:,}: {found['placed']:,} placed, "
            f"{found['unplaced']:,} unplaced, {found['held']:,} held",
            "GPU allocation": figures.percent(found["gpu_allocation"]),
            "CPU allocation": figures.percent(found["cpu_allocation"]),
            "memory allocation": figures.percent(found["memory_allocation"]),
            "fragmentation": f"{figures.percent(found['fragmentation'])} of all GPUs",
            **_waiting(found),
            **_loads(found),
            "decisions": f"{found['decisions']:,} in {figures.duration(found['wall_s'])} "
            f"({found['tier']})",
            "digest": found["digest"],
        }
    )


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
