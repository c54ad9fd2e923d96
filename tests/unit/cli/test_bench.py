import json

import pytest

from podium.cli.main import app
from podium.reports.bench import benchmark
from podium.reports.bench.benchmark import MEASURES
from podium.reports.bench.measurement import Measurement


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["bench", *arguments])


@pytest.fixture
def _measured(monkeypatch):
    """Replaces two measurements, which take long, by what they might find."""

    def rate(name, _folder):
        return Measurement(name, 2_345_678.9, "decisions/s", 2e6, False, 98_765.4, "python tier")

    def span(name, _folder):
        return Measurement(name, 0.0061, "s", 0.005, True, None, "")

    figures = {"decisions_16_nodes": rate, "replay_16_nodes": span}
    monkeypatch.setattr(benchmark, "MEASURES", figures)


@pytest.mark.usefixtures("_measured")
def test_people_read_figures_beside_their_targets(run):
    result = run()
    lines = [line.split() for line in result.stdout.splitlines()]
    assert lines[0] == ["figure", "measured", "target", "ok", "reference", "ratio"]
    assert " ".join(lines[1]) == (
        "decisions_16_nodes 2,345,679 decisions/s at least 2,000,000 decisions/s yes "
        "98,765 decisions/s python tier 23.75"
    )
    assert " ".join(lines[2]) == "replay_16_nodes 6.1 ms at most 5 ms no - -"
    assert "Python" in result.stderr


@pytest.mark.usefixtures("_measured")
@pytest.mark.parametrize(("only", "code"), [("decisions", 0), ("replay", 1)])
def test_a_target_that_is_missed_is_a_no(run, only, code):
    assert run("--only", only).exit_code == code


def test_figures_as_data_have_the_promised_names(run):
    result = run("--only", "help", "--json")
    (figure,) = json.loads(result.stdout)
    assert figure.keys() >= {"name", "value", "unit", "target", "ok", "reference", "machine"}
    assert (figure["name"], figure["unit"], figure["target"]) == ("help", "s", 0.3)
    assert figure["value"] > figure["reference"] > 0
    assert result.exit_code == (0 if figure["ok"] else 1)


def test_a_figure_that_is_not_measured_is_told_with_those_that_are(run):
    result = run("--only", "colour")
    assert (result.exit_code, result.stdout) == (2, "")
    first, second, third = result.stderr.splitlines()
    assert first == "error: no figure has that name"
    assert second == "  at:  flag --only colour"
    assert all(name in third for name in MEASURES)
