import json
from pathlib import Path

import pytest

from podium.cli import demo, demo_search
from podium.cli.main import app

pytestmark = pytest.mark.usefixtures("_warm_cache")


@pytest.fixture
def run(runner, monkeypatch):
    """Runs a short demo; the whole one runs in the tests of the real binary."""
    monkeypatch.setattr(demo, "SEEDS", [1000])
    monkeypatch.setattr(demo, "PACKING", ("first-fit", "worst-fit"))
    monkeypatch.setattr(demo, "QUEUEING", ("first-fit", "worst-fit"))
    monkeypatch.setattr(demo_search, "EVALUATIONS", 150)
    monkeypatch.setattr(demo_search, "CASES", 6)
    return lambda *arguments: runner.invoke(app, ["demo", *arguments])


def test_both_comparisons_are_data_too(run):
    result = run("--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    packed, queued = found["packing"]["first-fit"][0], found["queueing"]["first-fit"][0]
    assert (packed["protocol"], packed["ratio"], packed["nodes"]) == ("inflation", 1.3, 1213)
    assert (queued["protocol"], queued["load"], queued["nodes"]) == ("replay", 4.0, 16)


def test_the_user_s_own_settings_stay_out_of_the_demo(run, monkeypatch):
    Path("podium.toml").write_text('[simulate]\ncluster = "nowhere.csv"\nload = 9.0\n')
    monkeypatch.setenv("PODIUM_SIMULATE_RATIO", "0.1")
    found = json.loads(run("--json").stdout)
    assert found["packing"]["worst-fit"][0]["ratio"] == 1.3
    assert found["queueing"]["worst-fit"][0]["load"] == 4.0


def test_people_read_both_comparisons_the_best_first(run):
    packed, queued = run().stdout.split("Queueing: ")
    assert packed.startswith("Packing: 1,213 nodes, 6,212 GPUs; pods arrive until they ask for")
    table = packed.splitlines()[2:5]
    assert table[0].startswith("policy     GPUs allocated  80 % .. 100 %")
    assert [line.split()[0] for line in table[1:]] == ["first-fit", "worst-fit"]
    assert queued.startswith("16 nodes, 64 GPUs; 8,152 pods come and go, 4 times as fast")
    assert "policy     pods that waited  mean wait  longest wait" in queued


@pytest.mark.parametrize(("share", "filled"), [(0.7, 0), (0.8, 0), (0.9, 12), (1.0, 24)])
def test_a_bar_shows_the_last_fifth(share, filled):
    bar = demo._bar(share)
    assert (bar.count("█"), len(bar)) == (filled, 24)


def test_even_a_short_search_beats_the_simplest_policy_on_clusters_it_never_saw(run):
    found = json.loads(run("--json").stdout)["search"]
    assert found["others"].keys() == {"first-fit", "best-fit", "fgd"}
    assert found["fitness"] > found["others"]["first-fit"]
    assert "def score(pod, node" in found["text"]


def test_people_read_what_was_found_beside_the_others(run):
    told = run().stdout.split("Search: ")[1]
    assert "evaluations of bred programs, from nothing, with seed 1000" in told
    assert "found here" in told
    assert "measured on clusters that the search never saw" in told
