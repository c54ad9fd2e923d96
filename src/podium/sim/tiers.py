"""Chooses how a run is executed: plain Python with a memo, compiled with a cache, or a scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from podium.errors import PolicyError
from podium.model import Cluster, Workload
from podium.policies import ClusterPolicy, PairPolicy, Policy
from podium.sim.interrupt import unbroken
from podium.sim.preparation import Table
from podium.sim.protocols import Protocol, Replay

Tier = Literal["auto", "python", "cached", "scan"]

SCAN_NODES = 64
"""Up to this many nodes a scan beats the cache."""

CACHE_BYTES = 2 << 30
"""The score cache is not made larger than this; a scan is slower and needs no memory."""

SPARSE_PODS = 256
"""With no more pods alive at once, a policy is cheaper to run than to compile."""


def choose_tier(
    asked: Tier, policy: Policy, workload: Workload, protocol: Protocol, cluster: Cluster,
    prepare: Callable[[PairPolicy], Table] | None = None,
) -> Tier:  # fmt: skip
    """Picks the tier that is fastest for one run of this policy on this workload.

    Where the policy has to be compiled to know, `prepare` gives its table.
    """
    if isinstance(policy, ClusterPolicy):
        return "scan"
    if asked == "python" or (asked == "auto" and _is_cheap_in_python(policy, workload, protocol)):
        return "python"
    if asked == "auto":
        table = prepare(policy) if prepare else policy.table(workload.shapes())
        if not _compiles(policy, table, cluster):
            return "python"
    if asked in ("cached", "scan"):
        return asked
    return "cached" if is_cache_worthwhile(workload, len(cluster)) else "scan"


def is_cache_worthwhile(workload: Workload, num_nodes: int) -> bool:
    """Tells whether rows of scores pay: many nodes, shapes that come again, enough memory."""
    num_shapes = int(workload.shape_of().max()) + 1
    if num_nodes <= SCAN_NODES:
        return False
    return 2 * num_shapes <= len(workload) and 8 * num_shapes * num_nodes <= CACHE_BYTES


def _is_cheap_in_python(policy: PairPolicy, workload: Workload, protocol: Protocol) -> bool:
    is_shipped = policy.is_kept and policy.origin != "file"
    if is_shipped or policy.compiled or not isinstance(protocol, Replay):
        return False
    return most_alive(workload, protocol.load) <= SPARSE_PODS


def most_alive(workload: Workload, load: float) -> int:
    """Counts the pods that would run at once if none had to wait."""
    if workload.arrival_s is None or workload.duration_s is None:
        return len(workload)
    arrival = workload.arrival_s / load
    moments = np.concatenate([arrival, arrival + workload.duration_s])
    steps = np.repeat([1, -1], len(workload))
    # Departures first at equal times.
    return int(np.cumsum(steps[np.lexsort((steps, moments))]).max(initial=0))


def _compiles(policy: PairPolicy, table: Table, cluster: Cluster) -> bool:
    try:
        with unbroken():
            policy.native(table.ndim, cluster.nodes["gpu_milli_left"].shape[1])
    except PolicyError:
        return False
    return True
