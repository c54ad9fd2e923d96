"""Promotes what a run found: reduces, validates on held-out cases, explains, writes a policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.options import Json, TracesFolder, blaming, read_settings, traces_folder
from podium.cli.render import Screen, print_json
from podium.cli.runs import RunId, StoreUrl, opened
from podium.cli.search import options as given
from podium.cli.search.display import warn_of_walls
from podium.cli.terminal import on_one_line
from podium.errors import InputError, UsageError
from podium.files.excerpt import excerpt

if TYPE_CHECKING:
    from podium.evaluation.paired import Difference
    from podium.evaluation.validation import GroupResults
    from podium.search.promotion.card import Provenance
    from podium.search.promotion.promote import Nominee, Outcome
    from podium.search.run.plan import RunPlan
    from podium.store import CandidateRecord, RunRecord, Store

FIGURES = {"inflation": "allocation_130", "holding": "allocation_130", "waiting": "wait_mean_s",
           "fragmentation": "fragmentation"}  # fmt: skip
"""By which figure the best of a fitness is judged on held-out cases; mixtures by allocation."""

REPLAY = "replay"


def promote(
    ctx: typer.Context,
    run: RunId,
    best: Annotated[int, typer.Option("--best", help="Nominees: so many of the best.", min=1)] = 1,
    candidate: Annotated[
        list[int] | None,
        typer.Option("--candidate", help="Nominate this one; repeatable.", show_default=False),
    ] = None,
    folder: Annotated[
        Path, typer.Option("--to", help="Folder for the policy and its card.")
    ] = Path(),
    name: Annotated[str, typer.Option("--name", help="Name of the policy.")] = "",
    summary: Annotated[
        str, typer.Option("--summary", help="What the policy does, in one line of yours.")
    ] = "",
    seeds: Annotated[
        int, typer.Option("--seeds", help="Validation seeds of each case.", min=1, max=20)
    ] = 20,
    trace: Annotated[
        list[str] | None,
        typer.Option("--trace", help="Validate on this alone; repeatable.", show_default=False),
    ] = None,
    loss: Annotated[
        float, typer.Option("--loss", help="Fitness that a shorter formula may lose.", min=0)
    ] = 0.02,
    incumbent: Annotated[str, typer.Option("--incumbent", help="Policy to beat.")] = "fgd",
    workers: given.Workers = None,
    is_unconfined: given.AllowUnconfined = False,
    store: StoreUrl = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Validates the best of a run on held-out cases and writes what wins as a policy file."""
    flags = {"store.url": store, "traces.folder": traces,
             "search.allow_unconfined": is_unconfined or None}  # fmt: skip
    settings = read_settings(ctx, flags)
    screen = Screen(settings.display)

    from podium.cli.watch import announce_compilation
    from podium.evaluation.validation import HeldOut
    from podium.search.judging.judge import Judge
    from podium.search.promotion.decision import Rule
    from podium.search.promotion.promote import Settings, check_folder, scorer
    from podium.search.promotion.promote import promote as promote_all
    from podium.search.promotion.reduction import ReductionSettings
    from podium.search.run.folder import PLAN, RunFolder
    from podium.search.run.plan import RunPlan
    from podium.search.sandbox.limits import Limits

    with blaming("flag --to"):
        check_folder(folder)
    with opened(settings) as kept:
        with blaming("argument RUN"):
            record = kept.runs.get(run)
        plan = RunPlan.from_object(RunFolder(Path(record.folder)).read(PLAN))
        nominees = [
            replace(each, summary=summary)
            for each in _nominees(kept, record, plan, candidate, best, name)
        ]
    announce_compilation(screen)
    held_out = HeldOut(seeds, str(traces_folder(settings) or ""), tuple(trace or ()))
    with blaming("flag --trace"):
        cases = held_out.cases()
    rule = Rule(
        incumbent, _figure(plan.fitness), trained=frozenset(_trained(plan)), may_hold=plan.may_hold
    )
    limits = Limits(60.0, allows_unconfined=settings.search.allow_unconfined)
    with (
        Judge(plan.training, plan.fitness, 1, limits) as judge,
        _stages(screen) as progress,
    ):
        judge.pool.get_ready()
        warn_of_walls(screen, judge.pool.missing_walls)
        score = scorer(judge, may_hold=plan.may_hold)
        wanted = Settings(score, folder, cases, rule, ReductionSettings(loss), jobs=workers or 0)
        outcome = promote_all(nominees, wanted, progress)
    if is_json:
        print_json(_object(outcome))
    else:
        _show(screen, outcome)
    if not outcome.files:
        raise typer.Exit(1)


def _nominees(
    kept: Store, record: RunRecord, plan: RunPlan, numbers: list[int] | None, best: int, name: str
) -> list[Nominee]:
    from podium.search.promotion.promote import Nominee

    if numbers:
        found = [kept.candidates.get(record.id, number) for number in numbers]
    else:
        found = kept.candidates.best(record.id, best)
    if not found:
        raise UsageError(
            f"run {record.id} has no accepted candidate",
            hint=f"podium search resume {record.id} searches on",
        )
    if name and len(found) > 1:
        raise UsageError("one name for several policies", hint="leave --name out, or --best 1")
    return [Nominee(each.text, _provenance(kept, record, plan, each), name) for each in found]


