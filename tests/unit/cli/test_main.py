import importlib

import pytest
from typer.main import get_command

from podium import __version__
from podium.cli.main import Podium, app


@pytest.mark.parametrize("verb", Podium.verbs, ids=lambda verb: verb.name)
def test_every_verb_that_is_listed_is_there_and_explains_itself(verb):
    assert get_command(importlib.import_module(verb.module).app).help


@pytest.mark.parametrize("verb", Podium.verbs, ids=lambda verb: verb.name)
def test_the_line_of_a_verb_in_the_list_is_the_first_line_of_its_own_help(verb):
    own = get_command(importlib.import_module(verb.module).app).help
    assert verb.sentence() == own.splitlines()[0]


def test_the_version_is_printed(runner):
    assert runner.invoke(app, ["--version"]).stdout == f"podium {__version__}\n"


def test_help_lists_the_verbs_in_their_order(runner):
    text = runner.invoke(app, ["--help"]).stdout
    places = [text.index(f"  {verb.name} ") for verb in Podium.verbs]
    assert places == sorted(places)
