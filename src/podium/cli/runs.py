"""Lists, shows, compares and deletes stored runs."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.group import new_app
from podium.cli.options import Json, RunId, StoreUrl, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.terminal import on_one_line
from podium.errors import UnknownName, UsageError
from podium.experiments import runs as experiments
from podium.experiments.places import blaming
from podium.experiments.plain import plain

if TYPE_CHECKING:
    from podium.experiments.runs import RunDiff
    from podium.search.run.lineage import Step
    from podium.store import CandidateRecord, RunRecord, Store

app = new_app(__doc__)

PLACE = "argument RUN"
LONGEST_CELL = 60
"""Characters of an input that are shown; `--json` shows them all."""

DIGEST_CHARACTERS = 12
"""Characters of a digest that tell two apart at a glance; `--json` has them all."""

_DIGEST = re.compile(r"[0-9a-f]{64}")


@app.command("list")
def list_runs(
    ctx: typer.Context,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="Only runs of this kind: search, simulation, comparison, training.",
            show_default=False,
        ),
    ] = None,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Lists the runs, the newest first."""
    settings = read_settings(ctx, {"store.url": store})
    screen = Screen(settings.display)
    rows: list[dict[str, Any]] = []
    if not experiments.is_new(settings):
        with experiments.open_runs(settings) as opened:
            _check_kind(kind, opened)
            rows = [_listed(opened, run) for run in opened.runs.all(kind)]
            for damaged in opened.runs.damaged(kind):
                screen.note(f"{damaged}; podium runs delete removes it")
    else:
        _check_kind(kind)
    if is_json:
        print_json(rows)
    elif rows:
        _show_list(screen, rows)
    else:
        from podium.store.address import label_of, read_address

        label = label_of(read_address(settings.store.url))
        screen.note(f"{label} contains no runs{f' of kind {kind}' if kind else ''}")


@app.command()
def show(
    ctx: typer.Context,
    run: RunId,
    best: Annotated[
        int, typer.Option("--best", help="Number of best candidates to show.", min=0)
    ] = 10,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Shows the inputs, the progress, the best candidates of a run and how they came about."""
    settings = read_settings(ctx, {"store.url": store})
    with experiments.open_runs(settings) as opened:
        record = experiments.standing(_found(opened, run))
        count = opened.candidates.count(record.id)
        found = experiments.best_candidates(opened, record, best)
        lineage = _lineage(opened, record, found)
    if is_json:
        print_json({**plain(record), "candidates": count, "best": found})
    else:
        _show(Screen(settings.display), record, count, found)
        _show_lineage(Screen(settings.display), lineage)


@app.command()
def diff(
    ctx: typer.Context,
    first: Annotated[str, typer.Argument(metavar="A", help="A run, by id or name.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another run of the same kind.")],
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Compares two runs of one kind: the inputs that differ, and every figure."""
    settings = read_settings(ctx, {"store.url": store})
    with experiments.open_runs(settings) as opened:
        records = [
            _found(opened, each, f"argument {name}") for each, name in ((first, "A"), (second, "B"))
        ]
    found = experiments.diff(*records)
    if is_json:
        print_json(found.as_object())
    else:
        _show_diff(Screen(settings.display), found)


@app.command()
def delete(
    ctx: typer.Context,
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="Id of a run, a unique prefix of it, or its name."),
    ] = None,
    are_failed: Annotated[
        bool, typer.Option("--failed", help="Delete every run that failed.")
    ] = False,
    is_sure: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    store: StoreUrl = None,
    is_json: Json = False,
) -> None:
    """Deletes a run and its candidates from the store; its folder stays."""
    settings = read_settings(ctx, {"store.url": store})
    screen = Screen(settings.display)
    if (run is None) != are_failed:
        raise UsageError(
            "no run is named" if run is None else "a run and --failed exclude each other",
            where=PLACE,
            hint="name a run or give --failed to delete all that failed; podium runs list shows "
            "the runs there are",
        )
    with experiments.open_runs(settings) as opened:
        chosen = [_deletable(opened, run)] if run is not None else _failed(opened)
        counts = [opened.candidates.count(record.id) for record in chosen]
        if not is_sure and chosen:
            _ask(chosen, sum(counts))
        for record in chosen:
            experiments.delete(opened, record)
    if is_json:
        done = [_deleted(*each) for each in zip(chosen, counts, strict=True)]
        print_json(done[0] if run is not None else done)
    else:
        _show_deleted(screen, chosen, counts)


