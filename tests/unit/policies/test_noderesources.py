import pytest

from podium.policies.noderesources import (
    LEFT_OUT,
    balance,
    balance_gained,
    cpu_share,
    free_percent,
    gpu_share,
    least_allocated,
    memory_share,
    most_allocated,
    rounded_average,
    used_percent,
    utilization,
)
from support.views import node, pod

NODE = node((7000, 10000), (900, 1000), gpus=(1000, 500))
POD = pod(1000, 400, gpus=1, milli=500)  # with it 40 % of CPU, 50 % of memory and of GPU are used


def test_percentages_are_rounded_down():
    assert free_percent(1, 3) == 66
    assert used_percent(1, 3) == 33


def test_requests_above_the_capacity_leave_nothing_and_use_all():
    assert free_percent(300, 200) == 0
    assert used_percent(300, 200) == 100


def test_a_resource_that_the_node_lacks_scores_0():
    assert free_percent(0, 0) == used_percent(0, 0) == 0


def test_least_allocated_averages_the_free_shares_by_weight():
    assert least_allocated(POD, NODE, 1, 1, 0) == 55
    assert least_allocated(POD, NODE, 1, 1, 2) == 52  # (60 + 50 + 2 * 50) / 4 = 52.5
    assert least_allocated(POD, NODE, 3, 1, 0) == 57  # (3 * 60 + 50) / 4 = 57.5


def test_most_allocated_averages_the_used_shares_by_weight():
    assert most_allocated(POD, NODE, 1, 1, 0) == 45
    assert most_allocated(POD, NODE, 0, 0, 5) == 50


def test_gpus_have_no_say_for_a_pod_without_and_on_a_node_without():
    assert least_allocated(pod(1000, 400), NODE, 1, 1, 9) == 55
    plain = node((7000, 10000), (900, 1000))
    assert least_allocated(pod(1000, 400), plain, 1, 1, 9) == 55


def test_no_resource_at_all_scores_0():
    assert least_allocated(POD, NODE, 0, 0, 0) == most_allocated(POD, NODE, 0, 0, 0) == 0


def test_a_pod_without_requests_counts_100_milli_and_200_mib():
    empty = node((1000, 1000), (400, 400))
    assert least_allocated(pod(), empty, 1, 0, 0) == 90
    assert least_allocated(pod(), empty, 0, 1, 0) == 50


def test_shares_are_measured_with_the_pod_and_without():
    assert [cpu_share(POD, NODE, placed) for placed in (0, 1)] == [0.3, 0.4]
    assert [memory_share(POD, NODE, placed) for placed in (0, 1)] == [0.1, 0.5]
    assert [gpu_share(POD, NODE, placed) for placed in (0, 1)] == [0.25, 0.5]


def test_shares_of_what_is_not_there_or_not_asked_for_are_left_out():
    assert gpu_share(pod(1000), NODE, 1) == LEFT_OUT
    assert cpu_share(pod(), node(), 1) == LEFT_OUT


def test_the_share_of_an_overcommitted_resource_is_1():
    assert cpu_share(pod(200), node((0, 100)), 1) == 1.0


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((0.5, 0.75, LEFT_OUT), 87),
        ((LEFT_OUT, 0.5, 0.75), 87),
        ((0.5, LEFT_OUT, 0.75), 87),
        ((1.0, 0.0, LEFT_OUT), 50),
        ((0.3, LEFT_OUT, LEFT_OUT), 100),
        ((LEFT_OUT, LEFT_OUT, LEFT_OUT), 100),
        # Mean 0.5, squares 0.25 + 0 + 0.25, deviation sqrt(1/6) = 0.408.
        ((0.0, 0.5, 1.0), 59),
    ],
)
def test_balance_falls_with_the_standard_deviation_of_the_shares(shares, expected):
    assert balance(*shares) == expected


@pytest.mark.parametrize(
    ("after", "before", "expected"), [(80, 80, 75), (50, 100, 50), (100, 50, 100), (87, 100, 68)]
)
def test_a_gain_in_balance_scores_from_50_to_100(after, before, expected):
    assert balance_gained(after, before) == expected


def test_the_utilization_of_a_shape_is_a_percentage_up_to_100():
    assert utilization(1, 3) == 33
    assert utilization(5, 3) == 100


def test_averages_of_a_shape_are_rounded_half_up():
    assert rounded_average(5, 2) == 3
    assert rounded_average(7, 3) == 2
    assert rounded_average(0, 0) == 0
