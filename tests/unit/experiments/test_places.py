from pathlib import Path

import pytest

from podium.errors import InputError, PodiumError, UnknownName
from podium.experiments.places import blaming, place_of
from podium.settings import load_settings


def blamed(error, where, advice=""):
    with pytest.raises(PodiumError) as caught, blaming(where, advice):
        raise error
    return caught.value


def test_an_error_without_a_place_gets_one():
    error = blamed(InputError("it failed"), "flag --trace", "try another")
    assert (error.where, error.hint) == ("flag --trace", "try another")


def test_an_error_that_knows_more_keeps_it():
    error = blamed(InputError("it failed", where="a file", hint="mend it"), "flag --trace", "other")
    assert (error.where, error.hint) == ("a file", "mend it")


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("policy", "did you mean fgd; podium policies list shows all"),
        ("trace", "did you mean fgd; podium traces list shows all"),
        ("pod", "did you mean fgd"),
    ],
)
def test_an_unknown_name_says_where_all_names_are(kind, hint):
    assert blamed(UnknownName.among(kind, "fdg", ["fgd"]), "").hint == hint


def test_a_place_is_where_the_setting_was_made(monkeypatch):
    monkeypatch.setenv("PODIUM_SIMULATE_LOAD", "2")
    Path("podium.toml").write_text("[simulate]\nratio = 2.0\n")
    settings = load_settings({"simulate.seed": 7})
    assert place_of(settings, "simulate.seed") == "flag --seed, [simulate] seed"
    assert place_of(settings, "simulate.load") == (
        "environment PODIUM_SIMULATE_LOAD, [simulate] load"
    )
    assert place_of(settings, "simulate.ratio") == "podium.toml, line 2, [simulate] ratio"
    assert place_of(settings, "simulate.trace") == ""
