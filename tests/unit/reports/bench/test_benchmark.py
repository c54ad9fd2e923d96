import pytest

from podium.reports.bench import benchmark
from podium.reports.bench.benchmark import MEASURES, OTHER_PROCESSES, measure_all, timed


def test_time_is_the_median_after_a_warm_up(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 15.0, 20.0, 22.0])
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    calls = []
    assert timed(lambda: calls.append(1), repeats=3) == 2.0
    assert len(calls) == 4


def test_figures_of_other_processes_are_among_the_figures():
    assert set(MEASURES) > OTHER_PROCESSES


@pytest.mark.parametrize(
    ("name", "unit", "is_ceiling"),
    [
        ("decisions_16_nodes", "decisions/s", False),
        ("decisions_1213_nodes", "decisions/s", False),
        ("replay_16_nodes", "s", True),
        ("steps_64_environments", "steps/s", False),
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
