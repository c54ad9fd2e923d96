import pytest

from podium.policies.builtin.balanced import growth, score
from support.views import node, pod


def test_the_roots_of_the_used_shares_grow_by_their_sum():
    # CPU 0.25 to 0.36: 0.1. Memory 0.25 to 0.64: 0.3. GPU 0.09 to 0.16: 0.1.
    used = node((7500, 10000), (300, 400), gpus=(640, 1000, 1000, 1000))
    assert score(pod(1100, 156, gpus=1, milli=280), used) == pytest.approx(0.5)


def test_the_idle_node_wins_over_one_in_use():
    idle, busy = node((10000, 10000), (100, 100)), node((5000, 10000), (50, 100))
    assert score(pod(1000, 10), idle) > score(pod(1000, 10), busy)


def test_a_resource_that_the_node_lacks_adds_nothing():
    assert growth(0, 0, 0) == 0.0
