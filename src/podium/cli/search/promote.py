"""Promotes what a run found: reduces, validates on held-out cases, explains, writes a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.flags import with_blocks
from podium.cli.options import DumpOptions, Json, RunId, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search import options
from podium.cli.search.control import origin_words, show_controls
from podium.cli.terminal import on_one_line
from podium.cli.watch import watching
from podium.experiments.promote import PromotionRequest
from podium.experiments.promote import promote as promote_best

if TYPE_CHECKING:
    from podium.evaluation.paired import Difference
    from podium.evaluation.validation import GroupResults
    from podium.search.promotion.card import Standing
    from podium.search.promotion.promote import Outcome

INFLATION, REPLAY, FITNESS = "inflation", "replay", "fitness"


@with_blocks
def promote(
    ctx: typer.Context,
    run: RunId,
    *,
    best: Annotated[
        int, typer.Option("--best", help="Number of best candidates to nominate.", min=1)
    ] = 1,
    candidate: Annotated[
        list[int] | None,
        typer.Option(
            "--candidate", help="Nominate this candidate; repeatable.", show_default=False
        ),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--to", help="Folder for the policy and its card.")
    ] = Path(),
    name: Annotated[str, typer.Option("--name", help="Name of the policy.")] = "",
    summary: Annotated[
        str, typer.Option("--summary", help="One-line description of the policy.")
    ] = "",
    describe: Annotated[
        str,
        typer.Option(
            "--describe",
            help="What the policy does and why, in a sentence or two. "
            "[default: made of what it computes]",
            show_default=False,
        ),
    ] = "",
    seeds: options.ValidationSeeds = 20,
    trace: options.ValidationTraces = None,
    cluster: options.Cluster = None,
    load: options.Load = None,
    dump: DumpOptions,
    loss: Annotated[
        float, typer.Option("--loss", help="Fitness that a shorter formula may cost.", min=0)
    ] = 0.02,
    incumbent: Annotated[str, typer.Option("--incumbent", help="Policy to beat.")] = "fgd",
    workers: options.Workers = None,
    place: options.PlaceOptions,
    is_json: Json = False,
) -> None:
    """Validates the best of a run on held-out cases and writes the winners as policy files."""
    settings = read_settings(ctx, {**place.settings(), **dump.settings()})
    screen = Screen(settings.display)
    request = PromotionRequest(
        run, folder, best, tuple(candidate or ()), name, summary, describe, seeds,
        tuple(trace or ()), cluster, load, loss, incumbent, workers or 0,
    )  # fmt: skip
    with watching(screen) as listener:
        outcome = promote_best(settings, request, listener)
    if is_json:
        print_json(_object(outcome))
    else:
        _show(screen, outcome)
    if not outcome.files:
        raise typer.Exit(1)


def _object(outcome: Outcome) -> dict[str, Any]:
    return {
        "promoted": [str(path) for path in outcome.files],
        "promotions": [
            {
                "name": each.name, "accepted": each.accepted, "reasons": list(each.reasons),
                "gain": asdict(each.gain), "p_value": each.p_value, "may_hold": each.may_hold,
                "held": each.held[0], "decisions": each.held[1],
                **_standing(outcome.standings[each.name]),
                "table": [row.as_object() for row in each.table],
            }
            for each in outcome.promotions
        ],
        "refusals": [asdict(each) for each in outcome.refusals],
    }  # fmt: skip


def _standing(standing: Standing) -> dict[str, Any]:
    authorship = standing.authorship
    return {
        "origin": standing.origin,
        "authorship": None if authorship is None else authorship.as_object(),
        "control": [each.as_object() for each in standing.controls],
    }


def _show(screen: Screen, outcome: Outcome) -> None:
    from podium.evaluation.validation import own_parts

    for refusal in outcome.refusals:
        print(on_one_line(f"{refusal.name} was refused: {refusal.reason}"))
    for each in outcome.promotions:
        reduced = outcome.reduced[each.name]
        gain, standing = each.gain, outcome.standings[each.name]
        screen.fields(
            {
                "policy": each.name,
                "origin": origin_words(standing.origin),
                "promoted": each.accepted,
                "because": "; ".join(each.reasons),
                "gain": f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]",
                "p": figures.decimal(each.p_value, 4),
                "holds": each.holds,
                "parts": f"{reduced.size_before} reduced to {reduced.size}",
                **_authorship(standing),
            }
        )
        print()
        show_controls(screen, standing.controls, each.name)
        _show_tables(screen, each.table)
        for told in own_parts(each.table):
            screen.note(told)
    for path in outcome.files:
        print(f"written: {path} and {path.with_suffix('.json').name}")


def _authorship(standing: Standing) -> dict[str, object]:
    """Says what people wrote of a policy, and what the search added."""
    authorship = standing.authorship
    if authorship is None:
        return {}
    others = [each for each in authorship.ingredients if each != authorship.seed]
    wrote = [authorship.title] if authorship.seed else []
    wrote += [authorship.lent] if authorship.lent else []
    wrote += [figures.counted(len(others), "other ingredient")] if others else []
    return {
        "people wrote": " and ".join(wrote) or "no part of it",
        "search added": "; ".join(authorship.added) or "no term",
    }


def _show_tables(screen: Screen, table: Sequence[GroupResults]) -> None:
    """Prints the measurements by protocol; a plus means better than the other policy."""
    aimed = [row for row in table if FITNESS in row.means]
    replays = [row for row in table if row.group.protocol == REPLAY]
    others = [row for row in table if row.group.protocol == INFLATION]
    if aimed:
        titles = ["held-out case", "seen", "fitness"]
        titles += [f"over {name}" for name in aimed[0].differences]
        screen.table(titles, [_line(row, (FITNESS,)) for row in aimed])
        print()
    if others:
        titles = ["held-out case", "seen", "at 100 %", "at 130 %"]
        titles += [f"over {name}" for name in others[0].differences]
        screen.table(titles, [_line(row, ("allocation_100", "allocation_130")) for row in others])
        print()
    if replays:
        titles = ["held-out case", "seen", "p95 wait (s)", "mean wait (s)"]
        titles += [f"shorter than {name} (s)" for name in replays[0].differences]
        screen.table(titles, [_line(row, ("wait_p95_s", "wait_mean_s"), -1) for row in replays])
        print()


def _line(row: GroupResults, keys: tuple[str, ...], sign: int = 1) -> tuple[object, ...]:
    gains = [each[keys[-1]] for each in row.differences.values()]
    return (
        row.group.name, row.is_trained_on, *(figures.decimal(row.means[key], 2) for key in keys),
        *(_gain(each, sign) for each in gains),
    )  # fmt: skip


def _gain(gain: Difference, sign: int) -> figures.Figure:
    low, high = sorted((sign * gain.low, sign * gain.high))
    return figures.Figure(f"{sign * gain.mean:+.2f} [{low:+.2f}, {high:+.2f}]")
