import numpy as np
import pytest

from podium.model import NodeSpec, PodSpec
from podium.sim.usage import usage_of
from support.runs import run_in_rounds, share_pod, three_pods

THIRD = 1000 / 3


@pytest.fixture(scope="module")
def usage():
    return usage_of(three_pods())


def test_every_placement_and_release_has_its_moment(usage):
    assert usage.time_s.tolist() == [0, 0, 2, 10, 10, 10, 16]


def test_use_is_known_after_every_change(usage):
    assert usage.gpu_milli.tolist() == [0, 1000, 3000, 2000, 0, 2000, 0]
    assert usage.cpu_milli.tolist() == [0, 1000, 3000, 2000, 0, 1000, 0]
    assert usage.memory_mib.tolist() == [0, 1000, 3000, 2000, 0, 3000, 0]


def test_nodes_in_use_are_those_that_run_a_pod(usage):
    assert usage.nodes_in_use.tolist() == [0, 1, 2, 1, 0, 1, 0]


def test_fragmentation_is_what_the_three_typical_pods_cannot_use(usage):
    # Each shape is a third of the pods. The free GPU of a, and the last free one of b, serve
    # only the pod of one GPU; three free GPUs serve all.
    assert usage.fragment_milli == pytest.approx(
        [2 * THIRD, 0, 2 * THIRD, 4 * THIRD, 2 * THIRD, 4 * THIRD, 2 * THIRD]
    )


def test_a_mean_weighs_by_time(usage):
    assert usage.mean(usage.gpu_milli) == (1000 * 2 + 3000 * 8 + 2000 * 6) / 16


def test_without_time_the_mean_is_the_last_value():
    usage = usage_of(run_in_rounds([NodeSpec("a", 1000, 0)], [PodSpec("p", 400, 0)]))
    assert usage.time_s.tolist() == [0, 0]
    assert usage.mean(usage.cpu_milli) == 400


def test_a_run_is_walked_once():
    result = three_pods()
    assert usage_of(result) is usage_of(result)


def test_a_run_without_changes_has_the_empty_cluster_only():
    usage = usage_of(run_in_rounds([NodeSpec("a", 1000, 0)], [PodSpec("p", 2000, 0)]))
    assert usage.cpu_milli.tolist() == [0]
    assert usage.mean(usage.nodes_in_use) == 0


def fragments_of(nodes, pods):
    return usage_of(run_in_rounds(nodes, pods)).fragment_milli


def test_shared_gpus_lose_what_is_left_over_and_what_cpu_pods_cannot_use():
    pods = [
        share_pod("x1", 600, cpu_milli=4000),
        share_pod("x2", 600, cpu_milli=4000),
        PodSpec("y", 6000, 0),
    ]
    found = fragments_of([NodeSpec("a", 10000, 0, 2, "X")], pods)
    empty = 2000 * 1 / 3  # lost on the pod without a GPU
    one = 400 * 2 / 3 + 1400 * 1 / 3  # 400 of a GPU are too little for another x
    two = 800  # nothing fits: two GPUs of 400, and too little CPU
    assert found == pytest.approx([empty, one, two])


def test_gpus_of_a_model_that_is_not_asked_for_are_lost():
    pods = [
        PodSpec("x", 100, 0, 1, 1000, gpu_spec="X"),
        PodSpec("y", 100, 0, 1, 1000, gpu_spec="Y"),
    ]
    nodes = [NodeSpec("a", 10000, 0, 2, "X"), NodeSpec("b", 10000, 0, 1, "Y")]
    assert fragments_of(nodes, pods) == pytest.approx([1500, 1000, 500])


def test_gpus_without_cpu_are_lost():
    pods = [PodSpec(f"x{i}", 6000, 0, 1, 1000) for i in range(2)]
    assert fragments_of([NodeSpec("a", 10000, 0, 4, "X")], pods) == pytest.approx([0, 3000])


def test_the_walk_leaves_the_cluster_alone():
    result = three_pods()
    before = result.plan.cluster.nodes.copy()
    usage_of(result)
    assert np.array_equal(result.plan.cluster.nodes, before)
