import numpy as np
import pytest

from podium.errors import UsageError
from podium.model import Cluster
from podium.model.state import ClusterState
from podium.policies import load
from podium.sim import Inflation, Replay, Rounds, Setup, simulate
from podium.sim.result import slots_of
from podium.sim.state_at import running_at, state_at
from support.instances import random_cluster, random_workload

RANDOM = np.random.default_rng(11)
CLUSTER, WORKLOAD = random_cluster(12, RANDOM), random_workload(150, RANDOM)


def replayed(result):
    """Yields the nodes after each change, by taking and returning pod by pod."""
    state, pods = ClusterState(result.plan.cluster.nodes), result.plan.arrivals.pods
    running = set()
    yield state.nodes.copy(), set()
    for change in result.changes.tolist():
        pod = abs(change) - 1
        act = state.allocate if change > 0 else state.release
        act(pods[pod], int(result.node[pod]), slots_of(int(result.slots[pod])))
        running ^= {pod}
        yield state.nodes.copy(), set(running)


@pytest.mark.parametrize("protocol", [Replay(), Inflation(), Rounds()], ids=lambda each: each.name)
def test_every_moment_of_a_run_is_what_its_changes_make_of_the_cluster(protocol):
    result = simulate(CLUSTER, WORKLOAD, load("best-fit"), protocol, Setup(seed=1000))
    assert len(result.changes) > 10
    for changes, (nodes, running) in enumerate(replayed(result)):
        assert state_at(result, changes).tobytes() == nodes.tobytes()
        assert set(running_at(result, changes).tolist()) == running


def test_what_ran_before_the_run_stays():
    used = Cluster.of(CLUSTER.specs())
    used.nodes["cpu_milli_left"] //= 2
    used.nodes["gpu_classes"] = 0b100
    result = simulate(used, WORKLOAD, load("best-fit"), Replay(), Setup(seed=1000))
    assert state_at(result, 0).tobytes() == used.nodes.tobytes()
    assert state_at(result, len(result.changes)).tobytes() == used.nodes.tobytes()
    middle = state_at(result, len(result.changes) // 2)
    assert (middle["gpu_classes"] & 0b100).all()
    assert (middle["gpu_classes"] != 0b100).any()


@pytest.mark.parametrize("changes", [-1, 301])
def test_a_moment_that_the_run_does_not_have_is_refused(changes):
    result = simulate(CLUSTER, WORKLOAD, load("best-fit"), Replay(), Setup(seed=1000))
    with pytest.raises(UsageError, match=f"the state after {changes} changes was asked for"):
        state_at(result, changes)
