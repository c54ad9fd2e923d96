"""Notes that a run left nothing to decide, and names the option that changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.model import Cluster, Workload
from podium.model.workload import gpu_demand

LARGEST_LOAD = 2.0**30


def idle_note(cluster: Cluster, workload: Workload, summaries: Sequence[dict[str, Any]]) -> str:
    """Notes that no pod waited, or that none was left over; empty where pods were."""
    if not summaries or not cluster.gpu_total:
        return ""
    first = summaries[0]
    if first["protocol"] == "replay" and not any(each["waited"] for each in summaries):
        return _nobody_waited(cluster, workload, first)
    if first["protocol"] == "inflation" and not any(_left_over(each) for each in summaries):
        return (
            "every pod was placed, so policies hardly differ; --ratio 1.3 lets pods ask for more "
            "than the cluster has"
        )
    return ""


def _left_over(summary: dict[str, Any]) -> int:
    return int(summary["unplaced"] + summary["held"])


def _nobody_waited(cluster: Cluster, workload: Workload, summary: dict[str, Any]) -> str:
    busier = busier_load(cluster, workload, summary["load"])
    told = f"no pod waited and {summary['gpu_allocation']:.1%} of the GPUs were in use on average"
    if busier is None:
        asked = gpu_demand(workload.pods).sum() / cluster.gpu_milli_total
        return (
            f"{told}: all pods together ask for {asked:.0%} of the GPUs, so no --load fills them; "
            "--protocol inflation does, and so may a smaller --cluster"
        )
    return (
        f"{told}, so there is nothing to compare; --load {busier:g} keeps the GPUs busy, "
        "--protocol inflation fills the cluster"
    )


def busier_load(cluster: Cluster, workload: Workload, load: float) -> float | None:
    """Finds a load at which pods ask for all GPUs while they arrive, as a power of 2 of this one.

    None where all pods together fit: then nobody waits however fast they arrive.
    """
    demand = gpu_demand(workload.pods).astype(np.float64)
    if not workload.has_times or demand.sum() <= cluster.gpu_milli_total:
        return None
    assert workload.arrival_s is not None
    assert workload.duration_s is not None
    span_s = float(np.ptp(workload.arrival_s))
    while load < LARGEST_LOAD and span_s > 0:
        load *= 2
        within_s = np.minimum(workload.duration_s, span_s / load)
        if (demand * within_s).sum() >= cluster.gpu_milli_total * span_s / load:
            break
    return load
