"""Evaluates one candidate file with every gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from podium.cli import figures
from podium.cli.flags import with_blocks
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search.options import AllowUnconfined, FewCasesOptions
from podium.cli.watch import watching
from podium.errors import InputError
from podium.experiments.evaluate import Evaluation, EvaluationRequest
from podium.experiments.evaluate import evaluate as evaluate_text
from podium.files.text_file import read_bytes
from podium.policies.loaders import MOST_BYTES


@with_blocks
def evaluate(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="Python file with the candidate.")],
    *,
    cases: FewCasesOptions,
    time_limit: Annotated[
        float, typer.Option("--time-limit", help="Time limit in seconds for all gates.", min=0.1)
    ] = 30.0,
    memory_limit: Annotated[
        int, typer.Option("--memory-limit", help="Memory limit of the candidate in MiB.", min=16)
    ] = 512,
    is_unconfined: AllowUnconfined = False,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:
    """Evaluates a candidate file in a sandbox; exits with 1 if it is rejected."""
    flags = {"search.allow_unconfined": is_unconfined or None, "traces.folder": traces}
    settings = read_settings(ctx, {**cases.settings(), **flags})
    screen = Screen(settings.display)
    request = EvaluationRequest(_text(file), cases.request(), time_limit, memory_limit)
    with watching(screen) as listener:
        found = evaluate_text(settings, request, listener)
    if is_json:
        print_json(found.judgement.as_object())
    else:
        _show(screen, found)
    if not found.judgement.verdict.accepted:
        raise typer.Exit(1)


def _text(file: Path) -> str:
    """Reads a file; one that is not text is left for the first gate to refuse."""
    if not file.exists():
        raise InputError.at(file, "no such file", hint="give the path of a policy file")
    return read_bytes(file, MOST_BYTES).decode("utf-8", "backslashreplace")


def _show(screen: Screen, evaluation: Evaluation) -> None:
    found = evaluation.judgement
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
    screen.note(f"fitness = {evaluation.formula}")


def _row(case: dict[str, Any], keys: list[str]) -> tuple[object, ...]:
    values = [figures.decimal(case.get(key), 2) for key in keys]
    return (case["case"], figures.decimal(case["score"], 2), *values)
