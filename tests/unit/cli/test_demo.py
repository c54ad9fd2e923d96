import json
from pathlib import Path

import pytest

from podium.cli import demo, demo_search
from podium.cli.main import app

pytestmark = pytest.mark.usefixtures("_warm_cache")


@pytest.fixture
def run(runner, monkeypatch):
    """Runs a short demo; the readme shows the whole one, and its tests run it."""
    monkeypatch.setattr(demo, "SEEDS", [1000])
    monkeypatch.setattr(demo, "PACKING", ("first-fit", "worst-fit"))
    monkeypatch.setattr(demo, "QUEUEING", ("first-fit", "worst-fit"))
    monkeypatch.setattr(demo_search, "EVALUATIONS", 150)
    monkeypatch.setattr(demo_search, "CASES", 6)
    monkeypatch.setattr("os.cpu_count", lambda: 1)  # starting workers is most of a short search

    def invoke(*arguments):
        result = runner.invoke(app, ["demo", *arguments])
        assert result.exit_code == 0, result.stderr
        return result.stdout

    return invoke


@pytest.mark.deep
def test_data_are_the_same_whatever_the_settings_of_the_user(run, monkeypatch):
    Path("podium.toml").write_text('[simulate]\ncluster = "nowhere.csv"\nload = 9.0\n')
    monkeypatch.setenv("PODIUM_SIMULATE_RATIO", "0.1")
    found = json.loads(run("--json"))
    for policy in ("first-fit", "worst-fit"):
        packed, queued = found["packing"][policy][0], found["queueing"][policy][0]
        assert (packed["protocol"], packed["ratio"], packed["nodes"]) == ("inflation", 1.3, 1213)
        assert (queued["protocol"], queued["load"], queued["nodes"]) == ("replay", 4.0, 16)
    # Even a short search beats the simplest policy on clusters that it never saw.
    searched = found["search"]
    assert searched["others"].keys() == {"first-fit", "best-fit", "fgd"}
    assert searched["fitness"] > searched["others"]["first-fit"]
    assert "def score(pod, node" in searched["text"]


def test_people_read_the_comparisons_the_best_first_and_what_was_found_and_comes_next(
    run, monkeypatch
):
    monkeypatch.setattr(demo_search, "EVALUATIONS", 24)
    packed, rest = run().split("Queueing: ")
    queued, told = rest.split("Search: ")
    assert packed.startswith("Packing: 1,213 nodes, 6,212 GPUs; pods arrive until they ask for")
    table = packed.splitlines()[2:5]
    assert table[0].startswith("policy     GPUs allocated  80 % .. 100 %")
    assert [line.split()[0] for line in table[1:]] == ["first-fit", "worst-fit"]
    assert queued.startswith("16 nodes, 64 GPUs; 8,152 pods come and go, 4 times as fast")
    assert "policy     pods that waited  mean wait  longest wait" in queued
    assert "evaluations of programs bred from random ones, of ingredients that people named" in told
    assert "found here" in told
    assert "measured on clusters that the search never saw" in told
    assert "podium policies list" in told.split("Next:")[1]


@pytest.mark.parametrize(("share", "filled"), [(0.7, 0), (0.8, 0), (0.9, 12), (1.0, 24)])
def test_a_bar_shows_the_last_fifth(share, filled):
    bar = demo._bar(share)
    assert (bar.count("█"), len(bar)) == (filled, 24)
