from pathlib import Path

import pytest

from podium.cli.main import app

TEXT = '[simulate]\npolicy = "evil.py"\nseed = 3\n[search]\nbase_url = "http://a:pass-word@h/v1"\n'


@pytest.fixture
def run(runner):
    return lambda *words: runner.invoke(app, words)


@pytest.fixture
def file():
    Path("podium.toml").write_text(TEXT)
    Path("evil.py").write_text("def score(pod, node):\n    return 0.0\n")
    return Path("podium.toml").absolute()


@pytest.mark.usefixtures("small_trace")
def test_a_policy_of_a_folder_runs_once_the_folder_is_trusted(run, file):
    trace = ("--trace", "pods.csv", "--cluster", "nodes.csv")
    refused = run("simulate", *trace)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "podium.toml, line 2, [simulate] policy" in refused.stderr
    assert "podium trust" in refused.stderr
    shown = run("trust")
    assert shown.exit_code == 0
    assert "evil.py" in shown.stdout
    assert "simulate.seed" not in shown.stdout
    assert "pass-word" not in shown.stdout
    assert str(file) in run("trust", "--list").stdout
    done = run("simulate", *trace)
    assert done.exit_code == 0, done.stderr
    assert "evil" in done.stdout
    assert run("trust", "--revoke").exit_code == 0
    assert run("simulate", *trace).exit_code == 2


@pytest.mark.usefixtures("file")
def test_config_names_what_was_refused_and_goes_on(run):
    result = run("config")
    assert result.exit_code == 0
    lines = [line.split(maxsplit=2) for line in result.stdout.splitlines()]
    assert ["simulate.policy", "fgd", "default; refused: podium.toml, line 2"] in lines
    assert ["simulate.seed", "3", "podium.toml, line 3"] in lines
    assert "podium trust" in result.stderr
    assert "pass-word" not in result.stdout


def test_what_needs_no_trust_and_what_is_not_there_is_said(run):
    assert run("trust").exit_code == 2
    Path("podium.toml").write_text('[simulate]\npolicy = "fgd"\n')
    result = run("trust")
    assert (result.exit_code, run("trust", "--list").stdout) == (0, "")
    assert "needs no trust" in result.stderr


def test_a_file_in_a_folder_of_all_cannot_be_trusted(run, file):
    file.parent.chmod(0o777)
    result = run("trust")
    assert result.exit_code == 2
    assert "can be written to by others" in result.stderr
