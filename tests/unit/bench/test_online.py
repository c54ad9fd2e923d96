"""The worlds and rivals of bench/online.py: a comparison is worth what its rivals are."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import online_rivals
    import online_worlds

    return online_worlds, online_rivals


def small(worlds, name, **changes):
    from dataclasses import replace

    return worlds.draw(replace(worlds.FAMILIES[name], decisions=120, **changes), 3)


def play(world, rule):
    chosen = []
    for number in range(len(world)):
        chosen.append(rule.choose(number))
        rule.learn(number, chosen[-1])
    return chosen


def test_the_same_seed_gives_the_same_world(bench):
    worlds, _ = bench
    for name in worlds.FAMILIES:
        first, second = small(worlds, name), small(worlds, name)
        np.testing.assert_array_equal(first.observed_s, second.observed_s)
        assert (first.beside, first.features) == (second.beside, second.features)
        assert (first.expected_s > 0.0).all()


@pytest.mark.parametrize("share", [0, 20, 90, 100])
def test_as_many_runs_have_neighbours_as_the_family_says(bench, share):
    worlds, _ = bench
    world = small(worlds, f"beside{share}")
    assert np.mean([bool(each[0]) for each in world.beside]) == pytest.approx(share / 100, abs=0.15)


def test_no_rival_explores_more_than_the_cap_allows(bench):
    worlds, rivals = bench
    world = small(worlds, "mixed")
    for name, (_, is_capped) in rivals.RIVALS.items():
        if not is_capped:
            continue
        rule = rivals.rival(name, world, 0)
        counted = []
        count = rule._cap.count
        rule._cap.count = lambda explored, counted=counted, count=count: (
            counted.append(explored),
            count(explored),
        )
        play(world, rule)
        assert all(sum(counted[: end + 1]) <= 0.25 * (end + 1) for end in range(len(counted)))
        assert sum(counted) > 0, name


def test_what_is_best_by_a_pooled_model_is_free_though_it_is_new_as_it_is_for_the_agent(bench):
    worlds, rivals = bench
    world = small(worlds, "mixed", job_types=2, gpu_types=3)
    rule = rivals.rival("pooled-thompson", world, 0)
    for _ in range(9):
        for gpu, value in enumerate((1.0, 0.0, -3.0)):
            rule._learn(0, gpu, value)
    rule._learn(1, 0, 1.0)
    rule._cap.allows = lambda: False
    number = int(np.flatnonzero(world.job_type == 1)[0])
    assert rule.choose(number) == 2


def test_the_pooled_model_is_the_gaussian_regression_of_a_textbook(bench):
    worlds, rivals = bench
    world = small(worlds, "mixed", job_types=4, gpu_types=3)
    rule = rivals.PooledThompson(world, 0)
    prior = rule._covariance.copy()
    rows, values = [], []
    for number in range(30):
        gpu = number % 3
        rule.learn(number, gpu)
        rows.append(int(world.job_type[number]) * 3 + gpu)
        values.append(np.log(world.observed_s[number, gpu] / worlds.RUNTIME_S))
    for setting, covariance in enumerate(prior):
        gain = covariance[:, rows] @ np.linalg.inv(covariance[np.ix_(rows, rows)] + np.eye(30))
        np.testing.assert_allclose(rule._mean[setting], gain @ np.array(values), atol=1e-6)
        left = covariance - gain @ covariance[rows]
        np.testing.assert_allclose(rule._covariance[setting], left, atol=1e-6)


def test_whoever_knows_the_run_times_loses_least(bench):
    worlds, rivals = bench
    world = small(worlds, "mixed")
    lost = {
        name: world.expected_s[np.arange(len(world)), play(world, rivals.rival(name, world, 0))]
        for name in ("capped-oracle", "pooled-thompson", "random")
    }
    oracle, pooled, random = (each.sum() for each in lost.values())
    assert world.best_s.sum() < oracle < pooled < random


def test_a_missed_target_is_said_by_the_exit_code():
    command = [sys.executable, str(BENCH / "online.py"), "--family", "gpu3", "--seeds", "1"]
    done = subprocess.run(
        [*command, "--rule", "podium", "--rule", "random", "--json", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)["families"]["gpu3"]
    assert found["random"][0]["regret"] > found["podium"][0]["regret"]
    is_missed = any(line.startswith("FAIL") for line in done.stderr.splitlines())
    assert done.returncode == (1 if is_missed else 0)
    assert done.stderr.count("gpu3: ") == 2
