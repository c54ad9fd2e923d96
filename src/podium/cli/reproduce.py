"""Reproduces published experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.group import new_app
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.signals import stoppable
from podium.cli.watch import watching

if TYPE_CHECKING:
    from podium.reports.beside_fgd import Comparison, Row
    from podium.reports.fgd_experiment import Outcome
    from podium.reports.funsearch_experiment import TwoViews

app = new_app(__doc__)


@app.command()
@stoppable
def fgd(
    ctx: typer.Context,
    orders: Annotated[
        Path | None,
        typer.Option("--orders", help="Folder of TRACE.jsonl.gz [default: TRACES/protocol]."),
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option("--published", help="Published results [default: TRACES/published.csv]."),
    ] = None,
    trace: Annotated[
        list[str] | None, typer.Option("--trace", help="Only these traces, such as default.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            help="Only these published policies, such as fgd; or any others, by name or file, to "
            "compare with the published FGD: for reports only, do not tune on these seeds.",
        ),
    ] = None,
    is_complete: Annotated[bool, typer.Option("--all-seeds", help="One row per seed.")] = False,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Reproduces the FGD experiments.

    Runs the published policies on the published orders; exits with 1 when a figure differs by
    more than 0.01 points. Policies that were never published are compared with the published FGD.
    Its seeds, 42 to 51, are test seeds: report on them, never tune or choose a policy on them.
    """
    settings = read_settings(ctx, {"traces.folder": traces})
    screen = Screen(settings.display)

    from podium.experiments import published as experiments
    from podium.reports.fgd_experiment import Selection, read_published

    folder = experiments.original_folder(settings)
    known = read_published(published or folder / "published.csv")
    material = experiments.Material(known, orders or folder / "protocol")
    chosen = Selection(tuple(trace or ()), tuple(policy or ()))
    rivals = experiments.rivals_among(chosen.policies, known)
    if rivals:
        with watching(screen) as listener:
            found = experiments.compare_with_fgd(
                settings, material, rivals, chosen.traces, listener
            )
        _show_rivals(screen, found, is_json=is_json)
        return
    with watching(screen) as listener:
        outcomes = experiments.repeat_fgd(settings, material, chosen, listener)
    if is_json:
        print_json([_object(outcome) for outcome in outcomes])
    else:
        _show_fgd(screen, outcomes, is_complete=is_complete)
    _judge(screen, outcomes)


def _show_rivals(screen: Screen, found: list[Comparison], *, is_json: bool) -> None:
    if is_json:
        print_json([each.as_object() for each in found])
    for index, each in enumerate(found):
        if not is_json:
            print("\n" if index else "", end="")
            _show_comparison(screen, each)
        screen.note(each.verdict())


def _show_comparison(screen: Screen, found: Comparison) -> None:
    """Prints a row for each trace, then the means."""
    from podium.reports.beside_fgd import mean_row

    named = found.named
    means = [mean_row(named, f"mean of {len(named)} named")] if named else []
    means.append(mean_row(found.rows, f"mean of all {len(found.rows)}"))
    titles = ["trace", "100 % ours", "FGD", "difference", "130 % ours", "FGD", "difference"]
    titles += ["frag ours", "FGD", "may hold", "held"]
    print(f"{found.policy} beside the published FGD:")
    screen.table(titles, [_cells(row, may_hold=found.may_hold) for row in (*found.rows, *means)])


def _cells(row: Row, *, may_hold: bool) -> tuple[object, ...]:
    cells: list[figures.Figure] = []
    for column in ("alloc_100", "alloc_130"):
        cells += [figures.decimal(row.ours[column]), figures.decimal(row.published[column])]
        cells.append(_signed(row.difference(column)))
    fragments = [row.ours["frag_130"], row.published["frag_130"]]
    return (row.name, *cells, *map(figures.decimal, fragments), may_hold, row.held)


def _signed(points: float) -> figures.Figure:
    text = figures.decimal(points)
    return text if text == figures.MISSING or points < 0 else figures.Figure(f"+{text}")