def _lineage(opened: Store, record: RunRecord, best: list[CandidateRecord]) -> list[Step]:
    """Follows the best candidate of a search back to where it began."""
    if not best or not best[0].parents:
        return []
    from podium.search.run.lineage import lineage_of

    number = record.summary.get("best")
    chosen = number if isinstance(number, int) else best[0].number
    return lineage_of(opened.candidates.of(record.id), chosen)


def _check_kind(kind: str | None, opened: Store | None = None) -> None:
    """Refuses a kind that is neither Podium's nor that of a run in the store."""
    if kind is None or kind in experiments.KINDS:
        return
    kept = [] if opened is None else [run.kind for run in opened.runs.all()]
    damaged = [] if opened is None or kind in kept else opened.runs.damaged(kind)
    if kind not in kept and not damaged:
        raise UnknownName.among("kind", kind, {*experiments.KINDS, *kept}, where="flag --kind")


def _found(opened: Store, run: str, place: str = PLACE) -> RunRecord:
    with blaming(place):
        return opened.runs.get(run)


def _deletable(opened: Store, run: str) -> RunRecord:
    from podium.store import DamagedRow, RunRecord

    try:
        return _found(opened, run)
    except DamagedRow as damaged:  # what cannot be read can be deleted all the same
        return RunRecord(damaged.id, kind="", name="damaged", created_s=0.0)


def _failed(opened: Store) -> list[RunRecord]:
    from podium.store.records import FAILED

    return [record for record in opened.runs.all() if record.status == FAILED]


def _deleted(record: RunRecord, count: int) -> dict[str, Any]:
    return {"deleted": record.id, "candidates": count, "folder": record.folder}


def _show_deleted(screen: Screen, records: list[RunRecord], counts: list[int]) -> None:
    for record, count in zip(records, counts, strict=True):
        print(f"deleted run {record.id} and {figures.counted(count, 'candidate')}")
        if record.folder:
            screen.note(f"its files stay in {record.folder}")
    if not records:
        screen.note("no run has failed")


def _ask(records: list[RunRecord], count: int) -> None:
    ids = " ".join(record.id for record in records)
    if not sys.stdin.isatty():
        advice = f"podium runs delete {ids if len(records) == 1 else '--failed'} --yes"
        raise UsageError("refusing to delete without confirmation", hint=advice)
    candidates = figures.counted(count, "candidate")
    what = f"run {ids} ({records[0].name}, {candidates})"
    if len(records) > 1:
        what = f"{len(records)} runs ({ids}; {candidates})"
    typer.confirm(on_one_line(f"Delete {what}?"), abort=True, err=True)


def _listed(opened: Store, run: RunRecord) -> dict[str, Any]:
    best = experiments.best_candidates(opened, run, 1)
    result = experiments.headline(run)
    return {
        "id": run.id,
        "kind": run.kind,
        "name": run.name,
        "status": experiments.standing(run).status,
        "created_s": run.created_s,
        "folder": run.folder,
        "candidates": opened.candidates.count(run.id),
        "best_fitness": best[0].fitness if best else None,
        **({"result": result} if result else {}),
    }


def _show_list(screen: Screen, rows: list[dict[str, Any]]) -> None:
    titles = ["run", "kind", "name", "status", "created", "candidates", "best fitness"]
    lines = [_line(row) for row in rows]
    if any("result" in row for row in rows):
        titles.append("result")
        lines = [(*line, row.get("result")) for line, row in zip(lines, rows, strict=True)]
    screen.table(titles, lines)


