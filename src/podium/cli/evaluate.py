"""Evaluates policies against the usual ones on unseen seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.case_options import CaseOptions, Jobs, Metric
from podium.cli.flags import with_blocks
from podium.cli.group import new_app
from podium.cli.knowledge import knowledge_notes
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json, show_alike
from podium.cli.signals import stoppable
from podium.cli.watch import watching
from podium.experiments.compare import check_metric, read_seeds
from podium.experiments.settings_trial import (
    BASELINES,
    PROTOCOLS,
    UNSEEN_SEEDS,
    SettingTrial,
    TrialRequest,
    load_both,
)
from podium.experiments.settings_trial import evaluate as evaluate_policies

if TYPE_CHECKING:
    from podium.evaluation.comparison import Lead

app = new_app()


@app.command()
@stoppable
@with_blocks
def evaluate(
    ctx: typer.Context,
    *,
    policies: Annotated[
        list[str], typer.Argument(metavar="POLICY", help="Policies by name, file or run:RUN.")
    ],
    against: Annotated[
        list[str] | None,
        typer.Option("--against", help="Policy to compare with; repeatable.", show_default=False),
    ] = None,
    seeds: Annotated[
        str, typer.Option("--seeds", help="Seeds that nothing was trained on.")
    ] = UNSEEN_SEEDS,
    metric: Metric = None,
    case: CaseOptions,
    jobs: Jobs = 0,
    is_json: Json = False,
) -> None:
    """Evaluates policies against the usual ones on unseen seeds.

    Pods are offered in every way, unless --protocol names one; replayed only where all have run
    times. Differences are paired, with 95 % confidence intervals.
    """
    settings = read_settings(ctx, case.settings())
    screen = Screen(settings.display)
    check_metric(metric)
    protocols = (case.protocol,) if case.protocol else PROTOCOLS
    with watching(screen) as listener:
        chosen, others = load_both(policies, against or BASELINES)
        request = TrialRequest(chosen, others, read_seeds(seeds), protocols, metric, jobs)
        found = evaluate_policies(settings, case.inputs(), request, listener)
    if is_json:
        print_json([each.as_object() for each in found])
    for number, trial in enumerate([] if is_json else found):
        if number:
            print()
        _show(screen, trial)
    if all(each.comparison.alike for each in found):
        raise typer.Exit(1)


def _show(screen: Screen, trial: SettingTrial) -> None:
    ranking, metric = trial.comparison.ranking, trial.comparison.ranking.metric
    first, seeds = next(iter(trial.comparison.runs.values()))[0], len(ranking.seeds)
    print(f"{trial.protocol}: {first['trace']}, {figures.counted(seeds, 'seed')}, {metric}")
    if trial.comparison.alike:
        show_alike(screen, trial.comparison.alike)
        return
    rows, holding = [], {row.policy for row in ranking.rows if row.may_hold}
    for policy, leads in trial.leads.items():
        mean = trial.comparison.mean(policy, metric)
        for lead in leads:
            names = [
                f"{name} (may hold)" if name in holding else name for name in (policy, lead.other)
            ]
            rows.append(_line(names, mean, lead, metric))
    screen.table(
        ["policy", "mean", "against", "its mean", "difference", "95 % interval", "p"], rows
    )
    if ranking.repeated:
        screen.note(f"note: {ranking.repeated}")
    for note in knowledge_notes([runs[0] for runs in trial.comparison.runs.values()]):
        screen.note(note)


def _line(names: list[str], mean: float, lead: Lead, metric: str) -> tuple[object, ...]:
    gap = lead.difference
    ends = [figures.difference(metric, each) for each in (gap.low, gap.high) if each is not None]
    return (
        names[0],
        figures.measured(metric, mean),
        names[1],
        figures.measured(metric, lead.mean),
        figures.difference(metric, gap.mean),
        figures.Figure(" .. ".join(ends)) if ends else None,
        None if lead.p_value is None else figures.decimal(lead.p_value, 4),
    )
