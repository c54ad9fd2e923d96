import importlib

import pytest
from typer.main import get_command

from podium import __version__
from podium.cli.main import Podium, app


@pytest.mark.parametrize("verb", Podium.verbs, ids=lambda verb: verb.name)
def test_the_line_in_the_help_is_the_verbs_own_first_line(verb):
    command = get_command(importlib.import_module(verb.module).app)
    assert (command.help or "").splitlines()[0] == verb.help


def test_the_version_is_printed(runner):
    assert runner.invoke(app, ["--version"]).stdout == f"podium {__version__}\n"


def test_help_lists_the_verbs_in_their_order(runner):
    text = runner.invoke(app, ["--help"]).stdout
    places = [text.index(f"  {verb.name} ") for verb in Podium.verbs]
    assert places == sorted(places)
