"""Prints every setting and where it came from."""

from __future__ import annotations

import typer

from podium.cli.group import new_app
from podium.cli.options import Json, common_flags
from podium.cli.render import Screen, print_json
from podium.settings import Shown, shown
from podium.settings.load import inspect_settings, refusal
from podium.settings.sources import Refusal

app = new_app()


@app.command()
def config(ctx: typer.Context, is_json: Json = False) -> None:
    """Prints every setting and where it came from.

    Values that were refused, because they reach beyond data and nobody trusts their file, are
    named with their place; they stop every other command.
    """
    settings, refused = inspect_settings(common_flags(ctx))
    rows = shown(settings)
    if is_json:
        print_json([_object(row, refused.get(row.path)) for row in rows])
        return
    screen = Screen(settings.display)
    screen.table(
        ["setting", "value", "origin"],
        [(row.path, _text(row.value), _origin(row, refused.get(row.path))) for row in rows],
    )
    if refused:
        told = refusal(list(refused.values()))
        screen.note(f"{told.message}; {told.hint}")


def _object(row: Shown, refused: Refusal | None) -> dict[str, object]:
    return {
        "setting": row.path, "value": row.value, "origin": row.origin, "help": row.help,
        "refused": refused.place if refused else None,
    }  # fmt: skip


def _origin(row: Shown, refused: Refusal | None) -> str:
    return f"{row.origin}; refused: {refused.place}" if refused else row.origin


def _text(value: object) -> str:
    if value is None:
        return "(unset)"
    return str(value).lower() if isinstance(value, bool) else str(value)
