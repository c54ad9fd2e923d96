"""Saves runs with constraints, bound pods, shared GPUs and gangs, and reads them back whole."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.policies import load
from podium.reports.summary import summarise
from podium.sim import Result, simulate
from support import constrained
from support.instances import inflations, replays, rounds


@settings(
    max_examples=60, deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
@given(st.data(), constrained.clusters)
def test_a_loaded_run_has_the_figures_and_the_reasons_of_the_one_that_was_saved(data, cluster):
    kinds = constrained.gang_workloads(constrained.shapes)
    workload = data.draw(constrained.occupied_workloads(cluster, kinds))
    protocol = data.draw(st.one_of(inflations(cluster, workload), replays, rounds))
    result = simulate(cluster, workload, load("best-fit"), protocol)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.podium"
        result.save(path)
        again = Result.load(path)
    assert again.digest == result.digest
    assert summarise(again) == summarise(result)
    assert list(again.placements()) == list(result.placements())
    pods = range(len(result.status))
    assert [again.refusal(pod) for pod in pods] == [result.refusal(pod) for pod in pods]
    assert again.plan.cluster.specs() == cluster.specs()
    assert again.plan.trace.specs() == workload.specs()
    assert again.plan.arrivals.specs() == result.plan.arrivals.specs()
    assert again.plan.gangs.gang_of.tolist() == result.plan.gangs.gang_of.tolist()
    assert len(again.plan.bound) == len(result.plan.bound)
