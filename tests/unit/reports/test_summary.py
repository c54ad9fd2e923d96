import json
from dataclasses import replace

import pytest

from podium.model import NodeSpec
from podium.model.constraints import Taint
from podium.reports.summary import summarise
from podium.sim import Replay
from support.runs import gpu_pod, run, run_in_order, run_in_rounds, share_pod, three_pods

STABLE = {
    "policy": str, "trace": str, "protocol": str, "seed": int, "nodes": int, "gpus": int,
    "pods": int, "placed": int, "unplaced": int, "held": int, "gpu_allocation": float,
    "cpu_allocation": float, "memory_allocation": float, "fragmentation": float,
    "wait_mean_s": float, "wait_p95_s": float, "wait_p99_s": float, "makespan_s": float,
    "decisions": int, "wall_s": float, "digest": str,
}  # fmt: skip

FOUR_GPUS = [NodeSpec("a", 10_000, 10_000, 4, "X")]


@pytest.fixture(scope="module")
def found():
    return summarise(three_pods())


@pytest.mark.parametrize("name", STABLE)
def test_every_promised_name_is_there_with_its_type(found, name):
    assert type(found[name]) is STABLE[name]


def test_the_figures_are_those_of_the_run(found):
    assert (found["policy"], found["protocol"], found["seed"]) == ("first-fit", "replay", 0)
    assert (found["nodes"], found["gpus"], found["pods"], found["placed"]) == (2, 4, 3, 3)
    assert found["gpu_allocation"] == 38_000 / 16 / 4000
    assert (found["wait_mean_s"], found["wait_max_s"], found["waited"]) == (2, 6, 1)
    assert (found["makespan_s"], found["completion_mean_s"]) == (16, 10)
    assert found["placed_share"] == {"1-gpu": 1.0, "2-gpu": 1.0}
    assert found["decisions"] == 4
    assert found["digest"] == three_pods().digest


def test_a_replay_tells_its_load_and_no_curve(found):
    assert found["load"] == 1.0
    assert not {"ratio", "arrived_ratio", "allocation_at"} & found.keys()


def test_inflation_tells_allocation_at_every_arrived_percent():
    pods = [gpu_pod("p0", 2), gpu_pod("p1", 1), gpu_pod("p2", 2)]
    found = summarise(run_in_order(FOUR_GPUS, pods))
    assert found["arrived_ratio"] == 1.25
    assert found["allocation_at"] == {"50": 0.5, "75": 0.75, "125": 0.75}
    assert found["fragmentation_at"].keys() == found["allocation_at"].keys()
    assert found["ratio"] == 1.3
    assert "load" not in found


def test_fractions_of_the_curve_have_no_noise_of_division():
    pods = [share_pod("p0", 10), share_pod("p1", 100)]
    found = summarise(run_in_order([NodeSpec("a", 10_000, 10_000, 3, "X")], pods))
    assert list(found["allocation_at"].values()) == [0.0033, 0.0367]


def test_rounds_have_neither_load_nor_ratio():
    found = summarise(run_in_rounds(FOUR_GPUS, [gpu_pod("p", 1)]))
    assert found["protocol"] == "rounds"
    assert not {"load", "ratio", "allocation_at"} & found.keys()


def test_a_summary_is_plain_json(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_tier_that_ran_is_told(found):
    assert found["tier"] == "python"


def test_equal_runs_differ_only_in_the_time_they_took():
    pods = [gpu_pod("p0", 2, 0.0, 1.0), gpu_pod("p1", 4, 0.5, 1.0)]
    first, second = (summarise(run(FOUR_GPUS, pods, Replay())) for _ in range(2))
    del first["wall_s"], second["wall_s"]
    assert first == second


def test_bound_pods_are_counted_apart_and_only_where_there_are_some(found):
    runs = replace(gpu_pod("runs", 1), node="a")
    summary = summarise(run_in_rounds(FOUR_GPUS, [gpu_pod("p", 2), runs, gpu_pod("late", 2)]))
    assert (summary["pods"], summary["bound"]) == (3, 1)
    assert (summary["placed"], summary["unplaced"], summary["held"]) == (1, 1, 0)
    assert summary["gpu_allocation"] == 0.75
    assert not {"bound", "refusals"} & found.keys()


def test_reasons_are_counted_where_more_than_resources_decides():
    tainted = [replace(FOUR_GPUS[0], taints=(Taint("spot"),))]
    summary = summarise(run_in_rounds(tainted, [gpu_pod("p", 2), gpu_pod("q", 9)]))
    assert summary["refusals"] == {"taint": 2}
