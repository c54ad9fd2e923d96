"""Tests where pods are that run before a run begins."""

import pytest

from podium.errors import InputError
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.sim import Replay, Rounds, Setup, simulate

CLUSTER = Cluster.of([NodeSpec("a", 8000, 8000, 2, "A"), NodeSpec("b", 8000, 8000, 2, "A")])


def pod(name, count, milli=1000, **more):
    return PodSpec(name, 100, 100, count, milli, arrival_s=0.0, duration_s=10.0, **more)


def run(*pods, protocol=None):
    return simulate(CLUSTER, Workload.of(pods), "first-fit", protocol or Rounds(),
                    Setup(ranks="listed"))  # fmt: skip


def test_pods_that_run_stay_where_they_are_and_are_not_counted_as_placed():
    result = run(pod("running", 2, node="b"), pod("new", 2), pod("late", 1))
    assert [CLUSTER.names[i] if i >= 0 else "" for i in result.node] == ["b", "a", ""]
    assert (result.metrics.placed, result.metrics.unplaced) == (1, 1)
    assert result.metrics.gpu_allocation == 1.0


def test_a_pod_is_on_the_gpus_that_are_named_and_else_on_the_tightest():
    result = run(
        pod("named", 1, 400, node="a", gpu_slots=(1,)),
        pod("likely", 1, 500, node="a"),
        pod("new", 1, 600),
    )
    assert result.slots.tolist() == [0b10, 0b10, 0b01]


def test_pods_that_run_leave_when_their_time_is_over():
    result = run(pod("running", 2, node="a"), pod("full", 2, node="b"), pod("new", 2),
                 protocol=Replay())  # fmt: skip
    assert result.start_s.tolist() == [0.0, 0.0, 10.0]


def test_nobody_holds_more_of_a_gpu_than_there_is():
    result = run(pod("one", 2, node="a"), pod("two", 1, node="a"), pod("new", 1))
    assert [slots.bit_count() for slots in result.slots.tolist()] == [2, 0, 1]
    assert result.pods["gpu_count"].tolist() == [2, 1, 1]  # what it asks for stays the same
    assert result.metrics.gpu_allocation == 0.75


def test_a_node_that_the_cluster_lacks_is_named():
    with pytest.raises(InputError, match='pod "lost" runs on node "z"'):
        run(pod("lost", 1, node="z"))
