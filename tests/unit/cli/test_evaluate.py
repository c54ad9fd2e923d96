"""The verb evaluate: every setting, paired differences, other names, and what is refused."""

import json

import pytest

from podium.cli.main import app
from podium.experiments.settings_trial import NO_REPLAY
from support.gpu_cluster import dump

pytestmark = pytest.mark.usefixtures("_warm_cache", "_clean_surroundings")

FEW = ("--nodes", 8, "--seeds", "3000-3002")


@pytest.fixture
def run(runner):
    return lambda *arguments: runner.invoke(app, ["evaluate", *map(str, arguments)])


def test_a_policy_meets_all_others_in_every_setting(run):
    found = json.loads(run("best-fit", *FEW, "--json").stdout)
    assert [each["protocol"] for each in found] == ["inflation", "replay", "rounds"]
    assert [each["metric"] for each in found] == [
        "gpu_allocation", "wait_mean_s", "gpu_allocation",
    ]  # fmt: skip
    for each in found:
        leads = each["leads"]["best-fit"]
        assert [lead["other"] for lead in leads] == [
            "round-robin", "binpack", "spread", "first-fit", "fgd", "fed-gpu",
        ]  # fmt: skip
        for lead in leads:
            gap = lead["difference"]
            assert gap["low"] <= gap["mean"] <= gap["high"]
            assert gap["mean"] == pytest.approx(each["means"]["best-fit"] - lead["mean"])


def test_replay_is_busy_enough_to_tell_policies_apart(run):
    (found,) = json.loads(run("best-fit", *FEW, "--protocol", "replay", "--json").stdout)
    assert found["load"] > 1
    assert max(found["means"].values()) > 0


def test_people_read_one_comparison_a_line(run):
    lines = run("fgd", "--against", "spread", *FEW, "--protocol", "rounds").stdout.splitlines()
    assert lines[0] == "rounds: openb, 3 seeds, gpu_allocation"
    assert lines[1].split()[:4] == ["policy", "mean", "against", "its"]
    assert lines[2].split()[0] == "fgd"
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nobody"], 'unknown policy "nobody"'),
        (["fgd", "--metric", "beauty"], 'unknown metric "beauty"'),
        (["fgd", "--seeds", "x"], "is not a list of seeds"),
        (["run:nobody"], "nobody"),
        (["fgd", "--against", "fgd"], "there is nothing to compare fgd with"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(run, arguments, told):
    refused = run(*arguments)
    assert refused.exit_code in (2, 3)
    assert told in refused.stderr


def test_evaluated_policies_are_enough_to_compare_with_each_other(run):
    asked = ("fgd", "spread", "--against", "fgd", *FEW, "--protocol", "rounds", "--json")
    (found,) = json.loads(run(*asked).stdout)
    assert [lead["other"] for lead in found["leads"]["spread"]] == ["fgd"]


def test_seeds_that_policies_know_are_named(run):
    asked = ("fgd", "--against", "spread", "--nodes", 8, "--protocol", "rounds", "--seeds")
    told = run(*asked, "1000-1001")
    assert told.exit_code == 0
    assert "trained or chosen on seed 1000 and 1 others" in " ".join(told.stderr.split())
    assert "trained or chosen" not in run(*asked, "3000").stderr


def test_pods_without_run_times_are_evaluated_without_replay(run, tmp_path):
    found, path = dump(), tmp_path / "dump.json"
    ended = ("Succeeded", "Failed")
    found["items"] = [each for each in found["items"] if each["status"].get("phase") not in ended]
    path.write_text(json.dumps(found))
    told = run("fgd", "--against", "spread", "--trace", path, "--seeds", "3000", "--json")
    assert told.exit_code == 0
    assert [each["protocol"] for each in json.loads(told.stdout)] == ["inflation", "rounds"]
    assert told.stderr.count(NO_REPLAY) == 1
    asked = run("fgd", "--trace", path, "--seeds", "3000", "--protocol", "replay")
    assert asked.exit_code == 2
    assert "not all pods have run times" in asked.stderr
