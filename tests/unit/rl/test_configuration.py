"""Configurations: templates that read back, keys that are refused, changes of single keys."""

import tomllib

import pytest

from podium.errors import InputError, PodiumError, SettingsError, UnknownName, UsageError
from podium.rl.configuration import (
    ALGORITHMS,
    algorithm_named,
    as_object,
    configuration_of,
    create_config,
    read_configuration,
    template,
    with_changes,
)
from podium.rl.qtable.learner import Configuration


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_template_reads_back_as_the_defaults(tmp_path, name):
    file = tmp_path / "config.toml"
    usual = algorithm_named(name).Configuration()
    file.write_text(template(usual), encoding="utf-8")
    assert read_configuration(name, file) == usual


def test_every_key_of_a_template_is_described():
    lines = template(Configuration()).splitlines()
    keys = [i for i, line in enumerate(lines) if " = " in line and not line.startswith("#")]
    assert len(keys) > 20
    assert all(lines[i - 1].startswith("# ") and lines[i - 1].endswith((".", "...")) for i in keys)


def test_sections_that_are_given_in_part_keep_their_own_defaults():
    made = create_config("qtable", training={"patience": 3})
    assert made.training.patience == 3
    assert made.training.episodes == Configuration().training.episodes


def test_it_is_written_as_json_types_and_read_back():
    made = create_config("qtable", state={"resources": ["cpu", "gpu"]}, learning={"gamma": 1})
    assert made.state.resources == ("cpu", "gpu")
    assert made.learning.gamma == 1.0
    assert configuration_of(Configuration, as_object(made)) == made


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("[lerning]\n", UnknownName, "did you mean learning"),
        ("[learning]\n\ngama = 0.3\n", UnknownName, "did you mean gamma"),
        ("[world]\nnodes = 2.5\n", SettingsError, "whole number"),
        ("[world]\nnodes = true\n", SettingsError, "whole number"),
        ("[state]\nresources = 'cpu'\n", SettingsError, "a list"),
        ("world = 3\n", SettingsError, "a section"),
        ("[world\n", SettingsError, "not TOML"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(tmp_path, text, error, told):
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(error) as caught:
        read_configuration("qtable", file)
    assert told in f"{caught.value} {caught.value.hint}"
    assert "config.toml" in caught.value.where


def test_an_error_names_the_line(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text("[learning]\n\ngama = 0.3\n", encoding="utf-8")
    with pytest.raises(UnknownName) as caught:
        read_configuration("qtable", file)
    assert caught.value.where.endswith("line 3")


def test_a_missing_file_says_how_to_write_one(tmp_path):
    with pytest.raises(InputError) as caught:
        read_configuration("ppo", tmp_path / "my.toml")
    assert caught.value.hint == "podium train template ppo > my.toml writes one"


def test_single_keys_are_changed():
    changed = with_changes(Configuration(), ["learning.aim=balance", "state.resources=['gpu']"])
    assert changed.learning.aim == "balance"
    assert changed.state.resources == ("gpu",)


@pytest.mark.parametrize("change", ["aim=balance", "learning.aim", "learning.aims=balance"])
def test_changes_that_mean_nothing_are_refused(change):
    with pytest.raises((UsageError, UnknownName)):
        with_changes(Configuration(), [change])


def test_only_known_ways_to_learn_are_imported():
    assert "os" not in ALGORITHMS
    with pytest.raises(PodiumError, match='unknown way to learn "os"'):
        algorithm_named("os")


def test_templates_are_toml():
    assert set(tomllib.loads(template(Configuration()))) == {
        "world", "state", "learning", "training",
    }  # fmt: skip
