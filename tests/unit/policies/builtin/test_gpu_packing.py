import pytest

from podium.policies.builtin.gpu_packing import score
from support.views import node, pod

USED = node(gpus=(1000, 1000, 500, 0))


def test_pods_without_gpus_score_0():
    assert score(pod(1000), USED) == 0


@pytest.mark.parametrize(("gpus", "expected"), [(1, 32), (8, 25), (16, 17)])
def test_an_idle_node_scores_less_the_more_gpus_it_has(gpus, expected):
    idle = node(gpus=(1000,) * gpus, slots=16)
    assert score(pod(gpus=1, milli=300), idle) == expected


def test_an_idle_node_never_scores_less_than_its_gpus():
    # max(33 - 17, 17) cannot happen with 16 GPUs; with them it is 33 - 16 = 17.
    assert score(pod(gpus=1), node(gpus=(1000,) * 16, slots=16)) == 17


def test_a_gpu_in_use_loses_a_tenth_of_its_free_percent_from_100():
    # The tightest GPU has 500 milli free: 50 percent, a tenth of it 5.
    assert score(pod(gpus=1, milli=300), USED) == 95


def test_the_tenth_is_rounded_down_twice():
    # 199 milli are 19 percent, and a tenth of it is 1.
    assert score(pod(gpus=1, milli=100), node(gpus=(199, 0))) == 99


def test_a_free_gpu_on_a_node_in_use_scores_below_50_by_the_gpus_it_takes():
    assert score(pod(gpus=1, milli=700), USED) == 49
    assert score(pod(gpus=2), USED) == 48


def test_free_gpus_on_a_node_in_use_never_score_below_33():
    crowded = node(gpus=(0,) + (1000,) * 18, slots=19)
    assert score(pod(gpus=18), crowded) == 33
