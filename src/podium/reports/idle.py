"""Notes that a run left nothing to decide, and names the option that changes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from podium.model import Cluster, Workload
from podium.sim.result import PLACED, Result

LARGEST_LOAD = 2.0**30
MOST_REASONS = 3

_WORDS = {
    "gpu_allocation": "GPU allocation", "wait_mean_s": "mean wait", "wait_p95_s": "p95 wait",
    "makespan_s": "makespan",
}  # fmt: skip
"""What tables call a metric whose own name is not plain English."""
_OF_PLACED = ("gpu_allocation", "placed")
"""Metrics that say which pods were placed, not where or when."""

_TAINT = re.compile(r"untolerated taint \{([^:=}]+)")
WAYS_OUT = {
    "taint": "give the pods tolerations, or take the taints off the nodes",
    "selector": "let the pods select nodes that are there",
    "gpu-model": "let the pods ask for GPU models that are there",
}
_BIGGER = "compare the requests of the pods with the nodes: podium traces info shows both"


def idle_note(cluster: Cluster, workload: Workload, summaries: Sequence[dict[str, Any]]) -> str:
    """Notes that no pod of some runs waited, or that none was left over; empty where any did."""
    first = summaries[0]
    if not cluster.gpu_total:
        return ""
    if first["protocol"] == "replay" and not any(each["waited"] for each in summaries):
        kept_out = _kept_out(first)
        others = _busier(cluster, workload, first) if first["placed"] else ""
        return f"no pod waited, so there is nothing to compare{others}{kept_out}"
    if first["protocol"] == "inflation" and all(
        each["placed"] == each["pods"] for each in summaries
    ):
        return (
            "every pod was placed, so there is nothing to compare in placed pods; --ratio 1.3 lets "
            "pods ask for more than the cluster has"
        )
    return ""


def _kept_out(run: dict[str, Any]) -> str:
    """Says what keeps pods out that are never placed, as no load does, and what lets them in."""
    if not run["unplaced"]:
        return ""
    told = ", ".join(f"{why} {count:,}" for why, count in _most(run.get("refusals", {})))
    way_out = WAYS_OUT.get(next(iter(run.get("refusals", {})), ""), _BIGGER)
    return f"; not placed: {told or run['unplaced']}: {way_out}"


def _most(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return Counter(counts).most_common(MOST_REASONS)


def _busier(cluster: Cluster, workload: Workload, summary: dict[str, Any]) -> str:
    busier = busier_load(cluster, workload, summary["load"])
    if busier is None:
        asked = workload.on(cluster).gpu_milli_total / cluster.gpu_milli_total
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
    demand = workload.on(cluster).gpu_weight_milli.astype(np.float64)
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


def refused_words(result: Result) -> Mapping[str, int]:
    """Counts the pods of a run that placed none, by why: the reason, and the key of a taint."""
    from podium.sim.refusal import refusal_of

    arriving = range(len(result.plan.bound), len(result.status))
    if any(result.status[pod] == PLACED for pod in arriving):
        return {}
    words = Counter[str]()
    for pod in arriving:
        refusal = refusal_of(result, pod)
        if refusal is not None:
            found = _TAINT.search(" ".join(refusal.counts)) if refusal.reason == "taint" else None
            words[f"{refusal.reason} {found[1]}" if found else refusal.reason] += 1
    return words


def alike_note(
    runs: Mapping[str, Sequence[dict[str, Any]]], metric: str, refused: Mapping[str, int],
    idle: str, untried: str = "",
) -> str:  # fmt: skip
    """Says why policies cannot be ranked, and in a second line the way out; often nothing.

    They cannot where no pod is pending or none is placed, where every pod is and only placed pods
    count, or where all score the same on every seed.
    """
    listed = list(runs.values())
    every = [run for summaries in listed for run in summaries]
    if not any(map(_asking, every)):
        return _none_pending(every[0]["pods"], untried)
    if not any(run["placed"] for run in every):
        return _nothing(every, refused)
    if len(listed) < 2:
        return ""
    if metric in _OF_PLACED and all(run["placed"] == _asking(run) for run in every):
        told = f"every policy placed every pod, so {_WORDS.get(metric, metric)} prefers none"
        return f"{told}\n{idle or _fuller(every[0])}"
    scores = {tuple((run[metric], run["placed"]) for run in summaries) for summaries in listed}
    if len(scores) > 1:
        return ""
    who = "both policies" if len(listed) == 2 else f"all {len(listed)} policies"
    told = f"{who} place as many pods"
    told += "" if metric == "placed" else f", with the same {_WORDS.get(metric, metric)}"
    if idle:
        return f"{told}\n{idle}"
    return f"{told}{_left_over(every[0])}\n{_way_out(every[0])}"


def _none_pending(count: int, untried: str) -> str:
    running = (
        "1 pod runs already and stays where it is" if count == 1 else
        f"{count:,} pods run already and stay where they are"
    )  # fmt: skip
    way_out = "--state empty places them anew, --protocol inflation fills the cluster with the like"
    if untried:
        way_out = f"{untried.rpartition(': ')[2]} tries what waits"  # it ends with the option
    return f"no pod is pending: {running}\n{way_out}"


def _nothing(every: Sequence[dict[str, Any]], refused: Mapping[str, int]) -> str:
    asked = sum(map(_asking, every))
    most = _most(refused)
    told = ", ".join(f"{why}: {count:,} of {asked:,} pods" for why, count in most)
    reason = most[0][0].partition(" ")[0] if most else ""
    way_out = WAYS_OUT.get(reason, _BIGGER)
    return f"no policy places any pod{f' ({told})' if told else ''}\n{way_out}"


def _asking(run: dict[str, Any]) -> int:
    return int(run["pods"] - run.get("bound", 0))


def _fuller(run: dict[str, Any]) -> str:
    if run["protocol"] == "replay":
        return "--metric wait_mean_s ranks by waiting, and --protocol inflation fills the cluster"
    return _way_out(run)


def _left_over(run: dict[str, Any]) -> str:
    told = ", ".join(f"{why} {count:,}" for why, count in _most(run.get("refusals", {})))
    return f" (not placed: {told})" if told else ""


def _way_out(run: dict[str, Any]) -> str:
    reason = next(iter(run.get("refusals", {})), "")
    if reason in WAYS_OUT:
        return WAYS_OUT[reason]
    if "bound" in run:
        return (
            f"{run['bound']:,} of {run['pods']:,} pods run already and stay where they are; "
            "--state history places them anew, with those that ran"
        )
    if run["protocol"] == "inflation":
        return "take fewer nodes (--nodes), or pods that ask for other things (--trace)"
    return "let more pods arrive: --protocol inflation --ratio 1.3, or another trace"
