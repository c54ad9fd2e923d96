import json
from pathlib import Path

import pytest

from podium.cli.main import app


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["doctor", *arguments])


def findings(result):
    return {finding["check"]: finding for finding in json.loads(result.stdout)["findings"]}


def test_a_sound_installation_ends_well(run):
    result = run("--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["is_sound"] is True
    assert findings(result)["compiler"]["status"] == "ok"
    assert findings(result)["compile cache"]["status"] == "ok"


def test_wrong_settings_are_a_finding_and_not_the_end(run):
    Path("podium.toml").write_text("[simulate]\nsed = 7\nlod = 1\n")
    result = run("--json")
    assert result.exit_code == 1
    assert findings(result)["settings"]["status"] == "broken"
    assert findings(result)["cores"]["status"] == "ok"


def test_a_cache_that_cannot_be_written_is_a_warning_with_advice(run, monkeypatch):
    Path("file").write_text("")
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", "file/below")
    result = run("--json")
    assert result.exit_code == 0
    assert findings(result)["compile cache"]["status"] == "warning"
    assert "PODIUM_COMPILE_CACHE" in findings(result)["compile cache"]["hint"]


def test_a_cache_that_others_can_write_is_a_warning(run, monkeypatch):
    Path("shared").mkdir()
    Path("shared").chmod(0o777)
    monkeypatch.setenv("PODIUM_COMPILE_CACHE", "shared")
    found = findings(run("--json"))["compile cache"]
    assert found["status"] == "warning"
    assert "can be written to by others" in found["detail"]


def test_advice_goes_to_standard_error_below_the_table(run):
    Path("podium.toml").write_text("[simulate]\nsed = 7\n")
    result = run()
    assert result.stdout.startswith("check")
    assert "broken: settings: did you mean seed" in result.stderr
