import pytest

from podium.policies.builtin.dot_product import score
from podium.policies.dot_products import METHODS, NORMS, dot_product
from support.views import node, pod

NODE = node((64000, 128000), gpus=(500, 1000, 1000, 0))  # 2500 milli left, 2000 of them free
POD = pod(32000, gpus=1, milli=250)


@pytest.mark.parametrize(
    ("method", "norm", "expected"),
    [
        # CPU 0.5 * 0.25. All GPUs: 0.3125 * 0.03125. Half of both: 0.0673828125.
        ("merge", "max", 93),
        # CPU 0.5 * 0.25. The GPU in use: 0.0625 * 0.03125, better than the free ones.
        ("share", "max", 93),
        # CPU that goes with it: 64000 * 500 / 2500 = 12800, 0.1 * 0.25. Half of both: 0.0135.
        ("divide", "max", 98),
        # As with share, over three dimensions: 0.126953125 / 3 = 0.0423.
        ("extend", "max", 95),
        # CPU 0.5 * 0.25. GPU, of 4000 on this node: 0.625 * 0.0625. Half of both: 0.082.
        ("merge", "node", 91),
        # CPU for 2 pods, GPU for 10: 6 on average, tanh(0.6) = 0.537.
        ("merge", "pod", 46),
        # CPU for 2 pods, GPU for 2: tanh(0.2) = 0.197.
        ("share", "pod", 80),
    ],
)
def test_the_best_match_counts(method, norm, expected):
    assert dot_product(POD, NODE, METHODS[method], NORMS[norm]) == expected


def test_merge_by_max_is_the_published_policy():
    for gpus in ((), (1000,), (0, 300), (1000,) * 8):
        view = node((64000, 96000), gpus=gpus)
        wanted = pod(4000, gpus=min(1, len(gpus)), milli=0)
        assert dot_product(wanted, view, METHODS["merge"], NORMS["max"]) == score(wanted, view)


def test_whole_gpus_are_matched_with_the_free_ones_alone():
    # Free: 2000 of 8000, wanted 2000: 0.0625. CPU 0.125. Half of both: 0.09375.
    assert dot_product(pod(32000, gpus=2), NODE, METHODS["share"], NORMS["max"]) == 90


def test_a_node_without_free_gpu_has_no_part_of_its_cpu_to_divide():
    full = node((64000, 128000), gpus=(0, 0))
    assert dot_product(pod(32000), full, METHODS["divide"], NORMS["max"]) == 0
    # CPU 0.125 alone, halved.
    assert dot_product(pod(32000), full, METHODS["share"], NORMS["max"]) == 93


def test_a_node_without_free_gpu_has_no_dimension_to_extend():
    full = node((64000, 128000), gpus=(0, 0))
    assert dot_product(pod(32000), full, METHODS["extend"], NORMS["max"]) == 0


def test_a_demand_of_nothing_is_not_divided_by():
    assert dot_product(pod(), NODE, METHODS["merge"], NORMS["pod"]) == 100
