# ruff: noqa: ARG001 - the signatures of policies are given

import numpy as np
import pytest

from podium.errors import UsageError
from podium.model import NodeSpec, PodSpec
from podium.policies import HOLD, from_function
from podium.sim import Holding, Inflation, Order, Replay
from podium.sim.metrics import measure
from podium.sim.timeline import timeline
from support.runs import gpu_pod, run, run_in_order, run_in_rounds, share_pod, three_pods

NODE = NodeSpec("a", 10_000, 10_000, 2, "X")


def test_a_replay_is_sampled_evenly_in_time():
    line = timeline(three_pods(), points=17)
    assert line.time_s.tolist() == list(range(17))
    assert line.gpu_allocation.tolist() == [0.25] * 2 + [0.75] * 8 + [0.5] * 6 + [0.0]
    assert line.cpu_allocation.tolist() == [0.125] * 2 + [0.375] * 8 + [0.125] * 6 + [0.0]
    assert line.memory_allocation.tolist() == [1 / 12] * 2 + [0.25] * 14 + [0.0]
    assert line.nodes_in_use.tolist() == [1] * 2 + [2] * 8 + [1] * 6 + [0]
    assert line.waiting.tolist() == [0] * 4 + [1] * 6 + [0] * 7
    assert line.changes.tolist() == [1] * 2 + [2] * 8 + [5] * 6 + [6]
    assert line.arrived_ratio.tolist() == [0.25] * 2 + [0.75] * 2 + [1.25] * 13
    assert line.fragmentation[[0, 5, 12]].tolist() == pytest.approx([0, 1 / 6, 1 / 3])


def test_the_mean_of_a_fine_timeline_is_the_mean_of_the_run():
    result = three_pods()
    line = timeline(result, points=16_001)
    assert line.gpu_allocation[:-1].mean() == pytest.approx(measure(result).gpu_allocation)


def test_pods_that_never_fit_wait_to_the_end():
    pods = [gpu_pod("p", 1, 0.0, 2.0), gpu_pod("big", 3, 8.0, 1.0)]
    line = timeline(run([NODE], pods, Replay()), points=9)
    assert line.time_s.tolist() == list(range(9))
    assert line.waiting.tolist() == [0] * 8 + [1]


def test_inflation_is_sampled_evenly_in_arrived_load():
    pods = [gpu_pod("p0", 1), PodSpec("cpu", 100, 0), gpu_pod("p1", 1), gpu_pod("p2", 2)]
    line = timeline(run_in_order([NODE], pods), points=5)
    assert line.arrived_ratio.tolist() == [0, 0.5, 1, 2]
    assert line.gpu_allocation.tolist() == [0, 0.5, 1, 1]
    assert line.changes.tolist() == [0, 2, 3, 3]
    assert line.time_s.tolist() == [0] * 4
    assert line.waiting.tolist() == [0] * 4


def test_without_gpu_demand_inflation_is_sampled_by_arrivals():
    pods = [PodSpec(f"p{i}", 1000, 0) for i in range(4)]
    line = timeline(run_in_order([NODE], pods), points=3)
    assert line.changes.tolist() == [0, 2, 4]


def hold_shares(pod, node):
    return HOLD if pod.gpu_milli < 1000 and node.gpu_milli_left[0] == 1000 else 0


def test_held_pods_wait_until_they_are_placed():
    # The share is refused until somebody has taken the first GPU, and then offered again.
    pods = [share_pod("held", 500), gpu_pod("opens", 1), share_pod("p", 500)]
    order = Order(np.arange(3))
    protocol = Inflation(order=order, holding=Holding(hold_limit=2))
    result = run([NODE], pods, protocol, policy=from_function(hold_shares))
    assert result.start_s.tolist() == [1, 1, 2]
    line = timeline(result, points=201)
    assert line.arrived_ratio.tolist() == [0, 0.25, 0.75, 1.0]
    assert line.waiting.tolist() == [0, 1, 0, 0]


def refuse(pod, node):
    return HOLD


def test_pods_that_stay_held_wait_to_the_end():
    protocol = Inflation(order=Order(np.arange(2)), holding=Holding(hold_limit=100))
    result = run([NODE], [gpu_pod("p0", 1), gpu_pod("p1", 1)], protocol, from_function(refuse))
    assert timeline(result).waiting.tolist() == [0, 1, 2]


def test_rounds_are_sampled_evenly_in_changes():
    pods = [gpu_pod("p0", 1), gpu_pod("p1", 1), gpu_pod("p2", 1)]
    line = timeline(run_in_rounds([NODE], pods))
    assert line.changes.tolist() == [0, 1, 2]
    assert line.gpu_allocation.tolist() == [0, 0.5, 1]
    assert line.waiting.tolist() == [3, 2, 1]


def test_a_run_without_changes_has_one_moment():
    line = timeline(run([NODE], [gpu_pod("big", 3, 5.0, 1.0)], Replay()))
    assert (line.time_s.tolist(), line.waiting.tolist(), len(line)) == ([5], [1], 1)


def test_rows_and_columns_hold_the_same():
    line = timeline(three_pods(), points=3)
    rows, columns = line.as_rows(), line.as_columns()
    assert len(rows) == len(line) == 3
    assert list(rows[0]) == list(columns)
    assert [row["time_s"] for row in rows] == columns["time_s"] == [0, 8, 16]
    assert all(isinstance(value, float) for row in rows for value in row.values())


def test_a_line_has_at_least_two_points():
    with pytest.raises(UsageError, match="1 points"):
        timeline(three_pods(), points=1)
