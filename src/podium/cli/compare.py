"""Ranks several policies over several seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.case_options import CaseOptions, Jobs, Metric
from podium.cli.completion import policies as names
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.knowledge import knowledge_notes
from podium.cli.options import Json, Save, StoreUrl, kept_note, read_settings, typed_command
from podium.cli.render import Screen, print_json, show_alike
from podium.cli.signals import stoppable
from podium.cli.watch import inform, watching
from podium.experiments.compare import (
    DEFAULT_POLICIES,
    DEFAULT_SEEDS,
    ComparisonRequest,
    PolicyComparison,
    check_metric,
    load_policies,
    read_seeds,
)
from podium.experiments.compare import (
    compare as compare_policies,
)
from podium.experiments.runs import Keeping, check_keeping, keep_comparison

if TYPE_CHECKING:
    from podium.evaluation.comparison import RankedPolicy

app = new_app()

TITLES = {
    "gpu_allocation": "GPU",
    "fragmentation": "fragmented",
    "placed": "placed",
    "wait_mean_s": "mean wait",
    "wait_p95_s": "p95 wait",
    "makespan_s": "makespan",
}
BESIDE = ("gpu_allocation", "fragmentation", "placed", "wait_mean_s")
"""The metrics that are shown besides the one that ranks."""


@app.command()
@stoppable
@with_blocks
def compare(
    ctx: typer.Context,
    *,
    policies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="POLICY",
            help="Policies by name or file.",
            show_default=False,
            autocompletion=names,
        ),
    ] = None,
    seeds: Annotated[
        str, typer.Option("--seeds", help="Seeds: 1000-1009 or 1,5,9.")
    ] = DEFAULT_SEEDS,
    metric: Metric = None,
    case: CaseOptions,
    jobs: Jobs = 0,
    save: Save = None,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Ranks several policies over several seeds.

    Means come with confidence intervals and a paired test.
    """
    settings = read_settings(ctx, {**case.settings(), "store.url": store})
    screen, inputs = Screen(settings.display), case.inputs()
    check_metric(metric)
    if save is not None:
        check_keeping(settings, save)
    with watching(screen) as listener:
        chosen = load_policies(
            policies or DEFAULT_POLICIES, is_ignoring_unknown=case.is_ignoring_unknown
        )
        request = ComparisonRequest(chosen, read_seeds(seeds), metric, jobs)
        found = compare_policies(settings, inputs, request, listener)
    if save is not None:
        keeping = Keeping(save, typed_command())
        screen.note(kept_note(keep_comparison(settings, inputs, request, found, keeping)))
    if is_json:
        print_json(found.as_object())
    elif found.alike:
        show_alike(screen, found.alike)
    else:
        show(screen, found)
    if not is_json:
        inform(screen, filter(None, [found.untried]))
    if found.alike:
        raise typer.Exit(1)


def show(screen: Screen, found: PolicyComparison) -> None:
    """Prints the ranking for people."""
    ranking, is_replay = found.ranking, found.is_replay
    shown = BESIDE if is_replay else BESIDE[:-1]
    beside = [name for name in shown if name != ranking.metric]
    titles = ["#", "policy", TITLES[ranking.metric], "95 % interval"]
    titles += [f"vs {ranking.yardstick}", "p", *(TITLES[name] for name in beside)]
    rows = [
        (
            *_standing(ranking.metric, ranking.yardstick, row),
            *(figures.measured(name, found.mean(row.policy, name)) for name in beside),
        )
        for row in ranking.rows
    ]
    screen.table(titles, rows)
    first = next(iter(found.runs.values()))[0]
    if len(ranking.seeds) == 1 and len(ranking.rows) > 1:
        told = f"one seed, {ranking.seeds[0]}, tells nothing of chance"
        screen.note(f"note: {told}: --seeds {DEFAULT_SEEDS} are ten")
    if ranking.repeated:
        screen.note(f"note: {ranking.repeated}")
    if "bound" in first:
        pods = figures.counted(first["pods"], "pod")
        screen.note(f"note: {first['bound']:,} of {pods} already running, and not counted")
    for note in knowledge_notes([runs[0] for runs in found.runs.values()]):
        screen.note(note)
    is_tested = not ranking.repeated or any(row.p_value is not None for row in ranking.rows)
    test = f"; p: paired sign-flip test against {ranking.yardstick}" if is_tested else ""
    screen.note(
        f"trace {first['trace']}, cluster {first['cluster']}, {first['protocol']}, "
        f"{figures.counted(len(ranking.seeds), 'seed')}; ranked by {ranking.metric}{test}"
    )


def _standing(metric: str, yardstick: str, row: RankedPolicy) -> tuple[object, ...]:
    return (
        row.rank,
        row.policy + (" (may hold)" if row.may_hold else ""),
        figures.measured(metric, row.mean),
        _interval(metric, row),
        None if row.policy == yardstick else figures.difference(metric, row.difference),
        None if row.p_value is None else figures.decimal(row.p_value, 4),
    )


def _interval(metric: str, row: RankedPolicy) -> figures.Figure | None:
    if row.low is None or row.high is None:
        return None
    low, high = (figures.measured(metric, each) for each in (row.low, row.high))
    return figures.Figure(f"{low} .. {high}")
