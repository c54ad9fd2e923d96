from podium.policies.builtin.best_fit import score
from support.views import node, pod


def test_half_of_what_is_left_over_of_cpu_and_half_of_gpu_are_lost_from_100():
    # CPU: 60000/128000 = 0.46875. GPU: 1000/8000 = 0.125. 100 (1 - 0.296875) = 70.3125.
    assert score(pod(4000, gpus=1, milli=500), node((64000, 96000), gpus=(1000, 500, 0))) == 70


def test_a_pod_that_leaves_nothing_scores_100():
    assert score(pod(4000, gpus=1, milli=500), node((4000, 96000), gpus=(500, 0))) == 100


def test_the_gpus_beyond_the_eighth_count():
    # 12 free GPUs: 12000/8000 = 1.5, half of it is 0.75.
    wide = node((0, 64000), gpus=(1000,) * 12, slots=16)
    assert score(pod(), wide) == 25
