from podium.policies.builtin.worst_fit import score
from support.views import node, pod


def test_what_is_left_over_is_the_score_with_gpu_milli_a_hundredfold():
    assert score(pod(4000, gpus=1, milli=500), node((64000, 96000), gpus=(1000, 500))) == 160000


def test_the_emptier_node_wins():
    small, large = node((8000, 8000)), node((64000, 96000))
    assert score(pod(1000), large) > score(pod(1000), small)
