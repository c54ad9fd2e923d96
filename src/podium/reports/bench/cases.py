"""Builds what speed is measured on: clusters, loads, and policies never compiled before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model import Cluster, NodeSpec, Workload
from podium.model.constraints import (
    UNCONSTRAINED,
    Constraints,
    NodeTerm,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
)
from podium.model.state import occupied
from podium.policies import Policy, load, policy_of
from podium.policies.source import read_source
from podium.sim import Inflation, Setup, simulate
from podium.traces.catalogue import LoadOptions, load_trace

_TEXT = '''
"""Likes nodes by a formula nobody has used before."""


def score(pod, node):
    left = 0
    tightest = 1000
    for slot in range(node.gpu_count):
        milli = node.gpu_milli_left[slot]
        left += milli
        if pod.gpu_milli <= milli < tightest:
            tightest = milli
    cpu = (node.cpu_milli_left - pod.cpu_milli) / node.cpu_milli_total
    memory = (node.memory_mib_left - pod.memory_mib) / node.memory_mib_total
    balance = cpu - memory if cpu > memory else memory - cpu
    return {number} - cpu - 0.5 * balance - tightest / 1000 - left / 8000
'''


def fresh_policy(number: int) -> Policy:
    """Builds a policy that differs from the others in one number only."""
    text = _TEXT.replace("{number}", str(number))
    return policy_of(read_source(text, "fresh.py"), "fresh")


SEED = 1000


def openb_case(name: str, folder: Path | None) -> tuple[Cluster, Workload]:
    """Returns a cluster of OpenB with its pods, read from files in the folder or else generated."""
    options = LoadOptions(folder=folder, seed=SEED)
    trace = load_trace(name, options)
    pods = load_trace("openb:default", options) if folder else trace
    if trace.cluster is None or pods.workload is None:
        raise RuntimeError(f"{name} has no nodes or pods")
    return trace.cluster, pods.workload


def constrained_case(folder: Path | None) -> tuple[Cluster, Workload]:
    """Returns OpenB with taints and labels on its nodes, and constraints on half of its pods."""
    cluster, workload = openb_case("openb", folder)
    nodes = [
        replace(
            node,
            labels={"zone": f"z{i % 3}", "disk": ("hdd", "ssd")[i % 2], "host": node.name},
            taints=(Taint("dedicated", "gpu"),) if i % 10 == 0 else (),
            extended={"pods": 110, "rdma/hca": 8},
        )
        for i, node in enumerate(cluster.specs())
    ]
    pods = [
        replace(
            pod,
            labels={"app": "a"} if i % 4 == 1 else {},
            constraints=_CONSTRAINTS[i // 2 % len(_CONSTRAINTS)] if i % 2 else UNCONSTRAINED,
        )
        for i, pod in enumerate(workload.specs())
    ]
    return Cluster.of(nodes, name=cluster.name), Workload.of(pods, name=workload.name)


_OWN = PodSelector((Requirement("app", "In", ("a",)),))
_CONSTRAINTS = (
    Constraints(node_labels=(("disk", "ssd"),)),
    Constraints(tolerations=(Toleration("dedicated", "Exists"),)),
    Constraints(node_terms=(NodeTerm((Requirement("zone", "In", ("z0", "z1")),)),)),
    Constraints(extended=(("rdma/hca", 1),)),
    Constraints(anti_affinity=(PodTerm(_OWN, "host"),)),
    Constraints(spread=(Spread(_OWN, "zone", max_skew=5),)),
    Constraints(affinity=(PodTerm(_OWN, "zone"),)),
)


def half_full(cluster: Cluster, workload: Workload) -> npt.NDArray[Any]:
    """Returns the nodes as first-fit leaves them when half of the GPUs were asked for."""
    result = simulate(cluster, workload, load("first-fit"), Inflation(ratio=0.5), Setup(SEED))
    placed = np.flatnonzero(result.is_placed)
    pods = result.plan.arrivals.pods[placed]
    return occupied(cluster.nodes, pods, result.node[placed], result.slots[placed])


def uniform_cluster(nodes: int) -> Cluster:
    """Builds a cluster of equal nodes: 96 cores, 768 GiB, 8 GPUs."""
    return Cluster.of(
        (NodeSpec(f"node-{i}", 96_000, 786_432, 8, "G2") for i in range(nodes)), name="uniform"
    )


def dense_workload(alive: int, pods: int = 100_000) -> Workload:
    """Draws OpenB's shapes, one arrival a second, with so many pods alive on average."""
    trace = load_trace("openb", LoadOptions(seed=SEED, pods=pods))
    if trace.workload is None:
        raise RuntimeError("the embedded profile has no pods")
    random = np.random.default_rng(SEED)
    return replace(
        trace.workload,
        arrival_s=np.arange(pods, dtype=np.float64),
        duration_s=np.ceil(random.exponential(alive, pods)),
    )
