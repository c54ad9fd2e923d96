"""Shows the progress of a search from the store, while it runs or afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli.options import Json, RunId, StoreUrl, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search.display import facts_of_summary, show_islands
from podium.cli.search.front import show_fronts
from podium.experiments.places import blaming
from podium.experiments.runs import find_search, open_runs, standing

if TYPE_CHECKING:
    from podium.search.run.front import Front
    from podium.store import RunRecord, Store


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
        show_fronts(screen, fronts)
    elif text:
        print()
        print(text.rstrip())


def _fronts(kept: Store, record: RunRecord) -> list[Front]:
    from podium.search.run.front import fronts_of

    return fronts_of(kept.candidates.of(record.id))
