import numpy as np
import pytest

from podium.policies.mixture import Mixture, Term, stretched
from support.views import node, node_records, pod

NODES = node_records([node((cpu, 9000)) for cpu in (1000, 4000, 3000, 4000)])
ALL = np.ones(4, bool)


def free(pod, node):  # noqa: ARG001
    return node.cpu_milli_left // 1000


def like_the_first(pod, node):  # noqa: ARG001
    return 10 if node.cpu_milli_left == 1000 else 0


def made(*terms, ties="rank"):
    return type("Policy", (Mixture,), {"terms": terms, "ties": ties})


def test_scores_are_stretched_to_100_over_the_nodes_that_fit():
    assert stretched(np.array([1, 4, 3, 4])).tolist() == [0, 100, 66, 100]
    assert stretched(np.array([7, 7])).tolist() == [0, 0]


def test_weighted_terms_are_added_up():
    policy = made(Term(1, free), Term(2, like_the_first))(0)
    assert policy.scores(pod(), NODES, ALL).tolist() == [21, 4, 3, 4]
    assert policy.choose(pod(), NODES, ALL) == 0


def test_a_stretched_term_outweighs_what_it_did_not_before():
    policy = made(Term(1, free, "stretched"), Term(2, like_the_first))(0)
    assert policy.scores(pod(), NODES, ALL).tolist() == [20, 100, 66, 100]


def test_only_nodes_that_fit_are_stretched_and_chosen():
    policy = made(Term(1, free, "stretched"))(0)
    fitting = np.array([True, False, True, False])
    found = policy.scores(pod(), NODES, fitting)
    assert found[fitting].tolist() == [0, 100]
    assert policy.choose(pod(), NODES, fitting) == 2


def test_ties_go_to_the_first_node_or_to_any():
    assert made(Term(1, free))(0).choose(pod(), NODES, ALL) == 1
    by_chance = made(Term(1, free), ties="random")(0)
    assert {by_chance.choose(pod(), NODES, ALL) for _ in range(50)} == {1, 3}


def test_a_term_of_chance_gives_100_to_one_node():
    policy = made(Term(3, None, "chance"))(1)
    for _ in range(5):
        assert sorted(policy.scores(pod(), NODES, ALL)) == [0, 0, 0, 300]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_repeats_the_choices(seed):
    runs = [made(Term(1, None, "chance"))(seed) for _ in range(2)]
    first, second = ([run.choose(pod(), NODES, ALL) for _ in range(9)] for run in runs)
    assert first == second


def test_nodes_with_more_than_8_gpus_are_scored_as_well():
    wide = node_records([node((cpu, 9000), gpus=(1000,) * 12, slots=16) for cpu in (1000, 4000)])
    wide.flags.writeable = False
    assert made(Term(1, free))(0).choose(pod(), wide, np.ones(2, bool)) == 1
