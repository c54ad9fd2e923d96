import numpy as np

from podium.policies.builtin.round_robin import Policy
from support.views import pod

ALL = np.ones(3, bool)


def choices(rounds):
    policy = Policy(0)
    return [policy.choose(pod(), None, feasible) for feasible in rounds]


def test_nodes_take_turns_and_the_first_follows_the_last():
    assert choices([ALL] * 5) == [0, 1, 2, 0, 1]


def test_a_node_that_does_not_fit_is_skipped():
    assert choices([ALL, np.array([True, False, True]), ALL]) == [0, 2, 0]


def test_the_turn_wraps_round_to_the_first_node_that_fits():
    only_second = np.array([False, True, False])
    assert choices([ALL, ALL, ALL, only_second, ALL]) == [0, 1, 2, 1, 2]


def test_every_run_begins_with_the_first_node():
    assert choices([ALL]) == choices([ALL]) == [0]
