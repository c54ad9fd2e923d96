from podium.policies import load
from podium.policies.builtin.first_fit import score
from support.views import node, pod


def test_every_node_scores_alike_and_ties_go_by_rank():
    assert score(pod(1), node((1, 1))) == score(pod(9), node((99, 99), gpus=(1000,)))
    assert load("first-fit").ties == "rank"
