from podium.policies.builtin.gpu_clustering import score
from support.views import node, pod

SHARE, ONE, TWO = 1, 1 << 1, 1 << 2
A_SHARE = pod(gpus=1, milli=300)


def used(classes):
    # 1500 of 8000 milli are in use: 25 * 1500 / 8000 = 4.6, cut to 4.
    return node(gpus=(1000,) * 6 + (500, 0), classes=classes)


def test_pods_without_gpus_score_0():
    assert score(pod(1000), used(SHARE)) == 0


def test_a_node_with_pods_of_this_kind_only_scores_75_and_more():
    assert score(A_SHARE, used(SHARE)) == 79
    assert score(pod(gpus=2), used(TWO)) == 79


def test_a_node_with_this_kind_among_others_scores_50_and_more():
    assert score(A_SHARE, used(SHARE | ONE)) == 54


def test_a_node_without_gpu_pods_scores_25_and_more():
    # 4 GPUs of the 8 that a node is measured by do not exist: 25 * 4000 / 8000 = 12.
    assert score(A_SHARE, node(gpus=(1000,) * 4)) == 37


def test_a_node_with_other_kinds_only_scores_least():
    assert score(A_SHARE, used(ONE | TWO)) == 4
    assert score(pod(gpus=1), used(SHARE)) == 4


def test_a_node_with_more_than_8_gpus_is_measured_by_its_own():
    assert score(A_SHARE, node(gpus=(1000,) * 16, slots=16)) == 25
