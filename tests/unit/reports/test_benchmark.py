import platform

import numpy as np
import pytest

from podium.policies import PairPolicy
from podium.reports import benchmark
from podium.reports.benchmark import (
    MEASURES,
    OTHER_PROCESSES,
    Measurement,
    dense_workload,
    machine,
    measure_all,
    timed,
    uniform_cluster,
)


def throughput(value, reference=None):
    return Measurement("decisions", value, "decisions/s", 100.0, False, reference, "scan tier")


def seconds(value, reference=None):
    return Measurement("replay", value, "s", 0.5, True, reference, "python tier")


@pytest.mark.parametrize(
    ("measurement", "is_met"),
    [
        (throughput(100.0), True),
        (throughput(99.9), False),
        (seconds(0.5), True),
        (seconds(0.51), False),
    ],
)
def test_a_target_is_a_least_or_a_most(measurement, is_met):
    assert measurement.ok is is_met


def test_a_ratio_above_one_is_better_than_the_reference():
    assert throughput(300.0, 100.0).ratio == 3
    assert seconds(0.1, 0.3).ratio == pytest.approx(3)
    assert seconds(0.1).ratio is None


def test_a_measurement_has_the_promised_names():
    assert throughput(300.0, 100.0).as_object() == {
        "name": "decisions",
        "value": 300.0,
        "unit": "decisions/s",
        "target": 100.0,
        "ok": True,
        "reference": 100.0,
        "reference_name": "scan tier",
        "ratio": 3.0,
    }


def test_time_is_the_median_after_a_warm_up(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 15.0, 20.0, 22.0])
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    calls = []
    assert timed(lambda: calls.append(1), repeats=3) == 2.0
    assert len(calls) == 4


def test_the_machine_is_told_in_one_line():
    described = machine()
    assert platform.python_version() in described
    assert "numba" in described
    assert "\n" not in described


def test_a_uniform_cluster_has_equal_nodes():
    cluster = uniform_cluster(3)
    assert (len(cluster), cluster.gpu_total) == (3, 24)
    assert len({node.tobytes() for node in cluster.nodes}) == 1


def test_a_dense_workload_keeps_so_many_pods_alive():
    workload = dense_workload(500, pods=20_000)
    assert np.diff(workload.arrival_s).tolist() == [1.0] * 19_999
    # One arrives a second and stays for about 500 seconds: Little's law.
    assert workload.duration_s.mean() == pytest.approx(500, rel=0.05)


def test_a_fresh_policy_is_new_every_time_and_no_machine_code_is_kept():
    first, second = benchmark._fresh(1), benchmark._fresh(2)
    assert isinstance(first, PairPolicy)
    assert first.source.text != second.source.text
    assert not first.is_kept


def test_figures_of_other_processes_are_among_the_figures():
    assert set(MEASURES) > OTHER_PROCESSES


@pytest.mark.parametrize(
    ("name", "unit", "is_ceiling"),
    [
        ("decisions_16_nodes", "decisions/s", False),
        ("decisions_1213_nodes", "decisions/s", False),
        ("replay_16_nodes", "s", True),
        ("new_python_policy_replay", "s", True),
        ("search_evaluations", "evaluations/s", False),
    ],
)
def test_a_figure_is_measured_under_its_name(monkeypatch, name, unit, is_ceiling):
    monkeypatch.setattr(benchmark, "REPEATS", 1)
    (found,) = measure_all(None, [name])
    assert (found.name, found.unit, found.is_ceiling) == (name, unit, is_ceiling)
    assert found.value > 0
    assert found.reference > 0
    assert found.ratio > 0
    assert found.reference_name


def test_the_overhead_of_a_search_is_a_percentage(monkeypatch):
    monkeypatch.setattr(benchmark, "REPEATS", 1)
    (found,) = measure_all(None, ["search_overhead"])
    assert (found.unit, found.target, found.is_ceiling) == ("%", 30.0, True)
    assert 0 < found.value < 100
