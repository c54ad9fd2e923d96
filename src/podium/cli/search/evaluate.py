"""Sends one file through every gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podium.cli import figures
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search.options import AllowUnconfined
from podium.cli.watch import watching
from podium.errors import InputError
from podium.experiments.listener import announce_compilation
from podium.experiments.places import blaming
from podium.experiments.search import warn_of_walls
from podium.files.text_file import read_bytes
from podium.policies.registry import MOST_BYTES

if TYPE_CHECKING:
    from podium.search.candidate.verdict import Judgement
    from podium.search.judging.judge import Judge


def evaluate(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Python file with the candidate.")],
    fitness: Annotated[
        str,
        typer.Option(
            "--fitness", help="inflation, waiting, fragmentation, or mix:RULE=WEIGHT,RULE=WEIGHT."
        ),
    ] = "inflation",
    seeds: Annotated[
        int, typer.Option("--seeds", help="Training cases of each kind.", min=1, max=900)
    ] = 4,
    time_limit: Annotated[
        float, typer.Option("--time-limit", help="Seconds for all gates.", min=0.1)
    ] = 30.0,
    memory_limit: Annotated[
        int, typer.Option("--memory-limit", help="MiB that the candidate may add.", min=16)
    ] = 512,
    is_unconfined: AllowUnconfined = False,
    is_json: Json = False,
) -> None:
    """Sends a file through every gate, in a sandbox; exit 1 if it is rejected."""
    settings = read_settings(ctx, {"search.allow_unconfined": is_unconfined or None})
    screen = Screen(settings.display)

    from podium.evaluation.cases import TrainingSet, demo_cases
    from podium.search.judging.fitness import fitness_named
    from podium.search.judging.judge import Judge
    from podium.search.sandbox.limits import Limits

    text = _text(file)
    with blaming("flag --fitness"):
        cases = demo_cases(fitness_named(fitness).kinds, seeds)
    limits = Limits(
        time_limit, memory_mib=memory_limit, allows_unconfined=settings.search.allow_unconfined
    )
    with (
        watching(screen) as listener,
        Judge(TrainingSet(cases, is_compiled=True), fitness, 1, limits) as judge,
    ):
        announce_compilation(listener)
        found = judge.judge(text)
        warn_of_walls(listener, judge.pool.missing_walls)
    if is_json:
        print_json(found.as_object())
    else:
        _show(screen, judge, found)
    if not found.verdict.accepted:
        raise typer.Exit(1)


def _text(file: Path) -> str:
    """Reads a file; what is no text is left for the first gate to refuse."""
    if not file.exists():
        raise InputError.at(file, "no such file", hint="give the path of a policy file")
    return read_bytes(file, MOST_BYTES).decode("utf-8", "backslashreplace")


def _show(screen: Screen, judge: Judge, found: Judgement) -> None:
    verdict = found.verdict
    facts: dict[str, object] = {"accepted": verdict.accepted, "gate": verdict.gate}
    if not verdict.accepted:
        first, *others = verdict.reason.splitlines() or [""]
        facts |= {"reason": first, **{" " * i: other for i, other in enumerate(others, 1)}}
        screen.fields({**facts, "time": figures.duration(found.seconds)})
        return
    scores = found.scores
    facts["fitness"] = figures.decimal(scores["fitness"], 3)
    facts["fitness of fgd"] = figures.decimal(scores["fgd"]["fitness"], 3)
    screen.fields({**facts, "time": figures.duration(found.seconds)})
    print()
    keys = [key for key in scores["fgd"] if key != "fitness"]
    screen.table(["case", "score", *keys], [_row(case, keys) for case in scores["cases"]])
    screen.note(f"fitness = {judge.fitness.text}")


def _row(case: dict[str, Any], keys: list[str]) -> tuple[object, ...]:
    values = [figures.decimal(case.get(key), 2) for key in keys]
    return (case["case"], figures.decimal(case["score"], 2), *values)
