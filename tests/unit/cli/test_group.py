import json
import sys

import pytest

from podium.cli.group import as_option, hoisted
from support.verbs import sample


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(sample, list(arguments))


def test_help_lists_every_verb_without_importing_it(run):
    sys.modules.pop("support.no_such_module", None)
    result = run("--help")
    assert result.exit_code == 0
    assert "Is listed all the same." in result.stdout


def test_no_arguments_show_the_help(run):
    assert run().stdout == run("--help").stdout
    assert run("end").stdout == run("end", "--help").stdout


def test_help_before_a_verb_is_the_help_of_the_verb(run):
    assert run("help", "end", "well").stdout == run("end", "well", "--help").stdout
    assert as_option(["--quiet", "help", "end"]) == ["--quiet", "end", "--help"]
    assert as_option(["end", "help"]) == ["end", "help"]
    assert run("help").stdout == run("--help").stdout
    assert run("help", "edn").exit_code == 2


def test_a_verb_is_imported_when_it_is_called(run):
    assert run("end", "well", "--seed", "7").stdout == "7\n"
    assert run("vanished").exit_code == 4


def test_usage_names_the_verb_as_it_is_called(run):
    assert "Usage: root end well" in run("end", "well", "--help").stdout


@pytest.mark.parametrize(
    ("ending", "code"),
    [("well", 0), ("no", 1), ("missing", 3), ("bug", 4), ("unreadable", 2), ("abort", 130)],
)
def test_each_ending_has_its_exit_code(run, ending, code):
    assert run("end", ending).exit_code == code


def test_an_error_is_three_lines_on_standard_error(run):
    result = run("end", "missing")
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "error: there is no data False",
        "  at:  the folder",
        "  try: fetch it",
    ]


def test_an_error_is_an_object_when_json_is_asked_for(run):
    result = run("end", "missing", "--json")
    assert result.stdout == ""
    assert json.loads(result.stderr) == {
        "error": {
            "code": "MissingError",
            "message": "there is no data True",
            "where": "the folder",
            "hint": "fetch it",
        }
    }


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["ent"], "No such command 'ent'", "did you mean 'end'"),
        (["end", "wel"], "No such command 'wel'", "did you mean 'well'"),
        (["end", "well", "--sed", "1"], "No such option: --sed", "did you mean --seed"),
        (["end", "well", "--seed", "x"], "Invalid value for '--seed'", "root end well --help"),
        (["end", "well", "more"], "Got unexpected extra argument(s) (more)", "root end well"),
        (["--debg"], "No such option: --debg", "did you mean --debug"),
    ],
)
def test_mistakes_on_the_command_line_are_usage_errors_with_advice(run, arguments, message, hint):
    result = run(*arguments)
    first, *_, last = result.stderr.splitlines()
    assert result.exit_code == 2
    assert first.startswith(f"error: {message}")
    assert last.startswith("  try: ")
    assert hint in last


def test_settings_that_cannot_be_used_end_the_verb(run, monkeypatch):
    monkeypatch.setenv("PODIUM_SIMULATE_SEED", "x")
    result = run("end", "well")
    assert result.exit_code == 2
    assert "at:  environment PODIUM_SIMULATE_SEED, [simulate] seed" in result.stderr


@pytest.mark.parametrize("position", [0, 1, 2])
def test_flags_of_the_whole_command_may_stand_anywhere(run, position):
    arguments = ["end", "display"]
    arguments.insert(position, "--no-progress")
    assert "progress=False" in run(*arguments).stdout
    assert "progress=True" in run("end", "display").stdout


def test_flags_behind_a_double_dash_stay_where_they_are():
    assert hoisted(["a", "--debug", "--", "--debug"]) == ["--debug", "a", "--", "--debug"]


def test_without_standalone_mode_errors_pass_to_the_caller(runner):
    result = runner.invoke(sample, ["end", "bug"], standalone_mode=False)
    assert isinstance(result.exception, ZeroDivisionError)
