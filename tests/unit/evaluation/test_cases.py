import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from podium.errors import InputError, UsageError
from podium.evaluation.cases import Case, Stage, TrainingSet, demo_cases, perturbed, planned
from podium.evaluation.measures import FIGURES, is_measurement, measure_case, queue_busy
from podium.evaluation.splits import Split
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Taint
from podium.policies import load, policy_of
from podium.policies.source import read_source
from podium.sim import Replay, simulate
from podium.sim.execution import execute
from podium.sim.result import HELD
from podium.traces import save_trace
from podium.traces.catalogue import LoadOptions, load_trace
from podium.traces.trace import Trace


def test_a_set_described_in_json_is_the_same_set():
    training = TrainingSet(demo_cases(["inflation", "holding", "replay"], 3), is_compiled=True)
    assert TrainingSet.from_object(json.loads(json.dumps(training.as_object()))) == training


def test_a_set_without_stages_has_one_that_everybody_passes():
    training = TrainingSet(demo_cases(["inflation"], 3))
    assert training.stages == (Stage(0, 3, 1.0),)
    assert "stages" not in training.as_object()


def test_stages_described_in_json_are_the_same_stages():
    stages = (Stage(0, 1, 0.4), Stage(1, 3, 0.1), Stage(3, 4))
    training = TrainingSet(demo_cases(["inflation"], 4), stages=stages)
    assert TrainingSet.from_object(json.loads(json.dumps(training.as_object()))) == training


@pytest.mark.parametrize(
    "stages",
    [
        (Stage(0, 2), Stage(3, 4)),
        (Stage(0, 2), Stage(1, 4)),
        (Stage(0, 2, 0.5), Stage(2, 3)),
        (Stage(0, 5),),
        (Stage(0, 2, 0.0), Stage(2, 4)),
        (Stage(0, 2, 0.5), Stage(2, 4, 0.5)),
        (Stage(0, 2, float("nan")), Stage(2, 4)),
        (Stage(0, 2.0), Stage(2.0, 4)),
    ],
    ids=["gap", "overlap", "too short", "too long", "nobody", "last drops", "nan", "not whole"],
)
def test_stages_that_do_not_part_the_cases_are_refused(stages):
    with pytest.raises(ValueError, match=r"stage|share"):
        TrainingSet(demo_cases(["inflation"], 4), stages=stages)


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


def test_the_queue_of_the_replayed_cases_is_busy_a_fifth_to_three_fifths_of_the_time():
    cases = demo_cases(["replay"], 8)
    for name in ("best-fit", "fgd"):
        busy = [measure_case(execute(case.plan(load(name))))["queue_busy"] for case in cases]
        assert 20 <= np.mean(busy) <= 60


def _replayed(*pods):
    """Plays pods of (arrival, duration) that each take the only GPU."""
    cluster = Cluster.of([NodeSpec("node", 8000, 16000, gpu_count=1)], name="one")
    specs = [
        PodSpec(f"pod-{i}", 1000, 1000, gpu_count=1, gpu_milli=1000, arrival_s=at, duration_s=span)
        for i, (at, span) in enumerate(pods)
    ]
    return simulate(cluster, Workload.of(specs, name="few"), load("first-fit"), Replay())


def test_the_queue_is_busy_while_anybody_waits_between_the_first_arrival_and_the_last():
    # The second waits from 10 to 30, the third from 20 to 40; the last arrives at 100.
    assert queue_busy(_replayed((0, 30), (10, 10), (20, 10), (100, 5))) == pytest.approx(0.3)
    # The second waits beyond the last arrival, which is where the measure ends.
    assert queue_busy(_replayed((0, 500), (50, 10), (100, 10))) == pytest.approx(0.5)
    assert queue_busy(_replayed((0, 5), (10, 5))) == 0
    assert queue_busy(_replayed((3, 5))) == 0


def test_allocation_while_pods_arrive_leaves_out_the_time_after_the_last_arrival():
    values = measure_case(_replayed((0, 30), (60, 4000)))
    assert values["allocation_arriving"] == pytest.approx(50.0)


