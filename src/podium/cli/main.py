"""The entry point: `podium VERB`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.main import get_command

from podium import __version__
from podium.cli.group import Verb, VerbGroup


class Podium(VerbGroup):
    """All verbs of Podium."""

    verbs = (
        Verb("demo", "podium.cli.demo"),
        Verb("traces", "podium.cli.traces"),
        Verb("fit", "podium.cli.fit"),
        Verb("simulate", "podium.cli.simulate"),
        Verb("compare", "podium.cli.compare"),
        Verb("policies", "podium.cli.policies"),
        Verb("search", "podium.cli.search"),
        Verb("train", "podium.cli.train"),
        Verb("evaluate", "podium.cli.evaluate"),
        Verb("learn", "podium.cli.learn"),
        Verb("serve", "podium.cli.serve"),
        Verb("kube", "podium.cli.kube"),
        Verb("runs", "podium.cli.runs"),
        Verb("reproduce", "podium.cli.reproduce"),
        Verb("bench", "podium.cli.bench"),
        Verb("doctor", "podium.cli.doctor"),
        Verb("config", "podium.cli.config"),
        Verb("trust", "podium.cli.trust"),
    )


app = typer.Typer(
    cls=Podium, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
)


def _print_version(is_wanted: bool) -> None:
    if is_wanted:
        print(f"podium {__version__}")
        raise typer.Exit


@app.callback()
def podium(
    ctx: typer.Context,
    is_version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
    is_debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks [env var: PODIUM_DEBUG].")
    ] = False,
    is_plain: Annotated[bool, typer.Option("--no-progress", help="Show no progress bars.")] = False,
    is_quiet: Annotated[bool, typer.Option("--quiet", help="Print results only.")] = False,
) -> None:
    """GPU scheduling for Kubernetes that learns: simulate, discover, run."""
    del is_version, is_debug  # acted upon before this: failures of the parser heed them too
    ctx.obj = {
        "display.progress": False if is_plain else None,
        "display.quiet": True if is_quiet else None,
    }


def main() -> None:
    """Runs the command line of this process."""
    get_command(app).main(prog_name="podium")
