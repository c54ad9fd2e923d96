import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import HOLD, from_function, load
from podium.sim import Inflation, Order, Placement, Replay, Rounds, Setup, simulate
from podium.sim.result import FITS_NO_NODE, HELD_BACK, NO_ROOM, slots_of

CLUSTER = Cluster.of([NodeSpec("n0", 2000, 100, 2, "A"), NodeSpec("n1", 1000, 100)])
WORKLOAD = Workload.of(
    [
        PodSpec("first", 1000, 1, 2, 1000, arrival_s=0, duration_s=10),
        PodSpec("late", 1000, 1, 1, 500, arrival_s=4, duration_s=3),
        PodSpec("huge", 9000, 1, arrival_s=5, duration_s=1),
        PodSpec("plain", 1000, 1, arrival_s=6, duration_s=0.5),
    ]
)
LISTED = Setup(ranks="listed")


def replay(**changes):
    return simulate(CLUSTER, WORKLOAD, load("first-fit"), Replay(**changes), LISTED)


def no_shares(pod, node):  # noqa: ARG001
    return HOLD if pod.gpu_milli == 500 else 0


def test_a_placement_tells_where_and_when_or_why_not():
    assert list(replay().placements()) == [
        Placement("first", "", 2.0, 0.0, 0.0, 10.0, "n0", (0, 1), ""),
        Placement("late", "", 0.5, 4.0, 10.0, 13.0, "n0", (0,), ""),
        Placement("huge", "", 0.0, 5.0, None, None, "", (), FITS_NO_NODE),
        Placement("plain", "", 0.0, 6.0, 6.0, 6.5, "n0", (), ""),
    ]


def test_a_pod_without_room_is_told_from_one_that_fits_no_node():
    order = Order(np.array([0, 1, 2, 3]), np.array([0, 1]))
    result = simulate(CLUSTER, WORKLOAD, load("first-fit"), Inflation(order=order))
    assert [row.reason for row in result.placements()] == ["", NO_ROOM, FITS_NO_NODE, ""]


def test_a_held_pod_is_reported_as_held_back():
    result = simulate(
        CLUSTER, Workload.of(WORKLOAD.specs()[1:2]), from_function(no_shares), Rounds()
    )
    assert [row.reason for row in result.placements()] == [HELD_BACK]


def test_pods_leave_after_their_run_time_and_only_in_a_replay():
    np.testing.assert_array_equal(replay().finish_s, [10.0, 13.0, np.nan, 6.5])
    rounds = simulate(CLUSTER, WORKLOAD, load("first-fit"), Rounds(), LISTED)
    np.testing.assert_array_equal(rounds.finish_s, [np.inf, np.nan, np.nan, np.inf])


def test_load_compresses_the_time_between_arrivals_from_the_first_on():
    later = Workload.of(
        PodSpec(f"p{i}", 1, 1, arrival_s=arrival, duration_s=1)
        for i, arrival in enumerate([100.0, 104.0, 110.0])
    )
    result = simulate(CLUSTER, later, load("first-fit"), Replay(load=2.0))
    assert result.arrival_s.tolist() == [100.0, 102.0, 105.0]


def test_changes_list_placements_and_departures_in_order():
    assert replay().changes.tolist() == [1, 4, -4, -1, 2, -2]


def test_a_run_keeps_its_arrivals_in_order_of_time_whatever_the_trace_says():
    backwards = Workload.of(WORKLOAD.specs()[::-1])
    result = simulate(CLUSTER, backwards, load("first-fit"), Replay(), LISTED)
    assert result.plan.arrivals.names == ("first", "late", "huge", "plain")
    assert result.digest == replay().digest


def test_the_digest_tells_start_times_and_nodes_apart():
    assert len({replay().digest, replay(load=2.0).digest, replay(load=0.1).digest}) == 3
    other = Cluster.of(CLUSTER.specs()[::-1])
    assert simulate(other, WORKLOAD, load("first-fit"), Replay(), LISTED).digest != replay().digest


@pytest.mark.parametrize(
    ("mask", "slots"), [(0, ()), (1, (0,)), (0b1000_0000_0000_0110, (1, 2, 15))]
)
def test_a_mask_lists_its_slots(mask, slots):
    assert slots_of(mask) == slots
