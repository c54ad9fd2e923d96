import numpy as np
import pytest

from podium.model.cluster import Cluster, NodeSpec
from podium.model.records import ANY_MODEL, POD
from podium.service.extender.assumed import AssumedPods

NODES = Cluster.of([NodeSpec(name, 8000, 8000, 2, "T4") for name in ("a", "b")]).nodes
INDEX = {"a": 0, "b": 1}.get


class Clock:
    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def assumed(clock):
    return AssumedPods(2.0, clock)


def pod(cpu_milli=1000, gpu_milli=400):
    record = np.zeros(1, POD)[0]
    record["cpu_milli"], record["gpu_count"], record["gpu_milli"] = cpu_milli, 1, gpu_milli
    record["gpu_models"] = ANY_MODEL
    return record


def left(nodes):
    return nodes["cpu_milli_left"].tolist(), nodes["gpu_milli_left"][:, :2].tolist()


def test_a_pod_counts_on_the_node_where_it_probably_went(assumed):
    assumed.assume("u1", pod(), "a", 0b10)
    assert left(assumed.applied(NODES, INDEX)) == (
        [7000, 8000],
        [[1000, 600], [1000, 1000]],
    )
    assert left(NODES) == ([8000, 8000], [[1000, 1000]] * 2)


def test_it_moves_to_a_free_gpu_where_the_watch_shows_another_pod_on_its_own(assumed):
    nodes = NODES.copy()
    nodes["gpu_milli_left"][0, 0] = 0  # a pod was bound, and nobody said to which GPU
    assumed.assume("u1", pod(gpu_milli=1000), "a", 0b01)
    assert left(assumed.applied(nodes, INDEX))[1] == [[0, 0], [1000, 1000]]
    assumed.assume("u2", pod(gpu_milli=300), "b", 0b01)
    assert left(assumed.applied(nodes, INDEX))[1] == [[0, 0], [700, 1000]]


def test_it_does_not_count_when_it_is_scored_again(assumed):
    assumed.assume("u1", pod(), "a", 1)
    assert assumed.applied(NODES, INDEX, without=("u1",)) is NODES


def test_only_the_latest_call_counts(assumed):
    assumed.assume("u1", pod(), "a", 1)
    assumed.assume("u1", pod(), "b", 1)
    assert left(assumed.applied(NODES, INDEX))[0] == [8000, 7000]
    assert len(assumed) == 1


def test_it_is_forgotten_once_it_is_bound(assumed):
    assumed.assume("u1", pod(), "a", 1)
    assumed.drop("u1")
    assumed.drop("unknown")
    assert assumed.applied(NODES, INDEX) is NODES


def test_it_is_forgotten_after_a_while(assumed, clock):
    assumed.assume("u1", pod(), "a", 1)
    clock.now_s += 1.5
    assumed.assume("u2", pod(), "a", 1)
    assert len(assumed) == 2
    clock.now_s += 0.6
    assert left(assumed.applied(NODES, INDEX))[0] == [7000, 8000]
    assert assumed.get("u1") is None
    assert assumed.get("u2").node == "a"
    clock.now_s += 2
    assert len(assumed) == 0


def test_being_assumed_again_prolongs_it(assumed, clock):
    assumed.assume("u1", pod(), "a", 1)
    assumed.assume("u2", pod(), "a", 1)
    clock.now_s += 1.5
    assumed.assume("u1", pod(), "b", 1)
    clock.now_s += 1.0
    assert (assumed.get("u1").node, assumed.get("u2")) == ("b", None)


def test_a_node_that_is_gone_takes_nothing(assumed):
    assumed.assume("u1", pod(), "gone", 1)
    assert assumed.applied(NODES, INDEX) is NODES
