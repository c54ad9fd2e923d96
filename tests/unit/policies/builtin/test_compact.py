from podium.policies.builtin.compact import growth, score
from support.views import node, pod


def test_the_squares_of_the_used_shares_grow_by_their_sum():
    # CPU 0.5 to 0.75: 0.3125. Memory 0.25 to 0.5: 0.1875. GPU 0 to 0.25: 0.0625.
    used = node((5000, 10000), (300, 400), gpus=(1000,) * 4)
    assert score(pod(2500, 100, gpus=1), used) == 0.5625


def test_the_node_in_use_wins_over_an_idle_one():
    idle, busy = node((10000, 10000), (100, 100)), node((5000, 10000), (50, 100))
    assert score(pod(1000, 10), busy) > score(pod(1000, 10), idle)


def test_a_resource_that_the_node_lacks_adds_nothing():
    assert growth(0, 0, 0) == 0.0
