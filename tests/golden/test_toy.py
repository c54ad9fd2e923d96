"""Plays instances so small that their optimum is known, with policies that reach and miss it."""

import itertools

import numpy as np
import pytest

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import HOLD, ClusterPolicy, from_function, load
from podium.sim import Holding, Inflation, Order, Replay, Setup, simulate

# The largest node comes first. The starved one has a GPU and no CPU, so nothing can use it.
NODES = Cluster.of(
    [
        NodeSpec("big", cpu_milli=40000, memory_mib=40000, gpu_count=4, gpu_model="A"),
        NodeSpec("middle", cpu_milli=20000, memory_mib=20000, gpu_count=2, gpu_model="A"),
        NodeSpec("small", cpu_milli=10000, memory_mib=10000, gpu_count=1, gpu_model="A"),
        NodeSpec("starved", cpu_milli=0, memory_mib=10000, gpu_count=1, gpu_model="A"),
    ]
)
# Two halves of a GPU, a pair of GPUs and four of them: 7 GPUs, as many as can be used.
PODS = Workload.of(
    [
        PodSpec("half-a", 1000, 1000, 1, 500, arrival_s=0, duration_s=10),
        PodSpec("half-b", 1000, 1000, 1, 500, arrival_s=0, duration_s=10),
        PodSpec("pair", 2000, 2000, 2, 1000, arrival_s=0, duration_s=10),
        PodSpec("four", 4000, 4000, 4, 1000, arrival_s=0, duration_s=10),
    ]
)
ARRIVALS = Inflation(order=Order(np.arange(4), np.arange(4)))
OPTIMUM_GPU_MILLI = 7000
OPTIMUM_MAKESPAN_S = 10
LISTED = Setup(ranks="listed")


def gpu_milli_in_use(result):
    placed = result.plan.arrivals.pods[result.is_placed]
    return int((placed["gpu_count"] * placed["gpu_milli"]).sum())


class Script:
    """Sends each pod where a script says, or nowhere."""

    def __init__(self, choices):
        self.choices = iter(choices)

    def choose(self, _pod, _nodes, feasible):
        choice = next(self.choices)
        return choice if choice is not None and feasible[choice] else HOLD


def test_no_sequence_of_choices_uses_more_than_the_optimum_and_one_reaches_it():
    def used(choices):
        policy = ClusterPolicy("script", lambda _seed: Script(choices))
        return gpu_milli_in_use(simulate(NODES, PODS, policy, ARRIVALS, LISTED))

    every_choice = itertools.product([0, 1, 2, 3, None], repeat=4)
    assert max(used(choices) for choices in every_choice) == OPTIMUM_GPU_MILLI


@pytest.mark.parametrize("tier", ["python", "cached", "scan"])
def test_best_fit_reaches_the_optimum_because_it_keeps_the_big_node_whole(tier):
    result = simulate(NODES, PODS, load("best-fit"), ARRIVALS, Setup(tier=tier))
    assert gpu_milli_in_use(result) == OPTIMUM_GPU_MILLI
    assert [NODES.names[node] for node in result.node] == ["small", "small", "middle", "big"]
    assert result.slots.tolist() == [0b1, 0b1, 0b11, 0b1111]


@pytest.mark.parametrize("tier", ["python", "cached", "scan"])
def test_first_fit_breaks_the_big_node_and_loses_the_pod_of_four(tier):
    result = simulate(NODES, PODS, load("first-fit"), ARRIVALS, Setup(tier=tier))
    assert gpu_milli_in_use(result) == 3000
    assert [NODES.names[node] for node in result.node[:3]] == ["big"] * 3
    assert result.slots.tolist() == [0b1, 0b1, 0b110, 0]
    assert [row.reason for row in result.placements()][3] == "no node had room"


def test_in_a_replay_best_fit_lets_nobody_wait_and_ends_with_the_longest_pod():
    result = simulate(NODES, PODS, load("best-fit"), Replay(), LISTED)
    assert result.start_s.tolist() == [0, 0, 0, 0]
    assert result.finish_s.max() == OPTIMUM_MAKESPAN_S


def test_in_a_replay_first_fit_makes_the_pod_of_four_wait_for_everybody():
    result = simulate(NODES, PODS, load("first-fit"), Replay(), LISTED)
    assert result.start_s.tolist() == [0, 0, 0, 10]
    assert result.finish_s.max() == 2 * OPTIMUM_MAKESPAN_S


# A long pod of one GPU comes a second before a short one of two, and there are two GPUs. They
# cannot overlap: with the long one first the short one waits 99 s; with the short one first,
# which runs from 1 to 2, the long one waits 2 s, and that is the least there is.
TWO_GPUS = Cluster.of([NodeSpec("node", 10000, 10000, gpu_count=2, gpu_model="A")])
LONG_THEN_SHORT = Workload.of(
    [
        PodSpec("long", 1000, 1000, 1, 1000, arrival_s=0, duration_s=100),
        PodSpec("short", 1000, 1000, 2, 1000, arrival_s=1, duration_s=1),
    ]
)
LEAST_WAIT_S = 2


def waits_for_pairs(pod, node):
    return HOLD if pod.gpu_count == 1 and node.gpu_classes == 0 else 0.0


def total_wait_s(policy):
    result = simulate(TWO_GPUS, LONG_THEN_SHORT, policy, Replay(holding=Holding()))
    return (result.start_s - result.arrival_s).sum()


def test_holding_a_pod_back_reaches_an_optimum_that_placing_at_once_cannot():
    assert total_wait_s(from_function(waits_for_pairs)) == LEAST_WAIT_S
    assert total_wait_s(load("best-fit")) == 99
