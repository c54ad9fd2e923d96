import pytest

from podium.cli.failure import HABITS, as_podium_error, fail, in_three_lines, is_debugging
from podium.cli.main import app
from podium.errors import InputError, SettingsError, UsageError
from podium.settings import load_settings


def bug():
    try:
        load_settings({"no.such": 1})
    except KeyError as error:
        return error


def test_what_is_not_known_is_not_shown():
    assert in_three_lines(UsageError("it failed")) == "error: it failed"


def test_several_places_take_a_line_each():
    error = SettingsError("two are wrong", where="one place\nanother", hint="mend both")
    assert in_three_lines(error).splitlines() == [
        "error: two are wrong",
        "  at:  one place",
        "  at:  another",
        "  try: mend both",
    ]


@pytest.mark.parametrize(("command", "word"), HABITS)
def test_what_others_call_a_command_leads_to_the_one_that_there_is(runner, command, word):
    done = runner.invoke(app, [*command.split()[1:], word], prog_name="podium")
    meant = HABITS[command, word]
    assert done.exit_code == 2
    assert f"did you mean {meant}; {command} --help" in done.stderr
    for each in meant.split(", "):
        assert runner.invoke(app, [*each.split()[1:], "--help"]).exit_code == 0


def test_a_bug_says_where_it_is_and_how_to_see_more(capsys):
    assert fail(bug(), []) == 4
    first, place, advice = capsys.readouterr().err.splitlines()
    assert first == "error: internal error: KeyError: 'no.such'"
    assert place.startswith("  at:  podium/settings/sources.py, line ")
    assert "--debug" in advice


@pytest.mark.parametrize(("arguments", "variable"), [(["--debug"], None), ([], "1")])
def test_a_traceback_is_shown_on_request(capsys, monkeypatch, arguments, variable):
    if variable:
        monkeypatch.setenv("PODIUM_DEBUG", variable)
    fail(bug(), arguments)
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_traceback_is_not_shown_unasked(capsys, monkeypatch):
    monkeypatch.setenv("PODIUM_DEBUG", "0")
    fail(bug(), [])
    assert "Traceback" not in capsys.readouterr().err
    assert not is_debugging([])


def test_a_file_that_cannot_be_used_is_bad_input(tmp_path):
    with pytest.raises(OSError, match="directory") as caught:
        (tmp_path / "none" / "file").write_text("")
    error = as_podium_error(caught.value)
    assert isinstance(error, InputError)
    assert error.where == str(tmp_path / "none" / "file")


def test_memory_that_is_not_there_is_something_missing_and_no_bug():
    assert as_podium_error(MemoryError()).exit_code == 3


def test_an_error_that_quotes_a_whole_file_is_cut():
    assert len(in_three_lines(UsageError("x" * 10**6, where="y" * 10**6))) < 5000


def test_an_operating_system_error_without_a_file_is_a_bug():
    assert as_podium_error(OSError("no reason")).exit_code == 4
