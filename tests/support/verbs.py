"""Holds a verb that ends in every way a verb can end."""

import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from podium.cli.group import Verb, VerbGroup, new_app
from podium.cli.options import Json, read_settings
from podium.errors import MissingError

app = new_app("Ends in every way.")


@app.command()
def well(ctx: typer.Context, seed: Annotated[int | None, typer.Option()] = None) -> None:
    """Ends well."""
    typer.echo(read_settings(ctx, {"simulate.seed": seed}).simulate.seed)


@app.command()
def display(ctx: typer.Context) -> None:
    """Prints what it knows of the display."""
    typer.echo(read_settings(ctx).display)


@app.command()
def no() -> None:
    """Answers no."""
    raise typer.Exit(1)


@app.command()
def missing(is_json: Json = False) -> None:
    """Misses something."""
    raise MissingError(f"there is no data {is_json}", where="the folder", hint="fetch it")


@app.command()
def bug() -> None:
    """Divides by zero."""
    typer.echo(1 // 0)


@app.command()
def unreadable() -> None:
    """Reads a file that is not there."""
    Path("no such file").read_text()


@app.command()
def interrupt() -> None:
    """Is interrupted."""
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()


@app.command()
def endless() -> None:
    """Prints without end."""
    while True:
        typer.echo("again")


@app.command()
def abort() -> None:
    """Asks a question that nobody answers."""
    raise typer.Abort


class Sample(VerbGroup):
    """Holds the one verb, and one whose module cannot be imported."""

    verbs = (
        Verb("end", "support.verbs", "Ends in every way."),
        Verb("vanished", "support.no_such_module", "Is listed all the same."),
    )


sample = typer.Typer(cls=Sample, rich_markup_mode=None, add_completion=False)


@sample.callback()
def root(
    ctx: typer.Context,
    is_debug: Annotated[bool, typer.Option("--debug")] = False,
    is_plain: Annotated[bool, typer.Option("--no-progress")] = False,
) -> None:
    """Is a sample."""
    del is_debug
    ctx.obj = {"display.progress": False if is_plain else None}


if __name__ == "__main__":
    sample()
