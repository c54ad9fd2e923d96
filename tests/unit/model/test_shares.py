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


MIXED = Cluster.of(
    [NodeSpec("h100", 64_000, 64_000, 8, "H100"),
     NodeSpec("t4", 8_000, 64_000, 2, "T4", gpu_replicas=4),
     NodeSpec("mig", 64_000, 1_000, 1, "A100", gpu_replicas=7)]
)  # fmt: skip


@pytest.mark.parametrize(
    ("pod", "milli"),
    [
        (PodSpec("anywhere", 0, 0, 1, 1000), 142),
        (PodSpec("no room on mig", 0, 2_000, 1, 1000), 250),
        (PodSpec("no room on either", 9_000, 2_000, 1, 1000), 1000),
        (PodSpec("by model", 0, 0, 1, 1000, "H100"), 1000),
        (PodSpec("all slices of a node", 0, 0, 8, 1000, "T4|H100"), 2000),
        (PodSpec("half a card", 0, 0, 1, 500), 500),
        (PodSpec("none", 0, 0), 0),
        (PodSpec("fits nowhere", 99_000, 0, 1, 1000), 1000),
    ],
)
def test_a_pod_counts_the_fewest_gpus_that_it_takes_on_a_node_that_fits(pod, milli):
    assert Workload.of([pod]).on(MIXED).gpu_weight_milli.tolist() == [milli]


def test_a_pod_is_shown_as_on_the_kind_that_most_gpus_are_of():
    cluster = Cluster.of(
        [NodeSpec("a", 1000, 1000, 8, "big", gpu_memory_mib=80000),
         NodeSpec("b", 1000, 1000, 2, "small", gpu_memory_mib=16000)]
    )  # fmt: skip
    pods = [PodSpec("any", 0, 0, 1, 1, gpu_memory_mib=8000),
            PodSpec("small", 0, 0, 1, 1, "small", gpu_memory_mib=8000)]  # fmt: skip
    settled = Workload.of(pods).on(cluster)
    assert settled.pods["gpu_milli"].tolist() == [100, 500]
