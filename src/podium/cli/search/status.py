"""Shows the progress of a search from the store, while it runs or afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.options import Json, RunId, StoreUrl, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search.display import facts_of_summary, show_islands
from podium.experiments.places import blaming
from podium.experiments.runs import find_search, open_runs, standing

if TYPE_CHECKING:
    from podium.search.run.front import Front
    from podium.store import CandidateRecord, RunRecord, Store

MOST_ROWS = 20
"""How many candidates of all fronts together are shown; `--json` shows all."""

TITLES = {
    "allocation_130": "at 130 %", "allocation_100": "at 100 %", "fragmentation": "fragmented",
    "wait_mean_s": "mean wait", "wait_p95_s": "p95 wait",
    "fragmentation_arriving": "fragmented arriving", "complexity": "parts",
}  # fmt: skip


def status(
    ctx: typer.Context,
    run: RunId,
    has_front: Annotated[
        bool, typer.Option("--front", help="Show the Pareto front of all figures.")
    ] = False,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Shows the progress of a run and its best candidate."""
    settings = read_settings(ctx, {"store.url": store})
    with open_runs(settings) as kept:
        with blaming("argument RUN"):
            record = find_search(kept, run)
        number = record.summary.get("best")
        text = None if number is None else kept.candidates.get(record.id, number).text
        fronts = _fronts(kept, record) if has_front else None
    told: dict[str, Any] = {
        "run": record.id, "name": record.name, "status": standing(record).status,
        "folder": record.folder, **record.summary,
    }  # fmt: skip
    if is_json:
        front = {} if fronts is None else {"front": [each.as_object() for each in fronts]}
        print_json({**told, "text": text, **front})
        return
    screen = Screen(settings.display)
    screen.fields({"run": record.id, "name": record.name, "status": told["status"]})
    if not record.summary:
        screen.note("no batch has finished yet")
        return
    try:
        screen.fields(facts_of_summary(dict(record.summary)))
        show_islands(screen, dict(record.summary))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        from podium.store import DamagedRow

        raise DamagedRow.of("runs", record.id, "the summary is not that of a search") from error
    if fronts is not None:
        _show_fronts(screen, fronts)
    elif text:
        print()
        print(text.rstrip())


def _fronts(kept: Store, record: RunRecord) -> list[Front]:
    from podium.search.run.front import fronts_of

    return fronts_of(kept.candidates.of(record.id))


def _show_fronts(screen: Screen, fronts: list[Front]) -> None:
    """Prints the unbeaten candidates, then the best of each size."""
    names = list(dict.fromkeys(name for each in fronts for name in each.names))
    shown = [(each, record) for each, most in _shares(fronts) for record in each.shortened(most)]
    if not shown:
        screen.note("no candidate has been accepted yet, so there is no front")
        return
    print()
    titles = ["candidate", *(TITLES[name] for name in names), "fitness", "may hold", "source"]
    screen.table(titles, [_row(each, record, names) for each, record in shown])
    total = sum(len(each.records) for each in fronts)
    if total > len(shown):
        screen.note(f"{total - len(shown):,} more on the front; --json lists them")
    _show_sizes(screen, fronts)


def _shares(fronts: list[Front]) -> list[tuple[Front, int]]:
    """Divides the rows among the fronts; rows that one does not need go to the other."""
    counts = [len(each.records) for each in fronts]
    even = MOST_ROWS // max(1, len(fronts))
    spare = sum(max(0, even - count) for count in counts)
    return [
        (each, min(count, even if count <= even else even + spare))
        for each, count in zip(fronts, counts, strict=True)
    ]


def _row(front: Front, record: CandidateRecord, names: list[str]) -> tuple[object, ...]:
    values = front.figures(record)
    cells = [_cell(name, values[name]) if name in values else None for name in names]
    fitness = figures.decimal(record.fitness, 3)
    return (f"#{record.number}", *cells, fitness, record.may_hold, record.source)


def _cell(name: str, value: float) -> object:
    if name == "complexity":
        return int(value)
    return figures.duration(value) if name.endswith("_s") else figures.decimal(value)


def _show_sizes(screen: Screen, fronts: list[Front]) -> None:
    print()
    rows = [
        (f"#{each.number}", each.complexity, figures.decimal(each.fitness, 3), front.may_hold)
        for front in fronts
        for each in front.by_complexity[-MOST_ROWS:]
    ]
    screen.table(["best of its size", "parts", "fitness", "may hold"], rows)
