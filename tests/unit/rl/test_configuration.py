"""Configurations: templates that read back, keys that are refused, changes of single keys."""

import math
import tomllib
from pathlib import Path

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
from podium.rl.mlp.algorithm import EvolutionSection
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
    made = create_config("qtable", state={"resources": ["cpu", "gpu"]}, learning={"alpha": 1})
    assert made.state.resources == ("cpu", "gpu")
    assert made.learning.alpha == 1.0
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


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_number_has_a_range_that_keeps_nan_out_and_its_default_in(name):
    usual = as_object(algorithm_named(name).Configuration())
    create_config(name, **usual)
    for section, keys in usual.items():
        for key, value in keys.items():
            is_list = isinstance(value, list)
            kind = type((value or [0])[0] if is_list else value)  # lists without values: of numbers
            if kind not in (int, float) or key == "waiting":
                continue
            for wrong in (math.nan, math.inf, -(10**12), 10**12):
                with pytest.raises(SettingsError, match=rf"^{section}\.{key} is ") as caught:
                    create_config(name, **{section: {key: [wrong] if is_list else wrong}})
                assert " number from " in caught.value.hint


@pytest.mark.parametrize(
    ("name", "section", "line", "told", "hint"),
    [
        ("qtable", "world", "pods = -4", "world.pods is -4", "a whole number from 1 to 100,000"),
        ("qtable", "world", "load = nan", "world.load is nan", "a number from 0.001 to 100"),
        ("qtable", "world", "run_time_most_s = 0.0001", "world.run_time_most_s is 0.0001",
         "at least run_time_least_s, 0.001"),
        ("qtable", "state", "resources = []", "state.resources is []", "at least one"),
        ("qtable", "state", "resources = ['gpus']", 'unknown resource "gpus"', "mean gpu"),
        ("qtable", "learning", "aim = 'balnce'", 'unknown aim "balnce"', "did you mean balance"),
        ("qtable", "learning", "gamma = 1", "learning.gamma is 1", "from 0 to 0.999999"),
        ("qtable", "training", "minutes = -1", "training.minutes is -1", "from 0 to"),
        ("qtable", "training", "patience = -1", "training.patience is -1", "from 0 to"),
        ("mlp", "evolution", "workers = 100000", "evolution.workers is 100000", "from 0 to"),
        ("mlp", "evolution", "population = 5", "evolution.population is 5", "an even number"),
        ("mlp", "evolution", "nodes = [-1]", "evolution.nodes is -1", "from 1 to 100,000"),
        ("mlp", "evolution", "nodes = [8]", "evolution.generations is (380, 200)", "less than"),
        ("mlp", "evolution", "floor = 'fgdd'", 'unknown policy "fgdd"', "did you mean fgd"),
        ("mlp", "imitation", "teacher = 'nobody'", 'unknown policy "nobody"', "known: "),
        ("mlp", "workload", "traces = ['openb', 'nope.csv']", "workload.traces is 'nope.csv'",
         "podium traces list"),
        ("mlp", "workload", "cluster = 'nope.csv'", "workload.cluster is 'nope.csv'", "a file"),
        ("ppo", "workload", "mix = [1.0]", "workload.mix is (1.0,)", "three shares"),
        ("ppo", "network", "attention = 'crss'", 'unknown attention "crss"', "mean cross"),
    ],
)  # fmt: skip
def test_what_is_out_of_range_names_the_line_and_the_range(
    tmp_path, name, section, line, told, hint
):
    file = tmp_path / "config.toml"
    file.write_text(f"\n[{section}]\n{line}\n", encoding="utf-8")
    with pytest.raises((SettingsError, UnknownName)) as caught:
        read_configuration(name, file)
    assert caught.value.message == told
    assert hint in caught.value.hint
    is_absent = "generations" in told  # the default stands in no line
    assert caught.value.where == (str(file) if is_absent else f"{file}, line 3")


def test_keys_that_do_not_fit_those_of_other_sections_are_refused():
    with pytest.raises(SettingsError, match=r"ppo\.minibatches is 9"):
        create_config("ppo", ppo={"steps": 2, "minibatches": 9}, environment={"environments": 4})
    with pytest.raises(SettingsError, match=r"cluster\.nodes is 0"):
        create_config("ppo", cluster={"nodes": 0}, workload={"traces": ["mixed"]})
    workers = {"population": 4, "workers": 0}
    assert create_config("mlp", evolution=workers).evolution.workers == 0
    with pytest.raises(ValueError, match="at most the population, 4"):
        EvolutionSection(population=4, workers=5)


def test_what_is_no_file_is_not_read(tmp_path):
    for path in (tmp_path, Path("/dev/zero")):
        with pytest.raises(InputError, match="not a file"):
            read_configuration("qtable", path)


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


def test_brackets_without_end_are_refused_as_any_other_value():
    for depth in (100, 5000):
        with pytest.raises(SettingsError, match=r"learning\.alpha is "):
            with_changes(Configuration(), [f"learning.alpha={'[' * depth}{']' * depth}"])


def test_only_known_ways_to_learn_are_imported():
    assert "os" not in ALGORITHMS
    with pytest.raises(PodiumError, match='unknown algorithm "os"'):
        algorithm_named("os")


def test_templates_are_toml():
    assert set(tomllib.loads(template(Configuration()))) == {
        "world", "state", "learning", "training",
    }  # fmt: skip