def test_a_pod_that_is_held_has_arrived_and_is_not_allocated():
    text = "from podium.policies import HOLD\n\n\ndef score(pod, node):\n    return HOLD\n"
    policy = policy_of(read_source(text, "never.py"), "never")
    result = execute(replace(Case(nodes=8, pods=60).plan(load("first-fit")), policy=policy))
    assert (result.status == HELD).all()
    assert measure_case(result)["allocation_130"] == 0
    assert measure_case(result)["cpu_only_placed"] == 0


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
        {
            "allocation_100": 1.0,
            "allocation_130": 1.0,
            "fragmentation": 1.0,
            "cpu_only_placed": 1.0,
            "more": 1.0,
        },
        {
            "allocation_100": 1.0,
            "allocation_130": float("nan"),
            "fragmentation": 1.0,
            "cpu_only_placed": 1.0,
        },
        {
            "allocation_100": 1.0,
            "allocation_130": float("inf"),
            "fragmentation": 1.0,
            "cpu_only_placed": 1.0,
        },
        {
            "allocation_100": 1.0,
            "allocation_130": 101.0,
            "fragmentation": 1.0,
            "cpu_only_placed": 1.0,
        },
        {
            "allocation_100": -1.0,
            "allocation_130": 1.0,
            "fragmentation": 1.0,
            "cpu_only_placed": 1.0,
        },
        {
            "allocation_100": 1.0,
            "allocation_130": "90",
            "fragmentation": 1.0,
            "cpu_only_placed": 1.0,
        },
        {
            "allocation_100": 1.0,
            "allocation_130": True,
            "fragmentation": 1.0,
            "cpu_only_placed": 1.0,
        },
    ],
)
def test_figures_that_no_run_can_have_are_no_measurement(values):
    assert not is_measurement(values, "inflation")


@pytest.fixture
def own(tmp_path):
    """Writes a trace of one's own: manifests of 6 nodes, and 40 pods with times."""
    trace = load_trace("openb", LoadOptions(seed=1, nodes=6, pods=40))
    save_trace(trace, tmp_path / "mine.yaml")
    return str(tmp_path / "mine.yaml")


def test_what_is_held_out_by_time_is_never_trained_on(own):
    case = Case(own, protocol="replay", until=0.7)
    trained = set(case.plan(load("first-fit")).arrivals.names)
    held_out = set(case.held_out().plan(load("first-fit")).arrivals.names)
    assert trained
    assert held_out
    assert not trained & held_out
    assert case.split == case.held_out().split == Split(0.3)
    assert case.held_out().held_out().since == 0.7


def test_pods_of_one_file_are_placed_on_the_nodes_of_another(own, tmp_path):
    nodes = load_trace("openb", LoadOptions(seed=2, nodes=3, pods=1)).cluster
    save_trace(Trace("other", nodes, None), tmp_path / "nodes.yaml")
    case = Case(own, cluster=str(tmp_path / "nodes.yaml"))
    assert len(case.plan(load("first-fit")).cluster) == 3
    assert case.title == "mine.yaml on nodes.yaml"
    assert case.is_own
    assert Case(cluster=str(tmp_path / "nodes.yaml")).is_own
    assert not Case("openb:cpu050").is_own


def test_a_file_that_changed_since_a_case_was_planned_is_noticed(own):
    case = Case(own)
    planned_case = replace(case, digest=case.digest_of(case.read()))
    planned_case.read()
    save_trace(load_trace("openb", LoadOptions(seed=2, nodes=6, pods=40)), Path(own))
    with pytest.raises(InputError, match="changed"):
        planned_case.read()


def test_constraints_that_changed_are_noticed_too(own):
    case = Case(own)
    trace = case.read()
    planned_case = replace(case, digest=case.digest_of(trace))
    nodes = [replace(node, taints=(Taint("x"),)) for node in trace.cluster.specs()]
    save_trace(replace(trace, cluster=Cluster.of(nodes)), Path(own))
    with pytest.raises(InputError, match="changed"):
        planned_case.read()


def test_a_file_is_read_alike_for_every_seed(own):
    one, other = Case(own, seed=1000), Case(own, seed=1001)
    assert one.digest_of(one.read()) == other.digest_of(other.read())


def test_cases_that_share_a_file_read_it_once(own, monkeypatch):
    reads = []
    monkeypatch.setattr(
        "podium.evaluation.cases.load_trace",
        lambda *given: reads.append(given) or load_trace(*given),
    )
    plans = list(planned([Case(own, seed=1000 + i) for i in range(3)], load("first-fit")))
    assert len(reads) == 1
    assert len({plan.arrivals.names for plan in plans}) == 3


def test_a_perturbed_cluster_keeps_what_belongs_to_each_node():
    specs = [
        NodeSpec(f"node-{i}", 8000, 16000, taints=(Taint(f"key-{i}", "", "NoSchedule"),))
        for i in range(20)
    ]
    other = perturbed(Cluster.of(specs, name="tainted"), 1000)
    assert len(other.taints) == 18
    for name, (taint,) in zip(other.names, other.taints, strict=True):
        assert taint.key == name.replace("node", "key")


def test_demand_and_ties_are_part_of_a_case_that_says_them():
    case = Case(nodes=4, pods=20, demand="seen", ties="profile")
    plan = case.plan(load("fgd"))
    assert (plan.demand, plan.ties) == ("seen", "profile")
    training = TrainingSet((case,))
    assert TrainingSet.from_object(json.loads(json.dumps(training.as_object()))) == training
    usual = Case(nodes=4, pods=20)
    assert "demand" not in TrainingSet((usual,)).as_object()["cases"][0]
    assert usual.plan(load("fgd")).demand == "trace"
