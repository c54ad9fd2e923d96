from podium.policies import load
from podium.policies.builtin.kube_most_allocated import score
from support.views import node, pod


def test_the_used_share_and_the_gain_in_balance_are_added_up():
    # In use with the pod: CPU 50, memory 75, 62 on average. Gain in balance as by default: 68.
    assert score(pod(2500, 512), node((7500, 10000), (768, 1024))) == 62 + 68


def test_ties_are_broken_by_chance():
    assert load("kube-most-allocated").ties == "random"
