import math

import numpy as np
import pytest

from podium.model import NodeSpec, PodSpec
from podium.sim.load_curve import arrived_ratio, load_curve
from support.runs import gpu_pod, run_in_order, share_pod

EIGHT = [NodeSpec("a", 100_000, 100_000, 8, "X")]
THREE = [NodeSpec("a", 100_000, 100_000, 3, "X")]


def test_arrivals_are_averaged_by_the_percent_they_round_to():
    pods = [
        share_pod("p0", 100),  # 1.25 %
        share_pod("p1", 20),  # 1.5 %, to the even 2
        share_pod("p2", 40),  # 2 %
        PodSpec("cpu", 100, 0),  # still 2 %
        gpu_pod("p3", 1),  # 14.5 %, to the even 14
    ]
    curve = load_curve(run_in_order(EIGHT, pods))
    assert curve.percent.tolist() == [1, 2, 14]
    assert curve.allocation.tolist() == pytest.approx([1.25, (1.5 + 2 + 2) / 3, 14.5])
    assert curve.arrived_ratio == 0.145


def test_every_allocation_is_rounded_before_it_is_averaged():
    curve = load_curve(run_in_order(THREE, [share_pod("p0", 100), share_pod("p1", 2)]))
    assert curve.percent.tolist() == [3]
    assert curve.allocation.tolist() == pytest.approx([(3.33 + 3.40) / 2], abs=1e-12)


def test_failed_pods_arrive_all_the_same():
    pods = [gpu_pod("p0", 3), gpu_pod("too much CPU", 1, cpu_milli=10**6), share_pod("p1", 300)]
    curve = load_curve(run_in_order(THREE, pods))
    assert curve.percent.tolist() == [100, 133, 143]
    assert curve.allocation.tolist() == [100, 100, 100]


def test_fragmentation_is_averaged_as_it_is():
    # Every GPU left fits both shares; a third of the pods wants none, so a third of it is lost.
    pods = [share_pod("p0", 300), share_pod("p1", 1), PodSpec("cpu", 100, 0)]
    curve = load_curve(run_in_order(THREE, pods))
    assert curve.percent.tolist() == [10]
    lost = [100 * left / 3 / 3000 for left in (2700, 2699, 2699)]
    assert curve.fragmentation.tolist() == pytest.approx([sum(lost) / 3], abs=1e-9)


def test_a_load_that_nothing_rounds_to_has_no_value():
    curve = load_curve(run_in_order(EIGHT, [gpu_pod("p0", 4), gpu_pod("p1", 4)]))
    assert curve.at(100) == (100, 0)
    assert all(math.isnan(value) for value in curve.at(99))


def test_the_arrived_ratio_grows_with_every_arrival():
    result = run_in_order(EIGHT, [gpu_pod("p0", 4), PodSpec("c", 1, 0), share_pod("p1", 400)])
    assert arrived_ratio(result).tolist() == [0.5, 0.5, 0.55]


def test_a_cluster_without_gpus_has_no_load():
    nodes = [NodeSpec("a", 1000, 0)]
    curve = load_curve(run_in_order(nodes, [PodSpec("p", 1, 0), gpu_pod("g", 1)]))
    assert curve.percent.tolist() == [0]
    assert (curve.arrived_ratio, curve.at(0)) == (0, (0, 0))


def test_a_repeated_pod_arrives_each_time():
    curve = load_curve(run_in_order(EIGHT, [gpu_pod("p0", 2)], np.array([0, 0, 0])))
    assert curve.percent.tolist() == [25, 50, 75]
    assert curve.allocation.tolist() == [25, 50, 75]
