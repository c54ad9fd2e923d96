"""Is the entry point: `podium VERB`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.main import get_command

from podium import __version__
from podium.cli.group import Verb, VerbGroup


class Podium(VerbGroup):
    """Holds every verb of Podium."""

    verbs = (
        Verb("demo", "podium.cli.demo", "Shows Podium at work, offline, in under a minute."),
        Verb("traces", "podium.cli.traces", "Lists, checks, makes and converts traces."),
        Verb("simulate", "podium.cli.simulate", "Runs one policy on one trace."),
        Verb("compare", "podium.cli.compare", "Ranks several policies over several seeds."),
        Verb("policies", "podium.cli.policies", "Lists, shows, checks and explains policies."),
        Verb("search", "podium.cli.search", "Finds policies, shows and promotes them."),
        Verb("learn", "podium.cli.learn", "Shows how the online agent learns in simulated worlds."),
        Verb("serve", "podium.cli.serve", "Serves scores, observations and assignments over HTTP."),
        Verb("runs", "podium.cli.runs", "Lists, shows and deletes runs that the store keeps."),
        Verb("reproduce", "podium.cli.reproduce", "Repeats published experiments."),
        Verb("bench", "podium.cli.bench", "Measures speed and memory on this machine."),
        Verb("doctor", "podium.cli.doctor", "Checks this installation and says what to mend."),
        Verb("config", "podium.cli.config", "Prints every setting and where it came from."),
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
