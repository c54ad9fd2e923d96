"""Tests how figures are taken; the figures themselves are bench/check.py's business."""

import runpy
from pathlib import Path

import pytest

from podium.reports.bench import benchmark
from podium.reports.bench.benchmark import MEASURES, OTHER_PROCESSES, measure_all, timed
from podium.reports.bench.measurement import Measurement

CHECK = Path(__file__).parents[4] / "bench" / "check.py"


def test_time_is_the_median_after_a_warm_up(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 15.0, 20.0, 22.0])
    monkeypatch.setattr(benchmark.time, "perf_counter", lambda: next(clock))
    calls = []
    assert timed(lambda: calls.append(1), repeats=3) == 2.0
    assert len(calls) == 4


def test_figures_are_measured_in_order_under_their_names(monkeypatch, tmp_path):
    def measure(name, folder):
        return Measurement(name, float(len(folder.name)), "s", 1.0, True, 2.0, "reference")

    for name in ("second", "first"):
        monkeypatch.setitem(MEASURES, name, measure)
    found = list(measure_all(tmp_path, ["first", "second", "first"]))
    assert [each.name for each in found] == ["first", "second", "first"]
    assert {each.value for each in found} == {float(len(tmp_path.name))}


@pytest.mark.parametrize("names", ["LEAST_RATIO", "MOST_PERCENT"])
def test_every_bound_is_on_a_figure_that_is_measured(names):
    bounds = runpy.run_path(str(CHECK))[names]
    assert bounds.keys() <= MEASURES.keys()
    assert MEASURES.keys() > OTHER_PROCESSES


@pytest.mark.parametrize("name", ["decisions_16_nodes", "score_1213_nodes_fed_gpu"])
def test_a_figure_has_a_reference_from_the_same_run(monkeypatch, name):
    monkeypatch.setattr(benchmark, "REPEATS", 1)
    (found,) = measure_all(None, [name])
    assert found.value > 0
    assert found.ratio == pytest.approx(
        found.reference / found.value if found.is_ceiling else found.value / found.reference
    )
