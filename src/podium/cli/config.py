"""Prints every setting and where it came from."""

from __future__ import annotations

import typer

from podium.cli.group import new_app
from podium.cli.options import Json, read_settings
from podium.cli.render import Screen, print_json
from podium.settings import Shown, shown

app = new_app()


@app.command()
def config(ctx: typer.Context, is_json: Json = False) -> None:
    """Prints every setting and where it came from."""
    settings = read_settings(ctx)
    rows = shown(settings)
    if is_json:
        print_json([_object(row) for row in rows])
        return
    Screen(settings.display).table(
        ["setting", "value", "origin"], [(row.path, _text(row.value), row.origin) for row in rows]
    )


def _object(row: Shown) -> dict[str, object]:
    return {"setting": row.path, "value": row.value, "origin": row.origin, "help": row.help}


def _text(value: object) -> str:
    if value is None:
        return "(unset)"
    return str(value).lower() if isinstance(value, bool) else str(value)
