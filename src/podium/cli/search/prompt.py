"""Prints a prompt as a language model or a command would get it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.flags import with_blocks
from podium.cli.options import Json, TracesFolder, read_settings
from podium.cli.render import Screen, print_json
from podium.cli.search import options
from podium.cli.watch import watching
from podium.experiments.prompt import PromptRequest
from podium.experiments.prompt import prompt as prompt_of


@with_blocks
def prompt(
    ctx: typer.Context,
    *,
    cases: options.FewCasesOptions,
    policy: Annotated[
        list[Path] | None,
        typer.Option(
            "--policy", help="Policy file to show as an earlier program; repeatable.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", help="Seed that draws what is asked for.", min=0)
    ] = 1000,
    prompts: options.Prompts = None,
    traces: TracesFolder = None,
    is_json: Json = False,
) -> None:  # fmt: skip
    """Prints a prompt as it would be sent, for these cases and templates."""
    flags = {"traces.folder": traces, "search.prompts": prompts}
    settings = read_settings(ctx, {**cases.settings(), **flags})
    request = PromptRequest(cases.request(), tuple(policy or ()), seed)
    with watching(Screen(settings.display)) as listener:
        found = prompt_of(settings, request, listener)
    if is_json:
        print_json({"operator": found.operator, "system": found.system, "user": found.user})
    else:
        print(f"{found.system}\n\n{found.user}")
