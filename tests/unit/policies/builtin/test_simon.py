import numpy as np

from podium.policies.builtin.simon import Policy, demand_over_rest, filled
from support.views import node, node_records, pod


def test_a_demand_is_divided_by_what_it_leaves_of_an_empty_node():
    assert demand_over_rest(2000, 10000) == 0.25


def test_a_demand_that_leaves_nothing_counts_1_and_none_counts_0():
    assert demand_over_rest(100, 100) == 1.0
    assert demand_over_rest(0, 0) == 0.0


def test_the_larger_of_cpu_and_memory_counts_rounded_to_percent():
    # CPU: 2000/8000 = 0.25. Memory: 500/9500 = 0.0526.
    assert filled(pod(2000, 500), node((1, 10000), (1, 10000))) == 25
    # CPU: 1/199 = 0.00503, rounded to 1 percent; 1/201 = 0.00498, rounded to 0.
    assert filled(pod(1), node((1, 200))) == 1
    assert filled(pod(1), node((1, 202))) == 0


def test_the_first_of_the_nodes_that_the_pod_fills_most_is_chosen():
    views = [node((9, 100000), (9, 9999)), node((9, 4000), (9, 2000)), node((9, 4000), (9, 2000))]
    chosen = Policy(0).choose(pod(2000, 500), node_records(views), np.ones(3, bool))
    assert chosen == 1


def test_scores_reach_from_0_to_100_over_the_nodes_that_fit():
    views = [node((9, 100000), (9, 9999)), node((9, 4000), (9, 2000)), node((9, 2001), (9, 501))]
    fitting = np.array([True, True, False])
    found = Policy(0).scores(pod(2000, 500), node_records(views), fitting)
    assert found[:2].tolist() == [0, 100]
    assert found[2] < 0
