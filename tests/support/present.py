"""Asks Podium's core which nodes could take a pod of a dump now."""

from __future__ import annotations

import numpy as np

from podium.sim.bound import is_bound
from podium.sim.protocols import Rounds
from podium.sim.stepping import Episode
from podium.traces import Trace


def feasible_nodes(trace: Trace, pod_name: str) -> set[str]:
    """Names the nodes that a pod is offered beside the pods that are bound, and nobody else."""
    workload = trace.workload
    pod = workload.names.index(pod_name)
    others = np.flatnonzero(is_bound(workload))
    alone = workload.taken(np.append(others, pod).astype(np.int64))
    episode = Episode.of(trace.cluster, alone, Rounds())
    if episode.offer is None:
        return set()
    return {episode.node_name(int(node)) for node in np.flatnonzero(episode.offer.feasible)}
