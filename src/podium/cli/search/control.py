"""Shows what a search added to what people wrote: its best beside its controls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli import figures
from podium.cli.flags import with_blocks
from podium.cli.options import DumpOptions, Json, RunId, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search import options
from podium.cli.watch import watching
from podium.experiments.promote import PromotionRequest
from podium.experiments.promote import control as measure_control

if TYPE_CHECKING:
    from podium.evaluation.paired import Difference
    from podium.search.promotion.control import Comparison

_ORIGINS = {
    "found": "found: it beats the tuned seed beyond chance",
    "tuned": "tuned: it does not beat the tuned seed beyond chance, or people wrote its terms",
    "written": "written: it is a formula of people as they wrote it",
}


@with_blocks
def control(
    ctx: typer.Context,
    run: RunId,
    *,
    arm: Annotated[
        list[str] | None,
        typer.Option(
            "--arm", help="tuned or random; repeatable. [default: both]", show_default=False
        ),
    ] = None,
    seeds: options.ValidationSeeds = 20,
    trace: options.ValidationTraces = None,
    cluster: options.Cluster = None,
    load: options.Load = None,
    dump: DumpOptions,
    workers: options.Workers = None,
    place: options.PlaceOptions,
    is_json: Json = False,
) -> None:
    """Sets the best of a run beside tuned seeds and random drawing with as many evaluations."""
    settings = read_settings(ctx, {**place.settings(), **dump.settings()})
    screen = Screen(settings.display)
    request = PromotionRequest(
        run, seeds=seeds, traces=tuple(trace or ()), cluster=cluster, load=load, jobs=workers or 0
    )
    with watching(screen) as listener:
        found = measure_control(settings, request, arm or (), listener)
    if is_json:
        print_json(found.as_object())
        return
    screen.fields(
        {
            "run": found.run,
            "best": f"candidate #{found.candidate}, fitness {figures.decimal(found.fitness, 3)}",
            "evaluations": f"{found.evaluations:,}",
            "origin": origin_words(found.origin) if found.origin else "only --arm tuned tells",
        }
    )
    print()
    show_controls(screen, found.comparisons, f"candidate #{found.candidate}")


def origin_words(origin: str) -> str:
    """Says what an origin means."""
    return _ORIGINS[origin]


def show_controls(screen: Screen, beside: Sequence[Comparison], name: str) -> None:
    """Prints a policy beside the best of each arm; a plus is better, whatever is measured."""
    if not beside:
        return
    from podium.search.promotion.card import FIGURE_NAMES

    figure, unit = FIGURE_NAMES[beside[0].figure]
    titles = ["policy", "made of", "evaluations", "training", "held out", f"lead of {name}", "p",
              "at 100 %", "runs"]  # fmt: skip
    none = figures.Figure("")
    own = (name, "", none, none, figures.decimal(beside[0].own, 2), none, none, none, "")
    screen.table(titles, [own, *(_line(each) for each in beside)])
    print()
    screen.note(f"held out: {figure} ({unit})")


def _line(each: Comparison) -> tuple[object, ...]:
    control = each.control
    return (
        control.title, control.source, figures.count(control.evaluations),
        figures.decimal(control.fitness, 3), figures.decimal(each.its, 2),
        _lead(each.lead), figures.decimal(each.p_value, 4), _lead(each.lead_100),
        " ".join(control.runs),
    )  # fmt: skip


def _lead(lead: Difference | None) -> figures.Figure:
    if lead is None:
        return figures.Figure(figures.MISSING)
    return figures.Figure(f"{lead.mean:+.2f} [{lead.low:+.2f}, {lead.high:+.2f}]")
