"""Tests which share of a GPU a request is on each kind of GPU."""

import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.cluster import GpuKind
from podium.model.shares import IMPOSSIBLE, share_on, spreads_on

T4, SLICED, UNKNOWN = GpuKind("T4", 16384), GpuKind("T4", 16384, 4), GpuKind("T4")
SLICED_UNEVENLY = GpuKind("A100", has_partitions=True)


@pytest.mark.parametrize(
    ("asked", "kind", "share"),
    [
        ((0, 0, 0), T4, (0, 0)),
        ((2, 1000, 0), T4, (2, 1000)),
        ((2, 400, 0), SLICED, (2, 400)),  # a part of a card is a part, however it is advertised
        ((1, 1, 8192), T4, (1, 500)),
        ((1, 700, 8192), T4, (1, 700)),  # the larger of both
        ((1, 1, 5461), T4, (1, 333)),  # three thirds of a card are a card
        ((1, 1, 5462), T4, (1, 334)),  # three of them are not
        ((1, 1, 10000), T4, (1, 611)),
        ((1, 1, 6396), T4, (1, 391)),
        ((1, 1, 16385), T4, (IMPOSSIBLE, 0)),
        ((1, 1, 8192), UNKNOWN, (IMPOSSIBLE, 0)),
        ((1, 1000, 0), SLICED, (1, 250)),
        ((3, 1000, 0), SLICED, (1, 750)),
        ((4, 1000, 0), SLICED, (1, 1000)),
        ((5, 1000, 0), SLICED, (2, 625)),
        ((1, 428, 0), SLICED_UNEVENLY, (1, 428)),
        ((3, 1000, 0), GpuKind("A", 0, 3), (1, 1000)),
    ],
)
def test_a_request_is_a_share_of_each_kind(asked, kind, share):
    assert share_on(*asked, kind) == share


@pytest.mark.parametrize(
    ("asked", "kind", "spreads"),
    [
        ((2, 1000, 0), T4, []),
        ((2, 400, 0), SLICED, []),  # a part of a card is a part, however it is advertised
        ((2, 1, 8192), SLICED, []),
        ((1, 1000, 0), SLICED, [(2, 125), (3, 83), (4, 62)]),
        ((2, 1000, 0), SLICED, [(2, 250), (3, 166), (4, 125)]),
        ((3, 1000, 0), SLICED, [(3, 250), (2, 375), (4, 187)]),  # whole devices come first
        ((8, 1000, 0), GpuKind("A", 0, 2), [(4, 1000)]),
        ((1, 428, 0), SLICED_UNEVENLY, [(2, 214), (3, 142), (4, 107)]),
        ((2, 571, 0), SLICED_UNEVENLY, [(3, 380), (4, 285)]),
    ],
)
def test_devices_of_shared_cards_may_lie_on_more_of_them(asked, kind, spreads):
    assert spreads_on(*asked, kind, 4) == spreads


def test_demand_is_measured_on_the_kind_that_most_gpus_are_of():
    cluster = Cluster.of(
        [NodeSpec("a", 1000, 1000, 8, "big", gpu_memory_mib=80000),
         NodeSpec("b", 1000, 1000, 2, "small", gpu_memory_mib=16000)]
    )  # fmt: skip
    pods = [PodSpec("any", 0, 0, 1, 1, gpu_memory_mib=8000),
            PodSpec("small", 0, 0, 1, 1, "small", gpu_memory_mib=8000)]  # fmt: skip
    settled = Workload.of(pods).on(cluster)
    assert settled.pods["gpu_milli"].tolist() == [100, 500]