def _provenance(
    kept: Store,
    record: RunRecord,
    plan: RunPlan,
    found: CandidateRecord,
    seen: frozenset[str] = frozenset(),
) -> Provenance:
    """Says where a candidate was found: in an earlier run, if this one only began with it."""
    from podium.search.judging.fitness import fitness_named
    from podium.search.promotion.card import Provenance
    from podium.search.run.folder import PLAN, RunFolder
    from podium.search.run.plan import RunPlan

    origin = _origin(kept, found)
    seen |= {record.id}
    if origin is not None and origin[0] in seen:
        raise _corrupt(record, f"candidate {found.number} comes from its own run")
    if origin is not None:
        earlier = kept.runs.get(origin[0])
        its_plan = RunPlan.from_object(RunFolder(Path(earlier.folder)).read(PLAN))
        return _provenance(kept, earlier, its_plan, kept.candidates.get(*origin), seen)
    command = record.settings.get("command")
    if command is not None and not isinstance(command, str):
        raise _corrupt(record, "its command is no text")
    summary = _figures(record)
    parents = {each.number: each.parents for each in kept.candidates.of(record.id)}
    return Provenance(
        run=record.id, candidate=found.number, seed=plan.seed,
        command=command,
        generator=", ".join(each for each, _ in plan.generators),
        evaluations=summary.get("evaluations"), seconds=summary.get("seconds"),
        spend_usd=summary.get("usd") if summary.get("calls") else None,
        fitness=fitness_named(plan.fitness).text,
        training=tuple(case.name for case in plan.training.cases),
        ancestry=_ancestry(found.number, parents),
    )  # fmt: skip


def _origin(kept: Store, found: CandidateRecord) -> tuple[str, int] | None:
    """Reads the name that `--from` gave to a candidate of another run."""
    run, _, number = found.source.rpartition("-")
    is_named = found.kind == "seed" and run and number.isdigit()
    is_kept = is_named and run in {each.id for each in kept.runs.all()}
    return (run, int(number)) if is_kept else None


def _ancestry(number: int, parents: dict[int, tuple[int, ...]]) -> int:
    """Counts the generations back to a seed, along main parents; nobody is their own ancestor."""
    seen: set[int] = set()
    while number not in seen and parents.get(number):
        seen.add(number)
        number = parents[number][0]
    return len(seen)


def _figures(record: RunRecord) -> dict[str, Any]:
    """Reads the figures of a run out of its summary, which others may have written."""
    found = {key: record.summary.get(key) for key in ("evaluations", "seconds", "usd", "calls")}
    for key, value in found.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < math.inf):
            raise _corrupt(record, f"{key} is {excerpt(value)}")
    return found


def _corrupt(record: RunRecord, problem: str) -> InputError:
    return InputError(
        f"the record of run {record.id} is corrupt: {problem}", where="the store",
        hint="podium runs show lists what it holds; promote from a run that nobody changed",
    )  # fmt: skip


def _figure(fitness: str) -> str:
    return FIGURES.get(fitness.partition(":")[0], "allocation_130")


def _trained(plan: RunPlan) -> set[str]:
    return {case.trace for case in plan.training.cases}


@contextmanager
def _stages(screen: Screen) -> Iterator[Callable[[str, int, int], None]]:
    """Shows one bar for each stage of a promotion."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        shown: dict[str, tuple[Any, int]] = {}

        def tell(stage: str, done: int, total: int) -> None:
            if stage not in shown:
                stack.close()
                shown[stage] = (stack.enter_context(screen.progress(stage, total or None)), 0)
            advance, before = shown[stage]
            advance(done - before)
            shown[stage] = (advance, done)

        yield tell


def _object(outcome: Outcome) -> dict[str, Any]:
    return {
        "promoted": [str(path) for path in outcome.files],
        "promotions": [
            {
                "name": each.name, "accepted": each.accepted, "reasons": list(each.reasons),
                "gain": asdict(each.gain), "p_value": each.p_value, "may_hold": each.may_hold,
                "held": each.held[0], "decisions": each.held[1],
                "table": [row.as_object() for row in each.table],
            }
            for each in outcome.promotions
        ],
        "refusals": [asdict(each) for each in outcome.refusals],
    }  # fmt: skip


def _show(screen: Screen, outcome: Outcome) -> None:
    for refusal in outcome.refusals:
        print(on_one_line(f"{refusal.name} is refused: {refusal.reason}"))
    for each in outcome.promotions:
        reduced = outcome.reduced[each.name]
        gain = each.gain
        screen.fields(
            {
                "policy": each.name,
                "promoted": each.accepted,
                "because": "; ".join(each.reasons),
                "gain": f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]",
                "p": figures.decimal(each.p_value, 4),
                "holds": each.holds,
                "parts": f"{reduced.size_before} reduced to {reduced.size}",
            }
        )
        print()
        _show_tables(screen, each.table)
    for path in outcome.files:
        print(f"written: {path} and {path.with_suffix('.json').name}")


def _show_tables(screen: Screen, table: Sequence[GroupResults]) -> None:
    """Prints what was measured by protocol; whatever is better than another policy has a plus."""
    replays = [row for row in table if row.group.protocol == REPLAY]
    others = [row for row in table if row.group.protocol != REPLAY]
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


def _line(row: GroupResults, keys: tuple[str, str], sign: int = 1) -> tuple[object, ...]:
    gains = [each[keys[1]] for each in row.differences.values()]
    return (
        row.group.name, row.is_trained_on, *(figures.decimal(row.means[key], 2) for key in keys),
        *(_gain(each, sign) for each in gains),
    )  # fmt: skip


def _gain(gain: Difference, sign: int) -> figures.Figure:
    low, high = sorted((sign * gain.low, sign * gain.high))
    return figures.Figure(f"{sign * gain.mean:+.2f} [{low:+.2f}, {high:+.2f}]")
