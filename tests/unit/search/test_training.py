import json

import numpy as np
import pytest

from podium.errors import UsageError
from podium.policies import load
from podium.search.measurement import FIGURES, is_measurement, measure_case
from podium.search.training import Case, TrainingSet, demo_cases, perturbed
from podium.sim.execution import execute
from podium.traces.catalogue import LoadOptions, load_trace


def test_a_set_described_in_json_is_the_same_set():
    training = TrainingSet(demo_cases(["inflation", "replay"], 3), is_compiled=True)
    assert TrainingSet.from_object(json.loads(json.dumps(training.as_object()))) == training


def test_cases_are_built_alike_every_time():
    case = Case(nodes=8, pods=60, is_perturbed=True)
    one, other = (execute(case.plan(load("best-fit"))) for _ in range(2))
    assert one.digest == other.digest


def test_every_policy_meets_the_same_pods_in_the_same_order():
    case = Case(nodes=8, pods=60)
    one, other = (case.plan(load(name)) for name in ("best-fit", "worst-fit"))
    assert one.arrivals.names == other.arrivals.names
    assert np.array_equal(one.rank_order, other.rank_order)


@pytest.mark.parametrize("seed", [42, 51, 2000, 2019])
def test_seeds_of_validation_and_test_are_not_trained_on(seed):
    with pytest.raises(UsageError, match="held out"):
        TrainingSet((Case(seed=seed),))


def test_a_set_without_cases_is_refused():
    with pytest.raises(UsageError, match="no cases"):
        TrainingSet(())


def test_a_perturbed_cluster_has_fewer_nodes_of_other_sizes_and_the_same_gpus_a_node():
    cluster = load_trace("openb", LoadOptions(nodes=40, pods=1)).cluster
    assert cluster is not None
    other = perturbed(cluster, 1000)
    assert len(other) == 36
    assert np.array_equal(other.nodes["cpu_milli_left"], other.nodes["cpu_milli_total"])
    kept = [cluster.names.index(name) for name in other.names]
    assert np.array_equal(other.nodes["gpu_count"], cluster.nodes["gpu_count"][kept])
    ratio = other.nodes["cpu_milli_total"] / cluster.nodes["cpu_milli_total"][kept]
    assert {0.75, 1.25} <= set(np.round(ratio, 3))
    assert perturbed(cluster, 1000).names == other.names
    assert perturbed(cluster, 1001).names != other.names


@pytest.mark.parametrize("case", demo_cases(["inflation", "replay"], 1), ids=lambda c: c.protocol)
def test_a_run_is_measured_in_the_figures_of_its_protocol(case):
    values = measure_case(execute(case.plan(load("best-fit"))))
    assert is_measurement(values, case.protocol)
    assert tuple(values) == FIGURES[case.protocol]


def test_allocation_is_read_where_the_arrived_demand_is_last_within_the_ratio():
    result = execute(Case(nodes=8, pods=60).plan(load("first-fit")))
    values = measure_case(result)
    placed = result.plan.arrivals.pods[result.is_placed]
    used = int((placed["gpu_count"] * placed["gpu_milli"]).sum())
    expected = 100 * used / result.plan.cluster.gpu_milli_total
    assert values["allocation_130"] == pytest.approx(expected)
    assert values["allocation_100"] <= values["allocation_130"]


@pytest.mark.parametrize(
    "values",
    [
        None,
        {},
        {"allocation_100": 1.0, "allocation_130": 1.0},
        {"allocation_100": 1.0, "allocation_130": 1.0, "fragmentation": 1.0, "more": 1.0},
        {"allocation_100": 1.0, "allocation_130": float("nan"), "fragmentation": 1.0},
        {"allocation_100": 1.0, "allocation_130": float("inf"), "fragmentation": 1.0},
        {"allocation_100": 1.0, "allocation_130": 101.0, "fragmentation": 1.0},
        {"allocation_100": -1.0, "allocation_130": 1.0, "fragmentation": 1.0},
        {"allocation_100": 1.0, "allocation_130": "90", "fragmentation": 1.0},
        {"allocation_100": 1.0, "allocation_130": True, "fragmentation": 1.0},
    ],
)
def test_figures_that_no_run_can_have_are_no_measurement(values):
    assert not is_measurement(values, "inflation")
