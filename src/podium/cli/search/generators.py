"""Says what the generators of a plan are given: models and money, or a program to ask."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.cli.options import blaming
from podium.errors import UnknownName, UsageError

if TYPE_CHECKING:
    from podium.settings import Settings


def check_names(generators: list[str]) -> None:
    """Refuses generators that nobody knows, before there is a run or a store."""
    from podium.search.run.setup import GENERATORS

    for name in generators:
        if name not in GENERATORS:
            raise UnknownName.among("generator", name, GENERATORS, where="flag --generator")


def refuse_unused(generators: list[str], of_models: dict[str, Any], command: str | None) -> None:
    """Refuses flags that no generator of the run would heed."""
    unused = [flag for flag, value in of_models.items() if value is not None]
    if unused and "llm" not in generators:
        raise UsageError(
            f"{' and '.join(unused)} {'are' if len(unused) > 1 else 'is'} for language models, "
            "and none is asked",
            where="flag --generator",
            hint="add --generator llm, or genetic=3,llm=1 for a share; or leave the flag out",
        )
    if command is not None and "command" not in generators:
        raise UsageError(
            "--command is for the generator command, and it is not asked",
            where="flag --generator",
            hint="add --generator command, or leave --command out",
        )


def generator_options(
    settings: Settings, generators: list[str], price: list[str] | None, replay: Path | None,
    program: tuple[str | None, list[str] | None],
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Gives the options of each generator that has any, and refuses what none can work with."""
    from podium.search.generators.command import CommandSettings, open_command

    found: dict[str, dict[str, Any]] = {}
    if "llm" in generators:
        found["llm"] = llm_options(settings, price, replay)
    if "command" in generators:
        command, names = program
        if not command:
            raise UsageError("the generator command has no command", hint="add --command PROGRAM")
        with blaming("flag --command"):
            open_command(CommandSettings(command, keep=tuple(names or ())), os.environ)
        found["command"] = {"command": command, "keep": names or []}
    return found


def repeated_options(
    settings: Settings, price: list[str] | None, replay: Path | None,
    program: tuple[str | None, list[str] | None],
) -> dict[str, dict[str, Any]]:  # fmt: skip
    """Gives the options of generators as far as they are given again to resume a run."""
    command, names = program
    found: dict[str, dict[str, Any]] = {}
    if settings.search.models.strip(", "):
        found["llm"] = _described(settings, price, replay)
    if command:
        found["command"] = {"command": command, "keep": names or []}
    return found


def llm_options(settings: Settings, price: list[str] | None, replay: Path | None) -> dict[str, Any]:
    """Says which language models a plan asks, where, and for how much."""
    if not settings.search.models.strip(", "):
        raise UsageError("no language model is named", hint="add --model NAME")
    _check_llm(settings, replay)
    return _described(settings, price, replay)


def _described(settings: Settings, price: list[str] | None, replay: Path | None) -> dict[str, Any]:
    from podium.search.generators.llm.budget import read_prices

    search = settings.search
    models = [each.strip() for each in search.models.split(",") if each.strip()]
    prices = read_prices(price or [])
    return {
        "models": models, "base_url": search.base_url, "usd": search.usd or None,
        "tokens": search.tokens or None, "mode": "replay" if replay else "record",
        "cassette": str(replay.absolute()) if replay else "",
        "prices": {each: [p.usd_in, p.usd_out, p.usd_request] for each, p in prices.items()},
    }  # fmt: skip


def _check_llm(settings: Settings, replay: Path | None) -> None:
    """Refuses what language models cannot be asked with, before there is a run."""
    from podium.search.generators.llm.cassette import read_cassette
    from podium.search.generators.llm.endpoint import find_endpoint

    search = settings.search
    if replay is not None:
        read_cassette(replay)
        return
    with blaming("flag --base-url" if search.base_url else "environment"):
        find_endpoint(os.environ, search.base_url)
    if not search.usd and not search.tokens:
        raise UsageError(
            "there is no budget for language models", where="flags --usd and --tokens",
            hint="add --usd 2, or --tokens 1000000, or both",
        )  # fmt: skip
