"""What bench/mlp_scorer.py measures is what it says."""

from pathlib import Path

import numpy as np
import pytest

from podium.evaluation.cases import Case
from podium.evaluation.measures import measure_case
from podium.policies import load
from podium.sim.execution import execute

BENCH = Path(__file__).parents[3] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import mlp_scorer

    return mlp_scorer


def test_the_curve_of_a_run_goes_through_what_evaluation_measures(bench):
    case = Case("openb-multi-heavy", 12, 150, seed=5001)
    found = bench.inflated({"fgd": load("fgd")}, case, [5001])["fgd"]
    expected = measure_case(execute(case.plan(load("fgd"))))
    by_load = dict(zip(bench.LOADS, found[0], strict=True))
    assert by_load[1.0] == expected["allocation_100"]
    assert by_load[1.3] == expected["allocation_130"]
    assert by_load[0.7] <= 70


def test_arrivals_are_so_dense_that_pods_ask_for_the_peak(bench):
    case = Case("openb", 20, 400)
    dense = bench._at_peak(case, case.read(), 5000, 0.9)
    plan = dense.plan(load("fgd"))
    asked = bench._most_asked(plan.arrivals, dense.load) / plan.cluster.gpu_milli_total
    assert asked == pytest.approx(0.9, abs=0.05)  # pods are not divisible
    waits = bench.replayed({"fgd": load("fgd")}, case, [5000])["fgd"]
    assert waits.shape == (1, len(bench.PEAKS), 2)
    assert np.isfinite(waits).all()
