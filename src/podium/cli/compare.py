"""Ranks several policies over several seeds."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.group import new_app
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.simulate import (
    ClusterName,
    IgnoreUnknown,
    Load,
    NodeOrder,
    Nodes,
    Orders,
    Pods,
    ProtocolName,
    Ratio,
    SkipBad,
    TraceName,
)
from podium.errors import UsageError

if TYPE_CHECKING:
    from podium.cli.case import Inputs
    from podium.policies import Policy
    from podium.reports.comparison import Comparison
    from podium.settings import Settings

app = new_app()

DEFAULT_POLICIES = ("fgd", "best-fit", "first-fit", "worst-fit", "kube-default", "random")
FRACTIONS = ("gpu_allocation", "fragmentation")


@app.command()
def compare(
    ctx: typer.Context,
    policies: Annotated[
        list[str] | None, typer.Argument(help="Policies by name or file.", show_default=False)
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds: 1000-1004 or 1,5,9.")] = "1000-1004",
    metric: Annotated[
        str | None, typer.Option("--metric", help="What to rank by.", show_default=False)
    ] = None,
    trace: TraceName = None,
    cluster: ClusterName = None,
    protocol: ProtocolName = None,
    ratio: Ratio = None,
    load: Load = None,
    orders: Orders = None,
    nodes: Nodes = None,
    pods: Pods = None,
    node_order: NodeOrder = "shuffled",
    jobs: Annotated[int, typer.Option("--jobs", help="Threads; 0 = all cores.", min=0)] = 0,
    is_skipping_bad: SkipBad = False,
    is_ignoring_unknown: IgnoreUnknown = False,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Ranks policies by mean, with confidence intervals and a paired test."""
    flags = {
        "simulate.trace": trace,
        "simulate.cluster": cluster,
        "simulate.protocol": protocol,
        "simulate.ratio": ratio,
        "simulate.load": load,
        "traces.folder": traces,
    }
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)

    from podium.cli.case import Inputs
    from podium.policies import load as load_policy

    inputs = Inputs(orders, nodes, pods, is_skipping_bad, node_order)
    chosen = [
        load_policy(name, ignore_unknown_plugins=is_ignoring_unknown)
        for name in policies or DEFAULT_POLICIES
    ]
    found = run_all(screen, settings, inputs, chosen, read_seeds(seeds), jobs)
    from podium.reports.comparison import METRICS, compare

    ranked_by = metric or ("wait_mean_s" if _is_replay(found) else "gpu_allocation")
    if ranked_by not in METRICS:
        raise UsageError(f'unknown metric "{ranked_by}"', hint=f"one of {', '.join(METRICS)}")
    holding = frozenset(policy.name for policy in chosen if policy.may_hold)
    comparison = compare(found, ranked_by, holding)
    if is_json:
        print_json(
            {"comparison": comparison, "runs": [run for runs in found.values() for run in runs]}
        )
    else:
        show(screen, comparison, found)


def run_all(
    screen: Screen, settings: Settings, inputs: Inputs, policies: list[Policy], seeds: list[int],
    jobs: int,
) -> dict[str, list[dict[str, Any]]]:  # fmt: skip
    """Runs every policy on every seed, in threads; gives the summaries in order of seeds."""
    import os

    from podium.cli.case import load_case
    from podium.cli.watch import announce_compilation
    from podium.reports.summary import summarise
    from podium.sim import simulate

    announce_compilation(screen)
    found: dict[str, list[dict[str, Any]]] = {policy.name: [] for policy in policies}
    if len(found) < len(policies):
        raise UsageError("a policy is named twice", hint="give every policy once")
    with (
        screen.progress("simulating", len(policies) * len(seeds)) as advance,
        ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool,
    ):
        for seed in seeds:
            case = load_case(settings, inputs, seed)

            def run(policy: Policy, case: Any = case) -> dict[str, Any]:
                result = simulate(case.cluster, case.workload, policy, case.protocol, case.setup)
                return summarise(result)

            for policy, summary in zip(policies, pool.map(run, policies), strict=True):
                found[policy.name].append(summary)
                advance()
    return found


def read_seeds(text: str) -> list[int]:
    """Reads seeds such as 1000-1004 or 1,5,9."""
    try:
        seeds = list(_parts(text))
    except ValueError:
        raise UsageError(f'"{text}" is no list of seeds', hint="write 1000-1004 or 1,5,9") from None
    if not seeds or len(set(seeds)) < len(seeds):
        raise UsageError(f'"{text}" names no seed, or one twice', hint="write 1000-1004 or 1,5,9")
    return seeds


def _parts(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _is_replay(found: dict[str, list[dict[str, Any]]]) -> bool:
    return str(next(iter(found.values()))[0]["protocol"]) == "replay"


def show(screen: Screen, comparison: Comparison, found: dict[str, list[dict[str, Any]]]) -> None:
    """Prints the ranking for people."""
    is_fraction = comparison.metric in FRACTIONS
    write = figures.percent if is_fraction else figures.decimal
    rows = []
    for row in comparison.rows:
        runs = found[row.policy]
        rows.append(
            (
                row.rank,
                row.policy + (" (may hold)" if row.may_hold else ""),
                write(row.mean),
                f"{write(row.low)} .. {write(row.high)}",
                figures.MISSING if row.p_value is None else write(row.difference),
                figures.MISSING if row.p_value is None else figures.decimal(row.p_value, 4),
                figures.percent(_mean(runs, "gpu_allocation")),
                figures.percent(_mean(runs, "fragmentation")),
                figures.duration(_mean(runs, "wait_mean_s")),
            )
        )
    titles = ["#", "policy", comparison.metric, "95 % interval", f"vs {comparison.yardstick}", "p"]
    screen.table([*titles, "GPU", "fragmented", "mean wait"], rows)
    first = next(iter(found.values()))[0]
    screen.note(
        f"{first['trace']} on {first['cluster']}, {first['protocol']}, "
        f"{len(comparison.seeds)} seeds; p: paired sign-flip test against the best baseline"
    )


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return float(sum(run[name] for run in runs) / len(runs))
