import numpy as np
import pytest

from podium.policies.builtin.fgd import score
from support.views import node, pod

# Typical pods: three quarters take half a GPU and 1 CPU, one quarter no GPU and 2 CPUs.
TABLE = np.array([(1000, 500, 1, 0.75, 2**32 - 1, 2**32 - 1), (2000, 0, 0, 0.25, 0, 0)], float)
NODE = node((3000, 8000), gpus=(1000, 400))
# 400 milli are too few for the first: 0.75 * 400. The second uses no GPU: 0.25 * 1400. F = 650.


@pytest.mark.parametrize(
    ("wanted", "gpu", "expected"),
    [
        # F = 0.25 * 1000. D = 400: 100 / (1 + exp(-0.4)) = 59.87.
        (pod(500, gpus=1, milli=400), 1, 59),
        # F = 0.75 * 400 + 0.25 * 1000. D = 100: 52.50.
        (pod(500, gpus=1, milli=400), 0, 52),
        # Too little CPU is left for both: F = 1400. D = -750: 32.08.
        (pod(2500), -1, 32),
        # No GPU fits half a GPU any more: F = 400. D = 250: 56.22.
        (pod(1000, gpus=1), -1, 56),
    ],
)
def test_the_fall_of_fragmentation_becomes_a_whole_number_around_50(wanted, gpu, expected):
    assert score(wanted, NODE, gpu, TABLE) == expected


def test_no_change_scores_50():
    full = node((3000, 8000), gpus=(0, 0))
    assert score(pod(100), full, -1, TABLE) == 50


def test_of_gpus_with_as_much_free_only_the_lowest_is_weighed():
    twins = node((3000, 8000), gpus=(1000, 1000))
    half = pod(100, gpus=1, milli=500)
    assert score(half, twins, 0, TABLE) > 0
    assert score(half, twins, 1, TABLE) == 0


def test_the_gpus_beyond_the_eighth_count():
    wide = node((3000, 8000), gpus=(0,) * 9 + (1000, 400), slots=16)
    assert score(pod(500, gpus=1, milli=400), wide, 10, TABLE) == 59
