import math

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.records import NODE_8, node_view, pod_view
from podium.policies import HOLD, from_function
from podium.sim.callback import ClusterCallback, PairCallback

WIDE = Cluster.of([NodeSpec("n0", 8000, 900, 16, "B", "r1"), NodeSpec("n1", 4000, 700)]).nodes
NARROW = Cluster.of([NodeSpec("n0", 8000, 900, 3, "B", "r1"), NodeSpec("n1", 4000, 700)]).nodes
PODS = Workload.of(
    [PodSpec("a", 1, 2, 1, 300, "B", priority=-4, gang="g"), PodSpec("b", 5, 6)]
).pods
TABLE = np.array([2.5])


def address(records, index):
    return records.ctypes.data + index * records.dtype.itemsize


def pair(function, nodes):
    return PairCallback(from_function(function), nodes, PODS, TABLE)


@pytest.mark.parametrize("nodes", [WIDE, NARROW])
def test_a_policy_sees_the_records_at_the_addresses_of_the_core(nodes):
    seen = []

    def score(pod, node):
        seen.append((pod, node))
        return 1

    callback = pair(score, nodes)
    for pod, node in [(0, 1), (1, 0)]:
        assert callback(address(PODS, pod), address(nodes, node), -1) == 1.0
    assert seen == [
        (pod_view(PODS[0]), node_view(nodes[1])),
        (pod_view(PODS[1]), node_view(nodes[0])),
    ]


def test_a_policy_sees_a_node_as_it_is_now():
    nodes = NARROW.copy()
    callback = pair(lambda pod, node: node.gpu_milli_left[2] + pod.gpu_count, nodes)
    nodes["gpu_milli_left"][0, 2] = 77
    assert callback(address(PODS, 0), address(nodes, 0), -1) == 78.0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda pod, node: pod.cpu_milli + node.cpu_milli_left, 8001.0),
        (lambda pod, node, gpu: pod.cpu_milli + node.gpu_count + gpu, 1 + 3 + 2.0),
        (lambda pod, node, table: pod.cpu_milli + node.gpu_count + table[0], 6.5),
        (lambda pod, node, gpu, table: pod.cpu_milli + node.gpu_count + gpu + table[0], 8.5),
    ],
)
def test_a_policy_gets_the_arguments_that_it_names(function, expected):
    assert pair(function, NARROW)(address(PODS, 0), address(NARROW, 0), 2) == expected


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(3)])
def test_an_exception_is_kept_and_answered_with_nan(error):
    def score(pod, node):  # noqa: ARG001
        raise error

    callback = pair(score, NARROW)
    assert math.isnan(callback(address(PODS, 0), address(NARROW, 0), -1))
    assert callback.error is error


def test_a_score_that_is_no_number_is_an_exception_too():
    callback = pair(lambda pod, node: (pod, node), NARROW)
    assert math.isnan(callback(address(PODS, 0), address(NARROW, 0), -1))
    assert isinstance(callback.error, TypeError)


class Chooser:
    def __init__(self, choose):
        self.choose = choose


def cluster_callback(choose):
    return ClusterCallback(Chooser(choose), NARROW.copy(), PODS, np.array([True, False]))


@pytest.mark.parametrize(("choice", "answer"), [(1, 1.0), (np.int64(0), 0.0), (HOLD, -math.inf)])
def test_a_choice_is_passed_on(choice, answer):
    callback = cluster_callback(lambda _pod, _nodes, _feasible: choice)
    assert callback(0, 0, -1) == answer
    assert callback.choice == choice


def test_a_chooser_sees_the_pod_all_nodes_and_which_are_feasible():
    def choose(pod, nodes, feasible):
        assert pod == pod_view(PODS[1])
        assert nodes["cpu_milli_left"].tolist() == [8000, 4000]
        return int(np.flatnonzero(feasible)[0])

    callback = cluster_callback(choose)
    assert callback(1, 0, -1) == 0.0
    assert callback.error is None


@pytest.mark.parametrize(
    "change",
    [
        lambda nodes, _feasible: nodes["cpu_milli_left"].fill(0),
        lambda nodes, _feasible: nodes["gpu_milli_left"].__setitem__(0, 0),
        lambda _nodes, feasible: feasible.fill(True),
    ],
)
def test_a_chooser_cannot_change_what_it_sees(change):
    callback = cluster_callback(lambda _pod, nodes, feasible: change(nodes, feasible) or 0)
    assert math.isnan(callback(0, 0, -1))
    assert "read-only" in str(callback.error)


def test_what_a_chooser_sees_cannot_be_made_writeable():
    seen = []

    class Curious:
        def choose(self, _pod, nodes, feasible):
            seen.extend([nodes, feasible])
            return 0

    nodes, feasible = np.zeros(3, NODE_8), np.ones(3, bool)
    ClusterCallback(Curious(), nodes, PODS, feasible)(0, 0, -1)
    nodes["rack"] = 7
    for array, original in zip(seen, (nodes, feasible), strict=True):
        assert np.array_equal(array, original)
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
