"""Lists, shows and deletes runs that the store keeps."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.group import new_app
from podium.cli.options import Json, blaming, place_of, read_settings
from podium.cli.render import Screen, plain, print_json
from podium.cli.terminal import on_one_line
from podium.errors import MissingError, PodiumError, UsageError
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
    rows: list[dict[str, Any]] = []
    if not is_new(settings):
        with opened(settings) as kept:
            rows = [_listed(kept, run) for run in kept.runs.all(kind)]
            for damaged in kept.runs.damaged(kind):
                screen.note(f"{damaged}; podium runs delete removes it")
    if is_json:
        print_json(rows)
    elif rows:
        titles = ["run", "kind", "name", "status", "created", "candidates", "best fitness"]
        screen.table(titles, [_line(row) for row in rows])
    else:
        from podium.store.address import label_of, read_address

        label = label_of(read_address(settings.store.url))
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
            record = _standing(kept.runs.get(run))
        count = kept.candidates.count(record.id)
        found = kept.candidates.best(record.id, best)
    if is_json:
        print_json({**plain(record), "candidates": count, "best": found})
    else:
        _show(Screen(settings.display), record, count, found)


@app.command()
def delete(
    ctx: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Id of a run, or as much of it as no other has."),
    ] = None,
    are_failed: Annotated[
        bool, typer.Option("--failed", help="Delete every run that failed.")
    ] = False,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Deletes a run and its candidates from the store; its folder stays."""
    settings = read_settings(ctx, {"store.url": store})
    screen = Screen(settings.display)
    if (run is None) != are_failed:
        raise UsageError("name a run or give --failed, not both", where=PLACE)
    with opened(settings) as kept:
        chosen = [_found(kept, run)] if run is not None else _failed(kept)
        counts = [kept.candidates.count(record.id) for record in chosen]
        if not is_sure and chosen:
            _ask(chosen, sum(counts))
        for record in chosen:
            _delete(kept, record)
    if is_json:
        done = [_deleted(*each) for each in zip(chosen, counts, strict=True)]
        print_json(done[0] if run is not None else done)
        return
    for record, count in zip(chosen, counts, strict=True):
        print(f"deleted run {record.id} and {figures.counted(count, 'candidate')}")
        if record.folder:
            screen.note(f"its files stay in {record.folder}")
    if not chosen:
        screen.note("no run has failed")


def opened(settings: Settings, *, is_made: bool = False) -> Store:
    """Opens the store that the settings name; a file that is not there is made only on demand."""
    from podium.store import open_store

    with blaming(place_of(settings, "store.url")):
        file = _file(settings)
        if not is_made and file is not None and not _has_content(file):
            raise MissingError(
                f"there is no store at {file}",
                hint="look at the path in --store or PODIUM_STORE_URL; podium search run makes "
                "a store",
            )
        return open_store(settings.store.url)


def is_new(settings: Settings) -> bool:
    """Tells whether nobody has named a store, and nothing was kept in the usual one so far."""
    file = _file(settings)
    return file is not None and not file.exists() and settings.origins["store.url"] == "default"


def _file(settings: Settings) -> Path | None:
    from podium.store.address import file_of, read_address

    with blaming(place_of(settings, "store.url")):
        return file_of(read_address(settings.store.url))


def _has_content(file: Path) -> bool:
    # SQLite takes an empty file for a new database.
    return file.exists() and not (file.is_file() and file.stat().st_size == 0)


def _found(kept: Store, run: str) -> RunRecord:
    from podium.store import DamagedRow, RunRecord

    try:
        with blaming(PLACE):
            return kept.runs.get(run)
    except DamagedRow as damaged:  # what cannot be read can be deleted all the same
        return RunRecord(damaged.id, kind="", name="damaged", created_s=0.0)


def _failed(kept: Store) -> list[RunRecord]:
    from podium.store.records import FAILED

    return [record for record in kept.runs.all() if record.status == FAILED]


def _delete(kept: Store, record: RunRecord) -> None:
    """Deletes a run that no process works on."""
    from podium.store.run_folder import RunFolder

    folder = RunFolder(Path(record.folder)) if record.folder else None
    if folder is None or not folder.path.is_dir():
        kept.runs.delete(record.id)
        return
    folder.lock()
    try:
        kept.runs.delete(record.id)
    finally:
        folder.unlock()


def _deleted(record: RunRecord, count: int) -> dict[str, Any]:
    return {"deleted": record.id, "candidates": count, "folder": record.folder}


def _standing(record: RunRecord) -> RunRecord:
    from podium.store.run_status import status_of

    return replace(record, status=status_of(record))


def _ask(records: list[RunRecord], count: int) -> None:
    ids = " ".join(record.id for record in records)
    if not sys.stdin.isatty():
        advice = f"podium runs delete {ids if len(records) == 1 else '--failed'} --yes"
        raise UsageError("deleting a run is not asked for by accident", hint=advice)
    candidates = figures.counted(count, "candidate")
    what = f"run {ids} ({records[0].name}, {candidates})"
    if len(records) > 1:
        what = f"{len(records)} runs ({ids}; {candidates})"
    typer.confirm(on_one_line(f"Delete {what}?"), abort=True, err=True)


def _listed(kept: Store, run: RunRecord) -> dict[str, Any]:
    best = kept.candidates.best(run.id, 1)
    return {
        "id": run.id,
        "kind": run.kind,
        "name": run.name,
        "status": _standing(run).status,
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
            **_outside(record),
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


def _outside(record: RunRecord) -> dict[str, str]:
    """Says which programs and services a resumed run would use, as its own folder has it."""
    from podium.search.run.folder import PLAN, RunFolder
    from podium.search.run.plan import RunPlan
    from podium.search.run.trust import outside_work

    if not record.folder:
        return {}
    try:
        plan = RunPlan.from_object(RunFolder(Path(record.folder)).read(PLAN))
    except PodiumError:
        return {}
    found = outside_work(plan)
    return {"when resumed": "; ".join(found)} if found else {}


def _candidate_line(each: CandidateRecord) -> tuple[object, ...]:
    fitness = figures.decimal(each.fitness, 3)
    return (each.number, fitness, each.kind, each.source, each.complexity, each.may_hold)


def _short(value: object) -> object:
    import json

    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{seconds:g} s after 1970"
