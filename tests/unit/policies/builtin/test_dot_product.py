from podium.policies.builtin.dot_product import score
from support.views import node, pod


def test_half_the_dot_product_of_free_and_wanted_is_lost_from_100():
    # CPU: 0.5 * 0.03125 = 0.015625. GPU: 0.1875 * 0.0625 = 0.01171875. Half of both: 0.01367.
    assert score(pod(4000, gpus=1, milli=500), node((64000, 96000), gpus=(1000, 500))) == 98


def test_a_pod_as_large_as_the_largest_node_scores_0_on_it():
    assert score(pod(128000, gpus=8), node((128000, 128000), gpus=(1000,) * 8)) == 0
