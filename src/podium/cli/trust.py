"""Trusts the podium.toml of this folder, as it is now."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.group import new_app
from podium.cli.render import Screen
from podium.errors import SettingsError
from podium.settings import Display
from podium.settings.load import FILE, wishes
from podium.settings.trust import Trusted, doubt_own

app = new_app()


@app.command()
def trust(
    is_list: Annotated[bool, typer.Option("--list", help="List the files you trust.")] = False,
    is_revoked: Annotated[
        bool, typer.Option("--revoke", help="Trust the file of this folder no longer.")
    ] = False,
) -> None:
    """Trusts the podium.toml of this folder, as it is now.

    Shows what it sets beyond data: programs, folders, addresses, keys, spending. Once it has
    changed, it is asked about anew.
    """
    trusted, screen = Trusted.of(os.environ), Screen(Display())
    if is_list:
        for place in trusted:
            print(place)
    elif is_revoked:
        was_there = trusted.revoke(Path(FILE))
        screen.note(f"{Path(FILE).absolute()} {'is no longer' if was_there else 'was not'} trusted")
    else:
        _trust(trusted, screen)


def _trust(trusted: Trusted, screen: Screen) -> None:
    document, refused = wishes(Path())
    doubt = doubt_own(document)
    if doubt is not None:
        raise SettingsError(
            f"{FILE} cannot be trusted: {doubt.reason}",
            where=str(document.path.absolute()),
            hint=doubt.advice,
        )
    if not refused:
        screen.note(f"{FILE} sets data alone: it needs no trust")
        return
    screen.table(
        ["setting", "value", "place"], [(each.key.path, each.shown, each.place) for each in refused]
    )
    trusted.add(document)
    screen.note(f"{document.path.absolute()} is trusted until it changes")
