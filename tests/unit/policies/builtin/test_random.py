from podium.policies import load
from podium.policies.builtin.random import score
from support.views import node, pod


def test_chance_decides_between_nodes_that_all_score_alike_and_between_their_gpus():
    policy = load("random")
    assert score(pod(1), node((1, 1))) == score(pod(9), node((99, 99), gpus=(1000,)))
    assert (policy.ties, policy.gpu_choice) == ("random", "random")
