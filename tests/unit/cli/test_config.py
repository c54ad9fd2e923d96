import json
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.settings import keys


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["config", *arguments])


def test_every_setting_is_printed_with_value_and_origin(run, monkeypatch):
    Path("podium.toml").write_text("[simulate]\nseed = 7\n")
    monkeypatch.setenv("PODIUM_DISPLAY_COLOR", "never")
    lines = [line.split(maxsplit=2) for line in run("--no-progress").stdout.splitlines()]
    assert [line[0] for line in lines] == ["setting", *keys()]
    assert ["simulate.seed", "7", "podium.toml, line 2"] in lines
    assert ["display.color", "never", "environment PODIUM_DISPLAY_COLOR"] in lines
    assert ["display.progress", "false", "flag --no-progress"] in lines
    assert ["traces.folder", "(unset)", "default"] in lines


def test_json_gives_value_and_origin_of_every_setting(run):
    rows = json.loads(run("--json").stdout)
    assert [row["setting"] for row in rows] == list(keys())
    assert rows[0].keys() == {"setting", "value", "origin", "help", "refused"}
    assert {row["setting"]: row["value"] for row in rows}["simulate.load"] == 1.0


def test_wrong_settings_are_an_error(run):
    Path("podium.toml").write_text("[simulate]\nsed = 7\n")
    result = run()
    assert result.exit_code == 2
    assert "did you mean seed" in result.stderr


@pytest.mark.parametrize(
    "address",
    [
        "host=127.0.0.1 port=1 password=hunter2hunter2 dbname=x",
        "ada:hunter2hunter2@host/base",
        "postgresql:ada:hunter2hunter2@host",
        "postgresql://ada:hunter2hunter2@host/base?options=hunter2hunter2",
    ],
)
def test_no_password_of_a_store_is_printed_however_it_is_written(run, monkeypatch, address):
    monkeypatch.setenv("PODIUM_STORE_URL", address)
    for flags in ((), ("--json",)):
        assert "hunter2" not in run(*flags).stdout
