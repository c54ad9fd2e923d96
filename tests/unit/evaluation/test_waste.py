from dataclasses import replace

import pytest

from podium.evaluation.cases import Case, demo_cases
from podium.evaluation.measures import measure_case
from podium.evaluation.waste import (
    LOSSES,
    MedianPod,
    are_in_use,
    are_losses,
    measure_in_use,
    measure_losses,
)
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import load
from podium.sim import Replay, Rounds, simulate
from podium.sim.execution import execute
from podium.sim.metrics import POD_CLASSES, placed_share

PART = PodSpec("part", 4000, 1000, 1, 600)
PAIR = PodSpec("pair", 8000, 1000, 2, 1000)
USUAL = MedianPod(4000.0, 1000.0, 500.0)


def lost(nodes, pods, median_pod=USUAL):
    """Places pods first-fit on nodes, each a CPU and a number of GPUs."""
    cluster = Cluster.of(
        NodeSpec(f"n{i}", cpu, 64_000, gpus, "P100") for i, (cpu, gpus) in enumerate(nodes)
    )
    named = [replace(pod, name=f"p{i}") for i, pod in enumerate(pods)]
    result = simulate(cluster, Workload.of(named), load("first-fit"), Rounds())
    return measure_losses(result, median_pod)


def test_parts_too_small_for_usual_pods_are_broken():
    found = lost([(64_000, 2)], [PART, PART])
    assert [found[key] for key in LOSSES] == [0.0, 40.0, 0.0]


def test_parts_that_usual_pods_could_take_are_idle():
    found = lost([(64_000, 2)], [replace(PART, gpu_milli=500)] * 3)
    assert [found[key] for key in LOSSES] == [0.0, 0.0, 25.0]


def test_whole_gpus_on_a_node_without_cpu_are_stranded():
    found = lost([(11_000, 4)], [PAIR])
    assert [found[key] for key in LOSSES] == [50.0, 0.0, 0.0]


def test_whole_gpus_on_a_node_without_memory_are_stranded():
    found = lost([(64_000, 4)], [replace(PAIR, memory_mib=63_500)])
    assert [found[key] for key in LOSSES] == [50.0, 0.0, 0.0]


def test_whole_gpus_on_a_node_with_cpu_are_idle():
    found = lost([(12_000, 4), (64_000, 4)], [PAIR])
    assert [found[key] for key in LOSSES] == [0.0, 0.0, 75.0]


def test_a_broken_part_stays_broken_where_there_is_no_cpu():
    found = lost([(4000, 1)], [PART])
    assert [found[key] for key in LOSSES] == [0.0, 40.0, 0.0]


def test_usual_pods_are_those_in_the_middle():
    pods = [replace(PART, name=f"{milli}", gpu_milli=milli) for milli in (100, 300, 900)]
    pods += [replace(PAIR, cpu_milli=20_000), PodSpec("cpu", 90_000, 90_000)]
    assert MedianPod.of(Workload.of(pods).pods) == MedianPod(4000.0, 1000.0, 300.0)
    assert MedianPod.of(Workload.of(pods[4:]).pods) == MedianPod()


def test_without_pods_for_parts_every_broken_gpu_is_broken():
    found = lost([(64_000, 1)], [replace(PART, gpu_milli=1)], MedianPod())
    assert [found[key] for key in LOSSES] == [0.0, 99.9, 0.0]


@pytest.mark.parametrize("case", [Case(nodes=24), Case(nodes=24, seed=1001, is_perturbed=True)])
@pytest.mark.parametrize("policy", ["fgd", "worst-fit"])
def test_losses_add_up_to_what_is_not_allocated(case, policy):
    plan = case.plan(load(policy))
    result = execute(plan)
    found = measure_losses(result, MedianPod.of(plan.trace.pods))
    pods = plan.arrivals.pods[result.is_placed]
    used = (pods["gpu_count"] * pods["gpu_milli"]).sum() / plan.cluster.gpu_milli_total
    assert sum(found[key] for key in LOSSES) == pytest.approx(100 * (1 - used), abs=0.002)
    assert are_losses(found, measure_case(result))


def test_placed_pods_are_counted_by_class():
    plan = Case(nodes=24).plan(load("fgd"))
    result = execute(plan)
    found = measure_losses(result, MedianPod.of(plan.trace.pods))
    placed = {key: value for key, value in found.items() if key in POD_CLASSES}
    assert placed == pytest.approx(
        {key: 100 * value for key, value in placed_share(result).items()}, abs=1e-3
    )


def test_a_replay_is_looked_at_when_the_last_pod_arrives():
    def pod(name, arrival_s, duration_s, gpus):
        return PodSpec(name, 1000, 1000, gpus, 1000, arrival_s=arrival_s, duration_s=duration_s)

    cluster = Cluster.of([NodeSpec("n", 64_000, 64_000, 4, "P100")])
    pods = [pod("gone", 0.0, 5.0, 4), pod("here", 6.0, 50.0, 1), pod("late", 7.0, 1.0, 4),
            pod("last", 8.0, 1.0, 2)]  # fmt: skip
    result = simulate(cluster, Workload.of(pods), load("first-fit"), Replay())
    found = measure_losses(result, USUAL)
    assert result.is_placed.all()
    assert found["4-gpu"] == 50.0
    assert found["1-gpu"] == 100.0
    assert sum(found[key] for key in LOSSES) == 25.0


def test_gpus_are_in_use_by_model_even_if_a_pod_has_a_part_of_one():
    cluster = Cluster.of(
        [NodeSpec("a", 64_000, 64_000, 2, "T4"), NodeSpec("b", 64_000, 64_000, 6, "P100")]
    )
    pods = [replace(PART, name="one", gpu_milli=400), replace(PART, name="two"),
            replace(PAIR, name="three")]  # fmt: skip
    result = simulate(cluster, Workload.of(pods), load("first-fit"), Rounds())
    found = measure_in_use(result)
    assert found == {"in_use_T4": 12.5, "in_use_P100": 25.0}  # two parts share one of eight
    assert are_in_use(found)


def test_a_replay_s_gpus_in_use_are_those_of_the_pods_that_still_run():
    def pod(name, arrival_s, duration_s):
        return PodSpec(name, 1000, 1000, 1, 1000, arrival_s=arrival_s, duration_s=duration_s)

    cluster = Cluster.of([NodeSpec("n", 64_000, 64_000, 4, "T4")])
    pods = Workload.of([pod("gone", 0.0, 5.0), pod("here", 1.0, 50.0), pod("last", 8.0, 1.0)])
    assert measure_in_use(simulate(cluster, pods, load("first-fit"), Replay())) == {
        "in_use_T4": 50.0
    }


@pytest.mark.parametrize("value", [-1.0, 101.0, float("nan"), "much", True, None])
def test_more_gpus_than_there_are_cannot_be_in_use(value):
    assert not are_in_use({"in_use_T4": value})
    assert not are_in_use({"in_use_T4": 60.0, "in_use_P100": 60.0})


def test_a_cluster_without_gpus_loses_none():
    found = lost([(64_000, 0)], [PodSpec("p", 1000, 1000)])
    assert found == {"stranded": 0.0, "broken": 0.0, "idle": 0.0, "cpu-only": 100.0}


def test_replays_of_the_demo_can_be_measured():
    (case,) = demo_cases(("replay",), 1)
    plan = case.plan(load("first-fit"))
    result = execute(plan)
    assert are_losses(measure_losses(result, MedianPod.of(plan.trace.pods)), measure_case(result))