def _line(row: dict[str, Any]) -> tuple[object, ...]:
    words = (row["id"], row["kind"], row["name"], row["status"], _moment(row["created_s"]))
    is_search = "result" not in row
    count = row["candidates"] if is_search else None
    return (*words, count, figures.decimal(row["best_fitness"], 3))


def _show(screen: Screen, record: RunRecord, count: int, best: list[CandidateRecord]) -> None:
    facts = {
        "run": record.id,
        "kind": record.kind,
        "name": record.name,
        "status": record.status,
        "created": _moment(record.created_s),
    }
    if experiments.headline(record):
        screen.fields({**facts, "result": experiments.headline(record)})
        _show_values(screen, {"inputs": record.settings, "metrics": experiments.figures_of(record)})
        return
    outside = experiments.reached_outside(record)
    resumed = {"when resumed": "; ".join(outside)} if outside else {}
    screen.fields({**facts, "folder": record.folder or None, "candidates": count, **resumed})
    _show_values(screen, {"settings": record.settings, "summary": record.summary})
    if best:
        print()
        titles = ["candidate", "fitness", "kind", "source", "made by", "parts", "may hold"]
        screen.table(titles, [_candidate_line(each) for each in best])


def _show_values(screen: Screen, blocks: dict[str, Any]) -> None:
    for title, values in blocks.items():
        if values:
            print(f"\n{title}")
            screen.fields({f"  {name}": _written(value) for name, value in values.items()})


def _show_diff(screen: Screen, found: RunDiff) -> None:
    titles = [each.name for each in (found.first, found.second)]
    if titles[0] == titles[1] or not all(titles):
        titles = [found.first.id, found.second.id]
    if found.inputs:
        rows = [(each.name, _cell(each.first), _cell(each.second)) for each in found.inputs]
        screen.table(["input", *titles], rows)
        print()
    else:
        screen.note("the inputs are the same")
    screen.table(
        ["metric", *titles, "difference"],
        [
            (each.name, _cell(each.first), _cell(each.second), _signed(each.change))
            for each in found.figures
        ],
    )


def _signed(change: float | None) -> figures.Figure | None:
    if change is None:
        return None
    return figures.Figure(f"{change:+,.4g}" if change else "0")


def _cell(value: object) -> object:
    if isinstance(value, int | float):
        return figures.Figure(figures.text_of(value))
    written = _written(value)
    if isinstance(written, str) and _DIGEST.fullmatch(written):
        return written[:DIGEST_CHARACTERS]
    if not isinstance(written, str) or len(written) <= LONGEST_CELL:
        return written
    return f"{written[: LONGEST_CELL - 3]}..."


def _candidate_line(each: CandidateRecord) -> tuple[object, ...]:
    fitness = figures.decimal(each.fitness, 3)
    made_by = each.operators[0] if each.operators else None
    number = f"#{each.number}"
    return (number, fitness, each.kind, each.source, made_by, each.complexity, each.may_hold)


def _written(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):  # no calendar has it
        return f"{seconds:g} s after 1970"


def _show_lineage(screen: Screen, steps: list[Step]) -> None:
    """Prints a candidate and its ancestors, the first of them first; nothing for one without."""
    if len(steps) < 2:
        return
    print()
    titles = ["lineage", "made by", "from", "source", "fitness", "gain", "parts"]
    screen.table(titles, [_step_row(step) for step in steps])


def _step_row(step: Step) -> tuple[object, ...]:
    record = step.record
    gain = None if step.gain is None else figures.Figure(f"{step.gain:+.3f}")
    parents = ", ".join(f"#{each}" for each in record.parents) or None
    fitness = figures.decimal(record.fitness, 3)
    number = f"#{record.number}"
    return number, step.operator, parents, record.source, fitness, gain, record.complexity
