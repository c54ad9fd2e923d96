"""Ranks several policies over several seeds."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.case_options import (
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
from podium.cli.group import WORK, new_app
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from podium.cli.case import Case, Inputs
    from podium.evaluation.comparison import Comparison, RankedPolicy
    from podium.policies import Policy
    from podium.settings import Settings

app = new_app()

DEFAULT_POLICIES = ("fgd", "best-fit", "first-fit", "worst-fit", "kube-default", "random")
FRACTIONS = ("gpu_allocation", "fragmentation")
TITLES = {
    "gpu_allocation": "GPU",
    "fragmentation": "fragmented",
    "placed": "placed",
    "wait_mean_s": "mean wait",
    "wait_p95_s": "p95 wait",
    "makespan_s": "makespan",
}
BESIDE = ("gpu_allocation", "fragmentation", "placed", "wait_mean_s")
"""What is shown beside the metric that ranks."""

NOBODY_WAITED = (
    "note: nobody waited, so that nothing is compared; --protocol inflation fills the cluster, "
    "--load N lets pods come N times as fast"
)
MOST_SEEDS = 10_000
_SEEDS = re.compile(r"\s*(\d{1,18})(?:-(\d{1,18}))?\s*")


@app.command()
@stoppable
def compare(
    ctx: typer.Context,
    policies: Annotated[
        list[str] | None,
        typer.Argument(metavar="POLICY", help="Policies by name or file.", show_default=False),
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="Seeds: 1000-1009 or 1,5,9.")] = "1000-1009",
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric", help="What to rank by: gpu_allocation, wait_mean_s, ...", show_default=False
        ),
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
    from podium.cli.watch import inform
    from podium.evaluation.comparison import METRICS, compare

    if metric is not None and metric not in METRICS:
        raise UnknownName.among("metric", metric, METRICS, where="flag --metric")
    inputs = Inputs(orders, nodes, pods, is_skipping_bad, node_order)
    chosen = load_all(policies or list(DEFAULT_POLICIES), is_ignoring_unknown)
    inform(screen, (f"{policy.name}: {note}" for policy in chosen for note in policy.notes))
    found = run_all(screen, settings, inputs, chosen, read_seeds(seeds), jobs)
    ranked_by = metric or ("wait_mean_s" if _is_replay(found) else "gpu_allocation")
    comparison = compare(found, ranked_by, _holding(screen, chosen, found))
    if is_json:
        print_json(
            {"comparison": comparison, "runs": [run for runs in found.values() for run in runs]}
        )
    else:
        show(screen, comparison, found)


def _holding(
    screen: Screen, policies: list[Policy], found: dict[str, list[dict[str, Any]]]
) -> frozenset[str]:
    """Names the policies that say they may hold pods, and those that did; the latter are noted."""
    from podium.cli.watch import inform
    from podium.reports.summary import hold_note

    notes = {policy.name: hold_note(policy, found[policy.name]) for policy in policies}
    inform(screen, (f"{name}: {note}" for name, note in notes.items() if note))
    return frozenset(each.name for each in policies if each.may_hold or notes[each.name])


def load_all(references: list[str], is_ignoring_unknown: bool) -> list[Policy]:
    """Loads policies to compare; those that share a name are called by their references."""
    from dataclasses import replace

    from podium.cli.case import named_policy

    if len(set(references)) < len(references):
        raise UsageError(
            "a policy is named twice", where="argument POLICY", hint="give every policy once"
        )
    loaded = [
        named_policy(each, "argument POLICY", is_ignoring_unknown=is_ignoring_unknown)
        for each in references
    ]
    names = [policy.name for policy in loaded]
    return [
        replace(policy, name=reference) if names.count(policy.name) > 1 else policy
        for policy, reference in zip(loaded, references, strict=True)
    ]


def run_all(
    screen: Screen, settings: Settings, inputs: Inputs, policies: list[Policy], seeds: list[int],
    jobs: int,
) -> dict[str, list[dict[str, Any]]]:  # fmt: skip
    """Runs every policy on every seed, in threads; gives the summaries in order of seeds."""
    from podium.cli.case import load_case
    from podium.cli.watch import announce_compilation, apart, cancelling, inform

    announce_compilation(screen)
    found: dict[str, list[dict[str, Any]]] = {policy.name: [] for policy in policies}
    noted: set[str] = set()
    with (
        screen.progress("simulating", len(policies) * len(seeds)) as advance,
        cancelling(ThreadPoolExecutor(jobs or os.cpu_count() or 1, WORK)) as pool,
        apart(),
    ):
        for seed in seeds:
            case = load_case(settings, inputs, seed)
            inform(screen, case.notes, noted)
            waiting = [pool.submit(_run, case, policy) for policy in policies]
            for policy, future in zip(policies, waiting, strict=True):
                found[policy.name].append(future.result())
                advance()
    return found


def _run(case: Case, policy: Policy) -> dict[str, Any]:
    from podium.cli.watch import advising
    from podium.reports.summary import summarise
    from podium.sim import simulate

    with advising(policy):
        result = simulate(case.cluster, case.workload, policy, case.protocol, case.setup)
    return summarise(result)


def read_seeds(text: str) -> list[int]:
    """Reads seeds such as 1000-1004 or 1,5,9."""
    ranges = [_SEEDS.fullmatch(part) for part in text.split(",")]
    bounds = [(int(each[1]), int(each[2] or each[1])) for each in ranges if each]
    if len(bounds) < len(ranges):
        raise _seeds_error(f'"{text}" is no list of seeds')
    if any(first > last for first, last in bounds):
        raise _seeds_error(f'"{text}" has a range that ends before it begins')
    if sum(last - first + 1 for first, last in bounds) > MOST_SEEDS:
        raise _seeds_error(f"more than {MOST_SEEDS:,} seeds")
    seeds = [seed for first, last in bounds for seed in range(first, last + 1)]
    if len(set(seeds)) < len(seeds):
        raise _seeds_error(f'"{text}" names a seed twice')
    return seeds


def _seeds_error(message: str) -> UsageError:
    return UsageError(message, where="flag --seeds", hint="write 1000-1009 or 1,5,9")


def _is_replay(found: dict[str, list[dict[str, Any]]]) -> bool:
    return str(next(iter(found.values()))[0]["protocol"]) == "replay"


def show(screen: Screen, comparison: Comparison, found: dict[str, list[dict[str, Any]]]) -> None:
    """Prints the ranking for people."""
    shown = BESIDE if _is_replay(found) else BESIDE[:-1]
    beside = [name for name in shown if name != comparison.metric]
    titles = ["#", "policy", TITLES[comparison.metric], "95 % interval"]
    titles += [f"vs {comparison.yardstick}", "p", *(TITLES[name] for name in beside)]
    rows = [
        (
            *_standing(comparison.metric, row),
            *(_written(name, _mean(found[row.policy], name)) for name in beside),
        )
        for row in comparison.rows
    ]
    screen.table(titles, rows)
    if _is_replay(found) and not any(run["waited"] for runs in found.values() for run in runs):
        screen.note(NOBODY_WAITED)
    first = next(iter(found.values()))[0]
    screen.note(
        f"{first['trace']} on {first['cluster']}, {first['protocol']}, "
        f"{figures.counted(len(comparison.seeds), 'seed')}; ranked by {comparison.metric}; "
        f"p: paired sign-flip test against {comparison.yardstick}"
    )


def _standing(metric: str, row: RankedPolicy) -> tuple[object, ...]:
    is_yardstick = row.p_value is None
    sign = "+" if row.difference > 0 else ""
    return (
        row.rank,
        row.policy + (" (may hold)" if row.may_hold else ""),
        _written(metric, row.mean),
        figures.Figure(f"{_written(metric, row.low)} .. {_written(metric, row.high)}"),
        None if is_yardstick else figures.Figure(f"{sign}{_written(metric, row.difference)}"),
        None if is_yardstick else figures.decimal(row.p_value, 4),
    )


def _written(metric: str, value: float) -> figures.Figure:
    if metric in FRACTIONS:
        return figures.percent(value)
    return figures.duration(value) if metric.endswith("_s") else figures.decimal(value, 1)


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return float(sum(run[name] for run in runs) / len(runs))
