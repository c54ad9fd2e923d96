import pytest

from podium.model import Cluster, NodeSpec, Workload
from podium.reports.funsearch_experiment import POLICIES, view_twice
from podium.sim import Replay
from support.runs import THREE_PODS, THREE_PODS_NODES, run, three_pods

CLUSTER = Cluster.of(THREE_PODS_NODES)
WORKLOAD = Workload.of(THREE_PODS)


@pytest.mark.parametrize("name", POLICIES)
def test_every_row_of_the_table_has_both_views(name):
    found = view_twice(name, CLUSTER, WORKLOAD)
    assert found.policy == name
    assert found.compatible.placed == found.true["placed"] == 3
    assert 0 <= found.compatible.score <= 1
    assert (found.true["protocol"], found.true["makespan_s"]) == ("replay", 16)


def test_ties_go_to_the_node_that_is_listed_first():
    nodes = [NodeSpec(f"n{i}", 1000, 1000, 1, "X") for i in range(20)]
    found = view_twice("first_fit", Cluster.of(nodes), Workload.of(THREE_PODS[:1]))
    listed = run(nodes, THREE_PODS[:1], Replay())
    assert listed.node.tolist() == [0]
    assert found.true["digest"] == listed.digest


def test_podium_s_view_is_the_summary_of_a_plain_replay():
    found = view_twice("first_fit", CLUSTER, WORKLOAD)
    assert found.true["digest"] == three_pods().digest
    assert found.true["wait_mean_s"] == 2


def test_the_table_s_best_fit_is_not_the_one_of_the_fgd_experiments():
    assert view_twice("best_fit", CLUSTER, WORKLOAD).true["policy"] == "funsearch-best-fit"
