"""Notes that a run left nothing to decide, and names the option that changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.model import Cluster, Workload
from podium.model.workload import gpu_demand

LARGEST_LOAD = 2.0**30


def idle_note(cluster: Cluster, workload: Workload, summaries: Sequence[dict[str, Any]]) -> str:
    """Notes that no pod of some runs waited, or that none was left over; empty where any did."""
    first = summaries[0]
    if not cluster.gpu_total:
        return ""
    if first["protocol"] == "replay" and not any(each["waited"] for each in summaries):
        return f"no pod waited, so there is nothing to compare{_busier(cluster, workload, first)}"
    if first["protocol"] == "inflation" and all(
        each["placed"] == each["pods"] for each in summaries
    ):
        return (
            "every pod was placed, so there is nothing to compare in placed pods; --ratio 1.3 lets "
            "pods ask for more than the cluster has"
        )
    return ""


def _busier(cluster: Cluster, workload: Workload, summary: dict[str, Any]) -> str:
    busier = busier_load(cluster, workload, summary["load"])
    if busier is None:
        asked = gpu_demand(workload.pods).sum() / cluster.gpu_milli_total
        return (
            f": all pods together ask for {100 * asked:.0f} % of the GPUs, so no --load makes them "
            "wait; --protocol inflation fills the cluster, and a smaller --cluster may be full"
        )
    used = f"{100 * summary['gpu_allocation']:.1f} % of the GPUs are in use on average"
    return f" ({used}); --load {busier:g} keeps them busy, --protocol inflation fills the cluster"


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
