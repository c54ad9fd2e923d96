"""Lists, shows and deletes runs that the store keeps."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.group import new_app
from podium.cli.options import Json, blaming, place_of, read_settings
from podium.cli.render import Screen, plain, print_json
from podium.cli.terminal import on_one_line
from podium.errors import UsageError
from podium.settings import Settings

if TYPE_CHECKING:
    from podium.store import CandidateRecord, RunRecord, Store

app = new_app("Lists, shows and deletes runs that the store keeps.")

RunId = Annotated[
    str, typer.Argument(metavar="RUN", help="Id of a run, or as much of it as no other has.")
]
StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="Database: a file or an address.", show_default=False),
]
PLACE = "argument RUN"


@app.command("list")
def list_runs(
    ctx: typer.Context,
    kind: Annotated[
        str | None, typer.Option("--kind", help="Only runs of this kind.", show_default=False)
    ] = None,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Lists the runs, the newest first."""
    settings = read_settings(ctx, {"store.url": store})
    screen = Screen(settings.display)
    with opened(settings) as kept:
        rows = [_listed(kept, run) for run in kept.runs.all(kind)]
        label = kept.label
    if is_json:
        print_json(rows)
    elif rows:
        titles = ["run", "kind", "name", "status", "created", "candidates", "best fitness"]
        screen.table(titles, [_line(row) for row in rows])
    else:
        screen.note(f"{label} holds no runs{f' of kind {kind}' if kind else ''}")


@app.command()
def show(
    ctx: typer.Context,
    run: RunId,
    best: Annotated[
        int, typer.Option("--best", help="How many of the fittest candidates.", min=0)
    ] = 10,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Shows what a run was asked for, how far it came, and its best candidates."""
    settings = read_settings(ctx, {"store.url": store})
    with opened(settings) as kept:
        with blaming(PLACE):
            record = kept.runs.get(run)
        count = kept.candidates.count(record.id)
        found = kept.candidates.best(record.id, best)
    if is_json:
        print_json({**plain(record), "candidates": count, "best": found})
    else:
        _show(Screen(settings.display), record, count, found)


@app.command()
def delete(
    ctx: typer.Context,
    run: RunId,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Deletes a run and its candidates from the store; its folder stays."""
    settings = read_settings(ctx, {"store.url": store})
    screen = Screen(settings.display)
    with opened(settings) as kept:
        with blaming(PLACE):
            record = kept.runs.get(run)
        count = kept.candidates.count(record.id)
        if not is_sure:
            _ask(record, count)
        kept.runs.delete(record.id)
    if is_json:
        print_json({"deleted": record.id, "candidates": count, "folder": record.folder})
    else:
        print(f"deleted run {record.id} and {figures.counted(count, 'candidate')}")
        if record.folder:
            screen.note(f"its files stay in {record.folder}")


def opened(settings: Settings) -> Store:
    """Opens the store that the settings name."""
    from podium.store import open_store

    with blaming(place_of(settings, "store.url")):
        return open_store(settings.store.url)


def _ask(record: RunRecord, count: int) -> None:
    if not sys.stdin.isatty():
        advice = f"podium runs delete {record.id} --yes"
        raise UsageError("deleting a run is not asked for by accident", hint=advice)
    candidates = figures.counted(count, "candidate")
    asked = on_one_line(f"Delete run {record.id} ({record.name}, {candidates})?")
    typer.confirm(asked, abort=True, err=True)


def _listed(kept: Store, run: RunRecord) -> dict[str, Any]:
    best = kept.candidates.best(run.id, 1)
    return {
        "id": run.id,
        "kind": run.kind,
        "name": run.name,
        "status": run.status,
        "created_s": run.created_s,
        "folder": run.folder,
        "candidates": kept.candidates.count(run.id),
        "best_fitness": best[0].fitness if best else None,
    }


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    words = (row["id"], row["kind"], row["name"], row["status"], _moment(row["created_s"]))
    return (*words, row["candidates"], figures.decimal(row["best_fitness"], 3))


def _show(screen: Screen, record: RunRecord, count: int, best: list[CandidateRecord]) -> None:
    screen.fields(
        {
            "run": record.id,
            "kind": record.kind,
            "name": record.name,
            "status": record.status,
            "created": _moment(record.created_s),
            "folder": record.folder or None,
            "candidates": count,
        }
    )
    for title, values in (("settings", record.settings), ("summary", record.summary)):
        if values:
            print(f"\n{title}")
            screen.fields({f"  {name}": _short(value) for name, value in values.items()})
    if best:
        print()
        titles = ["candidate", "fitness", "kind", "source", "complexity", "may hold"]
        screen.table(titles, [_candidate_line(each) for each in best])


def _candidate_line(each: CandidateRecord) -> tuple[object, ...]:
    fitness = figures.decimal(each.fitness, 3)
    return (each.number, fitness, each.kind, each.source, each.complexity, each.may_hold)


def _short(value: object) -> object:
    import json

    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _moment(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