def _judge(screen: Screen, outcomes: list[Outcome]) -> None:
    """Prints how many runs match the published ones; exits with 1 if one does not."""
    from podium.reports.fgd_experiment import NOT_REPRODUCIBLE, TOLERANCE

    judged = [each for each in outcomes if each.experiment.policy not in NOT_REPRODUCIBLE]
    reproduced = sum(each.is_reproduced for each in judged)
    verdict = f"{reproduced} of {len(judged)} deterministic runs within {TOLERANCE} points at "
    drawn = "; random differs by design" if len(judged) < len(outcomes) else ""
    screen.note(f"{verdict}100 % and 130 %{drawn}")
    if reproduced < len(judged):
        raise typer.Exit(1)


def _object(outcome: Outcome) -> dict[str, object]:
    run = outcome.experiment
    return {
        "trace": run.trace,
        "policy": run.policy,
        "seed": run.seed,
        "ours": outcome.ours,
        "published": outcome.published,
        "difference": outcome.largest_difference,
        "ok": outcome.is_reproduced,
    }


def _show_fgd(screen: Screen, outcomes: list[Outcome], *, is_complete: bool) -> None:
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in outcomes:
        run = outcome.experiment
        key = (run.trace, run.policy, str(run.seed) if is_complete else "all")
        groups.setdefault(key, []).append(outcome)
    rows = [(*key, *_means(group)) for key, group in groups.items()]
    titles = ["trace", "policy", "seed", "100 % ours", "published", "130 % ours", "published"]
    screen.table([*titles, "frag ours", "published", "largest diff"], rows)


def _means(group: list[Outcome]) -> list[figures.Figure]:
    cells = []
    for column in ("alloc_100", "alloc_130", "frag_130"):
        for side in ("ours", "published"):
            values = [getattr(outcome, side)[column] for outcome in group]
            cells.append(figures.decimal(sum(values) / len(values)))
    return [*cells, figures.decimal(max(outcome.largest_difference for outcome in group))]


@app.command()
@stoppable
def funsearch(
    ctx: typer.Context,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            help="Only these: rows of the table by their names there, or any others, by name or "
            "file; repeatable.",
        ),
    ] = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Reproduces the FunSearch table.

    Shows its policies, or others, under its own rules and under Podium's, with waiting times.
    """
    settings = read_settings(ctx, {"traces.folder": traces})
    screen = Screen(settings.display)

    from podium.experiments.published import repeat_funsearch

    with watching(screen) as listener:
        views = repeat_funsearch(settings, policy or (), listener)
    if is_json:
        print_json(
            [{"policy": v.policy, "compatible": v.compatible, "true": v.true} for v in views]
        )
    else:
        _show_funsearch(screen, views)


def _show_funsearch(screen: Screen, views: list[TwoViews]) -> None:
    print("By the original's own rules (retries count as events; a share takes a whole GPU):")
    titles = ["policy", "CPU", "memory", "GPU count", "GPU milli", "frag", "score", "failed"]
    titles += ["without retries", "mean wait"]
    rows = []
    for view in views:
        seen = view.compatible
        shares = [
            figures.percent(share)
            for share in (seen.cpu, seen.memory, seen.gpu_count, seen.gpu_milli)
        ]
        numbers = [figures.decimal(seen.fragmentation, 4), figures.decimal(seen.score, 4)]
        served = figures.decimal(seen.score_without_retries, 4)
        waiting = (served, figures.duration(seen.wait_mean_s))
        rows.append((view.policy, *shares, *numbers, seen.failed_attempts, *waiting))
    screen.table(titles, rows)
    print()
    print("By Podium's rules (true sharing, FIFO queue, time-weighted use):")
    titles = ["policy", "GPU", "fragmented", "waited", "mean wait", "p99 wait", "max wait"]
    rows = [
        (
            view.policy,
            figures.percent(view.true["gpu_allocation"]),
            figures.percent(view.true["fragmentation"]),
            view.true["waited"],
            figures.duration(view.true["wait_mean_s"]),
            figures.duration(view.true["wait_p99_s"]),
            figures.duration(view.true["wait_max_s"]),
        )
        for view in views
    ]
    screen.table(titles, rows)
    print()
    print(
        "All pods finish, so the use of GPUs over time is nearly the same and cannot rank policies."
    )
    print("The original's score rises when pods fail and retry; waiting times tell them apart.")
