"""Several devices of shared cards: which cards a pod gets, whoever else runs there."""

import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.model.constraints import Constraints
from podium.sim import Replay, Rounds, Setup
from podium.sim.audit import audit
from podium.sim.feasible import feasible_nodes
from podium.sim.result import slots_of
from support.runs import run


def cards(count, replicas):
    return [NodeSpec("a", 64000, 64000, count, "T4", gpu_replicas=replicas)]


def devices(name, count, **fields):
    return PodSpec(name, 10, 10, count, 1000, **fields)


def held(*counts):
    """Describes pods that hold so many devices of one card each, from slot 0 on."""
    return [
        devices(f"held-{slot}", count, node="a", gpu_slots=(slot,))
        for slot, count in enumerate(counts)
        if count
    ]


@pytest.mark.parametrize(
    ("taken", "asked", "fits"),
    [
        ((3, 3), 2, True),  # one on each
        ((2, 4), 2, True),  # both on one
        ((4, 3), 2, False),
        ((3, 3, 3), 3, True),
        ((1, 4, 4), 3, True),
        ((2, 2), 3, True),
        ((4, 4, 3), 2, False),
        ((0, 3), 5, True),
        ((1, 3), 4, True),  # as three and one
        ((3, 1, 4, 4), 4, True),
        ((1, 3), 5, False),
    ],
)
def test_a_pod_gets_devices_of_any_cards_that_have_them(taken, asked, fits):
    workload = Workload.of([*held(*taken), devices("p", asked)])
    assert bool(feasible_nodes(Cluster.of(cards(len(taken), 4)), workload, "p")) is fits


@pytest.mark.parametrize("tier", ["python", "cached", "scan"])
def test_devices_go_back_to_the_cards_that_they_came_from(tier):
    pods = [
        devices("x", 3, arrival_s=0, duration_s=10),
        devices("y", 3, arrival_s=0, duration_s=20),
        devices("spread", 2, arrival_s=1, duration_s=5),
        devices("late", 2, arrival_s=7, duration_s=5),
        devices("whole", 8, arrival_s=8, duration_s=5),
    ]
    result = run(cards(2, 4), pods, Replay(), setup=Setup(tier=tier, ranks="listed"))
    assert [slots_of(int(mask)) for mask in result.slots] == [
        (0,), (1,), (0, 1), (0, 1), (0, 1)
    ]  # fmt: skip
    assert result.start_s.tolist() == [0, 0, 1, 7, 20]
    assert result.pods["gpu_milli"].tolist() == [750, 750, 250, 250, 1000]


@pytest.mark.parametrize("tier", ["python", "cached", "scan"])
@pytest.mark.parametrize(
    ("count", "replicas", "asked"),
    [(2, 4, (5, 3)), (2, 4, (7, 1)), (8, 2, (3, 3, 3, 3, 3, 1)), (4, 10, (9, 13, 7, 11))],
)
def test_all_devices_of_a_node_are_given_out(count, replicas, asked, tier):
    pods = [devices(f"p{i}", each) for i, each in enumerate(asked)]
    result = run(cards(count, replicas), pods, Rounds(), setup=Setup(tier=tier, ranks="listed"))
    assert result.is_placed.all()
    assert result.metrics.gpu_allocation == pytest.approx(1, abs=0.01)
    assert audit(result, result.metrics).problems == ()


def test_devices_that_are_left_over_are_counted():
    pods = [devices(f"p{i}", 3) for i in range(6)]
    result = run(cards(8, 2), pods, Rounds())
    assert "(1 free GPU at most, 3 asked)" in result.refusal(5).message


def test_parts_of_cards_are_bounded_by_their_number_alone():
    """Two of each size fill two cards, in whatever order they come."""
    listed = {"mig-3g": 2, "mig-4g": 2}
    card = NodeSpec("a", 64000, 64000, 2, "A100", extended=listed, has_partitions=True)
    sizes = (("mig-3g", 428), ("mig-3g", 428), ("mig-4g", 571), ("mig-4g", 571), ("mig-3g", 428))
    pods = [
        PodSpec(f"p{i}", 10, 10, 1, milli, constraints=Constraints(extended=((name, 1),)))
        for i, (name, milli) in enumerate(sizes)
    ]
    result = run([card], pods, Rounds())
    assert result.is_placed.tolist() == [True, True, True, True, False]
    assert "1 Insufficient mig-3g (0 free at most, 1 asked)" in result.refusal(4).message


def test_a_running_pod_may_hold_devices_of_several_cards():
    running = [*held(3, 3), devices("p", 2, node="a")]
    full = Workload.of([*running, devices("q", 1)])
    assert feasible_nodes(Cluster.of(cards(2, 4)), full, "q") == []
