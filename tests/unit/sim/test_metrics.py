# ruff: noqa: ARG001 - the signatures of policies are given

import numpy as np
import pytest

from podium.model import NodeSpec, PodSpec
from podium.policies import HOLD, from_function
from podium.sim import Holding, Replay, Rounds
from podium.sim.metrics import POD_CLASSES, class_of, measure
from support.runs import gpu_pod, run, run_in_order, run_in_rounds, share_pod, three_pods

NODE = NodeSpec("a", 10_000, 10_000, 2, "X")


@pytest.fixture(scope="module")
def figures():
    return measure(three_pods())


def test_allocation_is_averaged_over_the_time_of_the_run(figures):
    assert figures.gpu_allocation == 38_000 / 16 / 4000
    assert figures.cpu_allocation == 32_000 / 16 / 8000
    assert figures.memory_allocation == 44_000 / 16 / 12_000


def test_fragmentation_is_a_share_of_all_gpus_and_of_idle_gpus(figures):
    third = 1000 / 3
    assert figures.fragmentation == pytest.approx((2 * third * 8 + 4 * third * 6) / 16 / 4000)
    assert figures.fragmentation_ratio == pytest.approx((2 / 3 * 8 + 2 / 3 * 6) / 16)


def test_waiting_counts_from_arrival_to_start(figures):
    waiting = figures.waiting
    assert (waiting.mean_s, waiting.p50_s, waiting.max_s, waiting.waited) == (2, 0, 6, 1)
    # The waits are 0, 0, 6: between the last two values, as percentiles are interpolated.
    assert waiting.p95_s == pytest.approx(0.9 * 6)
    assert waiting.p99_s == pytest.approx(0.98 * 6)


def test_makespan_and_completion_end_with_the_departure(figures):
    assert figures.makespan_s == 16
    assert figures.completion_mean_s == (10 + 8 + 12) / 3


def test_nodes_in_use_are_averaged_over_time_and_have_a_peak(figures):
    assert figures.nodes_in_use_mean == (1 * 2 + 2 * 8 + 1 * 6) / 16
    assert figures.nodes_in_use_peak == 2


def test_everybody_is_placed(figures):
    assert (figures.placed, figures.unplaced, figures.held, figures.holds) == (3, 0, 0, 0)
    assert figures.placed_share == {"1-gpu": 1.0, "2-gpu": 1.0}


def test_the_clock_starts_at_the_first_arrival():
    pods = [gpu_pod("p0", 2, 100.0, 10.0), gpu_pod("p1", 2, 105.0, 10.0)]
    figures = measure(run([NODE], pods, Replay()))
    assert figures.makespan_s == 20
    assert figures.gpu_allocation == 1.0


def test_load_brings_arrivals_closer_and_leaves_run_times_alone():
    pods = [gpu_pod("p0", 1, 10.0, 4.0), gpu_pod("p1", 1, 20.0, 4.0)]
    figures = measure(run([NODE], pods, Replay(load=5.0)))
    assert figures.makespan_s == 6
    assert figures.gpu_allocation == (1000 * 2 + 2000 * 2 + 1000 * 2) / 6 / 2000


def test_a_pod_that_never_fits_is_unplaced_and_waits_for_nothing():
    pods = [gpu_pod("big", 3, 0.0, 1.0), gpu_pod("p", 1, 2.0, 3.0)]
    figures = measure(run([NODE], pods, Replay()))
    assert (figures.placed, figures.unplaced) == (1, 1)
    assert figures.waiting.waited == 0
    assert figures.makespan_s == 5
    assert figures.gpu_allocation == 1000 * 3 / 5 / 2000


def test_a_run_that_places_nobody_has_figures_of_zero():
    figures = measure(run([NODE], [gpu_pod("big", 3, 7.0, 1.0)], Replay()))
    assert (figures.placed, figures.unplaced, figures.makespan_s) == (0, 1, 0)
    assert (figures.gpu_allocation, figures.completion_mean_s) == (0, 0)
    assert (figures.waiting.mean_s, figures.waiting.max_s, figures.waiting.waited) == (0, 0, 0)
    assert figures.nodes_in_use_peak == 0


def test_pods_are_classed_by_their_gpus():
    pods = [
        PodSpec("cpu", 1, 0),
        share_pod("share", 999),
        *(gpu_pod(f"{count}", count) for count in (1, 2, 4, 8, 3)),
    ]
    result = run_in_rounds([NODE], pods)
    names = [POD_CLASSES[index] for index in class_of(result.plan.arrivals.pods)]
    assert names == ["cpu-only", "share", "1-gpu", "2-gpu", "4-gpu", "8-gpu", "other"]


def test_the_placed_share_is_counted_class_by_class():
    pods = [
        share_pod("s0", 600), share_pod("s1", 600), share_pod("s2", 600), PodSpec("c", 20_000, 0),
    ]  # fmt: skip
    assert measure(run_in_rounds([NODE], pods)).placed_share == {"cpu-only": 0.0, "share": 2 / 3}


def test_inflation_is_judged_by_how_it_ends():
    pods = [gpu_pod("p0", 1), share_pod("p1", 500), gpu_pod("p2", 1)]
    figures = measure(run_in_order([NODE], pods))
    assert figures.gpu_allocation == 1500 / 2000
    assert (figures.placed, figures.unplaced) == (2, 1)
    assert (figures.makespan_s, figures.completion_mean_s, figures.waiting.mean_s) == (0, 0, 0)


def test_in_rounds_no_time_passes_and_nobody_waits():
    hold_once = from_function(holding_first, "holding")
    pods = [gpu_pod("p0", 1), PodSpec("p1", 100, 0)]
    result = run([NODE], pods, Rounds(holding=Holding(max_holds=1)), policy=hold_once)
    assert result.start_s.tolist() == [0, 1]
    assert measure(result).waiting.max_s == 0


def holding_first(pod, node):
    return 0 if pod.gpu_count else HOLD


def test_pods_that_stay_held_are_counted_apart():
    pods = [gpu_pod("p0", 1), PodSpec("p1", 100, 0), PodSpec("p2", 20_000, 0)]
    figures = measure(run([NODE], pods, Rounds(max_rounds=3), policy=from_function(holding_first)))
    assert (figures.placed, figures.unplaced, figures.held) == (1, 1, 1)
    assert figures.holds == 3


def test_a_cluster_without_gpus_has_shares_of_zero():
    figures = measure(run_in_rounds([NodeSpec("a", 1000, 0)], [PodSpec("p", 250, 0)]))
    assert (figures.gpu_allocation, figures.fragmentation, figures.fragmentation_ratio) == (0, 0, 0)
    assert (figures.cpu_allocation, figures.memory_allocation) == (0.25, 0)


def test_a_full_cluster_has_no_fragment_of_idle_gpus():
    figures = measure(run_in_rounds([NODE], [gpu_pod("p", 2)]))
    assert (figures.gpu_allocation, figures.fragmentation_ratio) == (1.0, 0.0)


def test_failed_attempts_weigh_in_no_average():
    # The second pod is offered again and again while others come and go, and changes nothing.
    pods = [gpu_pod("long", 2, 0.0, 100.0), gpu_pod("waits", 2, 1.0, 100.0)]
    crowd = [PodSpec(f"c{i}", 10, 0, arrival_s=float(i), duration_s=0.5) for i in range(2, 90)]
    figures = measure(run([NODE], [*pods, *crowd], Replay()))
    assert figures.gpu_allocation == 1.0
    assert figures.makespan_s == 200
    assert np.isclose(figures.waiting.max_s, 99)
