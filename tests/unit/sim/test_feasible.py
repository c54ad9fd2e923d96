import pytest

from podium.errors import InputError, UnknownName
from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints, HostPort, Taint, Toleration
from podium.sim.feasible import feasible_nodes, moment_at, moment_before, present_plan
from support.runs import three_pods

PORT = Constraints(host_ports=(HostPort(80),))
CLUSTER = Cluster.of(
    [
        NodeSpec("free", 4000, 1000, 2, "A"),
        NodeSpec("tainted", 4000, 1000, 2, "A", taints=(Taint("spot"),)),
        NodeSpec("full", 4000, 1000, 1, "A"),
    ]
)


def workload(*pods):
    return Workload.of(pods)


RUNS = PodSpec("runs", 1000, 10, 1, 1000, node="full", constraints=PORT)


def test_bound_pods_are_where_they_are_and_nobody_else_runs():
    pending = PodSpec("pending", 1000, 10, 1, 1000)
    other = PodSpec("other", 4000, 10, 2, 1000)  # would fill a node if it ran
    spot = PodSpec(
        "spot", 1000, 10, constraints=Constraints(tolerations=(Toleration("spot", "Exists"),))
    )
    found = workload(other, pending, RUNS, spot)
    assert feasible_nodes(CLUSTER, found, "pending") == ["free"]
    assert feasible_nodes(CLUSTER, found, "spot") == ["free", "tainted", "full"]


def test_a_bound_pod_does_not_stand_in_its_own_way():
    twin = PodSpec("twin", 1000, 10, 1, 1000, constraints=PORT)
    found = workload(RUNS, twin)
    assert feasible_nodes(CLUSTER, found, "runs") == ["free", "full"]
    assert feasible_nodes(CLUSTER, found, "twin") == ["free"]


def test_a_pod_that_nobody_could_take_has_no_nodes():
    assert feasible_nodes(CLUSTER, workload(PodSpec("big", 9000, 1)), "big") == []


def test_unknown_pods_and_nodes_are_told():
    with pytest.raises(UnknownName, match='unknown pod "runz"'):
        feasible_nodes(CLUSTER, workload(RUNS), "runz")
    lost = PodSpec("lost", 1, 1, node="elsewhere")
    with pytest.raises(InputError, match='runs on node "elsewhere"'):
        feasible_nodes(CLUSTER, workload(lost), "lost")


def test_a_moment_of_a_run_is_that_after_its_changes():
    result = three_pods()  # p0 on a, p1 on b, and p2 waits until both have left
    pod = result.plan.arrivals.names.index("p2")
    assert moment_at(result, 0).feasible(pod).tolist() == [False, True]
    assert moment_at(result, 2).feasible(pod).tolist() == [False, False]
    assert moment_at(result).feasible(pod).tolist() == [False, True]


def test_trying_pods_leaves_the_moment_as_it_is():
    found = workload(*(PodSpec(f"p{i}", 1, 1, 2, 1000) for i in range(3)))
    moment = moment_before(present_plan(CLUSTER, found))
    after, seated = moment.seated(moment.state.arrays["shape_of"] * 0 + [0, 1, 2])
    assert seated.tolist() == [True, False, False]
    assert after.feasible(0).tolist() == [False, False, False]
    assert moment.feasible(0).tolist() == [True, False, False]
