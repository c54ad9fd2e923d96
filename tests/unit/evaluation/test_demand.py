from dataclasses import replace

import numpy as np
import pytest

from podium.evaluation.cases import Case
from podium.evaluation.demand import misfits, placeable
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints, Taint, Toleration
from podium.policies import load
from podium.sim.execution import execute
from podium.traces.catalogue import LoadOptions, load_trace
from podium.traces.trace import Trace
from support.gpu_cluster import write_dump

TAINT = Taint("nvidia.com/gpu", "present")
TOLERANT = Constraints(tolerations=(Toleration("nvidia.com/gpu", "Exists"),))


def trace_of(*pods):
    cluster = Cluster.of([NodeSpec("a", 8_000, 8_000, 4, "T4", taints=(TAINT,))])
    return Trace("mine", cluster, Workload.of(pods))


def pod(name, *, cpu_milli=1_000, **others):
    return PodSpec(name, cpu_milli, 100, 1, 1_000, **({"constraints": TOLERANT} | others))


def test_pods_that_no_empty_node_takes_are_left_out_with_their_gangs_and_a_note():
    found = placeable(
        trace_of(
            *(pod(name, arrival_s=5.0) for name in "abcd"),
            pod("huge", cpu_milli=9_000, arrival_s=1.0),
            pod("no-tol", constraints=Constraints(), arrival_s=2.0),
            pod("one", gang="g", arrival_s=3.0),
            pod("two", gang="g", cpu_milli=9_001, arrival_s=0.0),
        )
    )  # fmt: skip
    assert found.workload.names == ("a", "b", "c", "d")
    assert found.notes == (
        "no node can take them even when it is empty, so left out: 4 pods (cpu 2, taint 1)",
    )


def test_pods_that_do_not_fit_together_all_stay():
    trace = trace_of(*(pod(f"p{i}", cpu_milli=7_000) for i in range(5)))
    assert placeable(trace) is trace


def test_where_most_pods_fit_nowhere_all_stay():
    trace = trace_of(pod("fits"), pod("huge", cpu_milli=9_000), pod("huger", cpu_milli=9_001))
    assert misfits(trace.cluster, trace.workload) == ["", "cpu", "cpu"]
    assert placeable(trace) is trace


@pytest.mark.parametrize("has_gang", [True, False])
def test_a_dump_is_inflated_with_what_runs_and_ran_whether_or_not_there_are_gangs(
    tmp_path, has_gang
):
    path = write_dump(tmp_path / "c180.json", has_gang=has_gang)
    case = Case(str(path), seed=1000, state="history")
    plan = case.plan(load("fgd"))
    assert not len(plan.bound)
    kinds = {name.partition("-")[0] for name in plan.arrivals.names}
    assert kinds == {"job", "llm"} if has_gang else {"job"}
    finished = load_trace(str(path), LoadOptions(state="empty")).workload.names
    assert any(name not in finished for name in plan.arrivals.names)
    assert execute(replace(plan, tier="scan")).is_placed.mean() > 0.5
    if has_gang:
        pods = np.array([name.startswith("llm") for name in plan.arrivals.names])
        assert pods.sum() % 2 == 0


def test_pods_that_fit_nowhere_are_told_apart_by_what_keeps_them_away():
    picky = replace(TOLERANT, node_labels=(("pool", "x"),))
    trace = trace_of(pod("no-tol", constraints=Constraints()), pod("picky", constraints=picky))
    assert misfits(trace.cluster, trace.workload) == ["taint", "selector"]
