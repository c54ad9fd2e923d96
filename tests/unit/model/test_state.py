import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.fit import fits, fitting_nodes, tightest_slots
from podium.model.state import ClusterState, occupied
from support.instances import random_cluster, random_workload

NODES = Cluster.of([NodeSpec("a", 64_000, 64_000, 8, "X"), NodeSpec("b", 8000, 8000)]).nodes


def pods(*specs):
    return Workload.of(
        PodSpec(f"pod-{i}", 1000, 500, gpus, milli) for i, (gpus, milli) in enumerate(specs)
    ).pods


def test_a_pod_takes_its_resources_and_gives_them_back():
    state = ClusterState(NODES)
    (pod,) = pods((1, 300))
    state.allocate(pod, 0, (2,))
    taken = state.nodes[0]
    assert (taken["cpu_milli_left"], taken["memory_mib_left"]) == (63_000, 63_500)
    assert taken["gpu_milli_left"].tolist() == [1000, 1000, 700, *[1000] * 5]
    assert taken["gpu_classes"] == 0b1
    state.release(pod, 0, (2,))
    assert state.nodes.tobytes() == NODES.tobytes()


def test_the_nodes_that_a_state_is_made_of_stay_as_they_are():
    before = NODES.tobytes()
    ClusterState(NODES).allocate(pods((2, 1000))[0], 0, (0, 1))
    assert NODES.tobytes() == before


def test_a_class_stays_until_its_last_pod_leaves():
    state = ClusterState(NODES)
    share, twin, four, without = pods((1, 200), (1, 300), (4, 1000), (0, 0))
    for pod, slots in ((share, (0,)), (twin, (1,)), (four, (2, 3, 4, 5)), (without, ())):
        state.allocate(pod, 0, slots)
    assert state.nodes["gpu_classes"].tolist() == [0b10001, 0]
    state.release(share, 0, (0,))
    assert state.nodes["gpu_classes"][0] == 0b10001
    state.release(twin, 0, (1,))
    assert state.nodes["gpu_classes"][0] == 0b10000
    state.release(four, 0, (2, 3, 4, 5))
    assert state.nodes["gpu_classes"][0] == 0


def test_a_class_that_a_node_begins_with_never_leaves_it():
    nodes = NODES.copy()
    nodes["gpu_classes"][0] = 0b101
    state = ClusterState(nodes)
    (pair,) = pods((2, 1000))
    state.allocate(pair, 0, (0, 1))
    state.release(pair, 0, (0, 1))
    assert state.nodes["gpu_classes"][0] == 0b101


@pytest.mark.parametrize("seed", range(5))
def test_nodes_fit_and_fill_at_once_as_they_do_one_by_one(seed):
    random = np.random.default_rng(seed)
    cluster = random_cluster(40, random)
    workload = random_workload(200, random).aligned(cluster.gpu_models)
    state, seen, placed = ClusterState(cluster.nodes), set(), []
    for index, pod in enumerate(workload.pods):
        fitting = fitting_nodes(pod, state.nodes)
        assert fitting.tolist() == [fits(pod, node) for node in state.nodes]
        seen |= set(fitting.tolist())
        if fitting.any():
            node = int(fitting.argmax())
            slots = tightest_slots(pod, state.nodes[node])
            state.allocate(pod, node, slots)
            placed.append((index, node, sum(1 << slot for slot in slots)))
    assert seen == {True, False}
    indices, at, masks = np.array(placed).T
    at_once = occupied(cluster.nodes, workload.pods[indices], at, masks)
    assert at_once.tobytes() == state.nodes.tobytes()
