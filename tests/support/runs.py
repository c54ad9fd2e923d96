"""Runs tiny instances whose every figure can be worked out by hand."""

import numpy as np

from podium.model import Cluster, NodeSpec, PodSpec, Workload
from podium.policies import load
from podium.sim import Inflation, Order, Replay, Rounds, Setup, simulate

LISTED = Setup(tier="python", ranks="listed")


def gpu_pod(name, gpu_count, arrival_s=None, duration_s=None, *, cpu_milli=1000, memory_mib=1000):
    """Describes a pod of whole GPUs."""
    return PodSpec(
        name, cpu_milli, memory_mib, gpu_count, 1000, arrival_s=arrival_s, duration_s=duration_s
    )


def share_pod(name, gpu_milli, *, cpu_milli=100, memory_mib=0):
    """Describes a pod that shares a GPU."""
    return PodSpec(name, cpu_milli, memory_mib, 1, gpu_milli)


def run(nodes, pods, protocol, policy="first-fit", setup=LISTED):
    """Runs a policy, by name or as it is, on described nodes and pods."""
    chosen = load(policy) if isinstance(policy, str) else policy
    return simulate(Cluster.of(nodes), Workload.of(pods), chosen, protocol, setup)


def run_in_order(nodes, pods, arrivals=None, **others):
    """Lets pods arrive in a given order, or as listed, and never leave."""
    order = Order(np.arange(len(pods)) if arrivals is None else arrivals)
    return run(nodes, pods, Inflation(order=order), **others)


def run_in_rounds(nodes, pods, **others):
    """Offers pods in rounds."""
    return run(nodes, pods, Rounds(), **others)


THREE_PODS_NODES = [
    NodeSpec("a", 4000, 4000, 1, "X"),
    NodeSpec("b", 4000, 8000, 3, "X"),
]
THREE_PODS = [
    gpu_pod("p0", 1, 0.0, 10.0),
    gpu_pod("p1", 2, 2.0, 8.0, cpu_milli=2000, memory_mib=2000),
    gpu_pod("p2", 2, 4.0, 6.0, memory_mib=3000),
]


def three_pods():
    """Replays three pods on two nodes with 4 GPUs.

    p0 runs on a from 0 to 10 and p1 on b from 2 to 10. p2 arrives at 4, finds one free GPU on b
    where it needs two, and runs there from 10 to 16.
    """
    return run(THREE_PODS_NODES, THREE_PODS, Replay())
