import json
from pathlib import Path

import pytest

from podium.cli.main import app
from podium.errors import install_line
from podium.reports import plot

SMALL = ("--jobs", 60, "--job-types", 3, "--gpu-types", 2)


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["learn", *map(str, arguments)])


@pytest.fixture
def found(run):
    """Gives the figures of a small trial as data."""

    def figures(*arguments):
        result = run(*SMALL, *arguments, "--json")
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return figures


def test_regret_is_given_since_each_mark_and_so_far(found):
    figures = found("--seed", 1000)
    assert figures["decisions"] == [10, 50, 60]
    assert list(figures["ways"]) == [
        "oracle",
        "capped-oracle",
        "online",
        "never-explore",
        "epsilon",
    ]
    online = figures["ways"]["online"]
    since, so_far = online["regret"], online["regret_so_far"]
    assert so_far[0] == since[0]
    assert so_far[-1] == pytest.approx((10 * since[0] + 40 * since[1] + 10 * since[2]) / 60)
    assert so_far[-1] == pytest.approx(online["mean_regret"])
    assert not any(figures["ways"]["oracle"]["regret"])


def test_seeds_are_worlds_whose_means_are_taken(found):
    both = found("--seeds", "1000,1003")
    single = [found("--seed", seed) for seed in (1000, 1003)]
    assert both["seeds"] == [1000, 1003]
    assert [run["seed"] for run in both["runs"]] == [1000] * 5 + [1003] * 5
    for way, figures in both["ways"].items():
        mean = sum(each["ways"][way]["mean_regret"] for each in single) / 2
        assert figures["mean_regret"] == pytest.approx(mean)
    assert both["pairs"] == single[0]["pairs"]


def test_options_make_the_world(found):
    world = found("--noise", 0.1, "--neighbours", 0.5, "--pair-spread", 1)["world"]
    chosen = {
        "job_types": 3, "gpu_types": 2, "noise": 0.1, "neighbour_share": 0.5, "pair_spread": 1.0,
    }  # fmt: skip
    assert world.items() >= chosen.items()
    assert found("--neighbours", 0)["slowdowns"] == []


def test_the_parameters_are_those_of_the_settings(found):
    Path("podium.toml").write_text("[online]\nexploration_cap = 0.0\n")
    ways = found("--seed", 1000)["ways"]
    assert ways["online"]["exploration"] == 0.0
    assert ways["online"]["regret"] == ways["never-explore"]["regret"]


def test_people_read_regret_ways_and_what_was_learned(run):
    result = run(*SMALL, "--seeds", "1000-1001")
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert (
        lines[1] == "world      3 job types, 2 GPU types, 20 % noise, 20 % of jobs beside another"
    )
    assert lines[2] == "seeds      1000 to 1001; means over 2 worlds"
    titles = [line.split() for line in lines if line]
    assert titles[5][:4] == ["decisions", "online", "never", "epsilon"]
    assert ["pair", "observed", "true", "mu", "sigma", "error"] in titles
    assert ["pair", "jobs", "true", "learned"] in titles


def test_without_neighbours_there_are_no_slowdowns_to_read(run):
    result = run(*SMALL, "--neighbours", 0)
    assert "beside" not in result.stdout.split("forced", 1)[1]


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--jobs", "0"),
        ("--jobs", "100001"),
        ("--job-types", "0"),
        ("--gpu-types", "65"),
        ("--noise", "-0.1"),
        ("--noise", "nan"),
        ("--pair-spread", "2.5"),
        ("--neighbours", "1.5"),
        ("--seed", "-1"),
    ],
)
def test_values_that_cannot_be_are_refused(run, option, value):
    result = run(option, value)
    assert result.exit_code == 2
    assert f"flag {option}" in result.stderr
    assert "give a" in result.stderr


def test_one_seed_and_several_are_not_given_together(run):
    result = run("--seed", "1", "--seeds", "1-2")
    assert result.exit_code == 2
    assert "--seed and --seeds exclude each other" in result.stderr


def test_seeds_that_cannot_be_read_are_refused(run):
    result = run("--seeds", "1-")
    assert result.exit_code == 2
    assert "is not a list of seeds" in result.stderr


def test_a_plot_shows_every_way_that_has_something_to_regret(run, tmp_path):
    drawn = []
    for name in ("one.svg", "two.svg"):
        result = run(*SMALL, "--plot", tmp_path / name)
        assert result.exit_code == 0, result.stderr
        assert f"drew {tmp_path / name}" in result.stderr
        drawn.append((tmp_path / name).read_bytes())
    assert drawn[0] == drawn[1]
    for label in (b"online  ", b"never-explore  ", b"epsilon  ", b"capped-oracle  "):
        assert label in drawn[0]
    assert b"oracle sends a job" in drawn[0]


def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_runs(run, tmp_path, monkeypatch):
    result = run(*SMALL, "--plot", tmp_path / "plot.gif")
    assert result.exit_code == 2
    assert "ends in .svg or .png" in result.stderr
    monkeypatch.setattr(plot.importlib.util, "find_spec", lambda _: None)
    result = run(*SMALL, "--plot", tmp_path / "plot.svg")
    assert result.exit_code == 3
    assert install_line("plots") in result.stderr
    assert not list(tmp_path.glob("plot.*"))
