from podium.policies import load
from podium.policies.builtin.kube_default import balanced_allocation, score
from support.views import node, pod


def test_the_free_share_and_the_gain_in_balance_are_added_up():
    # Free with the pod: CPU 50, memory 25, on average 37. Balance before: 0.25 and 0.25, 100.
    # Balance after: 0.5 and 0.75, 100 (1 - 0.125) = 87. Gain: 50 + (50 + 87 - 100) // 2 = 68.
    used = node((7500, 10000), (768, 1024))
    assert balanced_allocation(pod(2500, 512), used) == 68
    assert score(pod(2500, 512), used) == 37 + 68


def test_a_pod_that_asks_for_nothing_gains_no_balance():
    # Free with the default requests of 100 milli and 200 MiB: CPU 90, memory 50, 70 on average.
    assert balanced_allocation(pod(), node((1000, 1000), (400, 400))) == 0
    assert score(pod(), node((1000, 1000), (400, 400))) == 70


def test_ties_are_broken_by_chance():
    assert load("kube-default").ties == "random"
