"""Summarises a run as one object of plain values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from podium.policies import Policy
from podium.sim.audit import audit
from podium.sim.load_curve import load_curve
from podium.sim.metrics import Metrics, measure
from podium.sim.protocols import Inflation, Replay
from podium.sim.recount import require_possible
from podium.sim.result import Result, unnamed_hold


def summarise(result: Result) -> dict[str, Any]:
    """Returns every figure of a run under its stable name; allocations are fractions.

    The run is recounted first, and impossible results are refused.
    """
    plan = result.plan
    figures = measure(result)
    require_possible(audit(result, figures), plan.policy.name)
    return {
        "policy": plan.policy.name,
        "trace": plan.trace.name,
        "cluster": plan.cluster.name,
        "protocol": plan.protocol.name,
        "seed": plan.seed,
        **_knowledge(result),
        **_intensity(result),
        "nodes": len(plan.cluster),
        "gpus": plan.cluster.gpu_total,
        "pods": len(plan.arrivals),
        **_bound(result),
        "placed": figures.placed,
        "unplaced": figures.unplaced,
        "held": figures.held,
        "holds": figures.holds,
        **_preemption(result, figures),
        **_refusals(result),
        **_use(figures),
        **_times(figures),
        **_curve(result),
        "decisions": result.decisions,
        "tier": plan.tier,
        "wall_s": result.wall_s,
        "digest": result.digest,
    }


def hold_note(policy: Policy, summaries: Sequence[dict[str, Any]]) -> str:
    """Notes how often a policy that never names HOLD held pods, if it did."""
    held, decisions = (sum(each[name] for each in summaries) for name in ("holds", "decisions"))
    return unnamed_hold(held, decisions, is_named=policy.may_hold)


def _knowledge(result: Result) -> dict[str, Any]:
    """Says what a table was prepared from, and who won ties where not the first in order."""
    plan = result.plan
    told = {"demand": plan.demand} if plan.policy.reads_demand else {}
    return told | ({"ties": plan.ties} if plan.ties != "order" else {})


def _intensity(result: Result) -> dict[str, Any]:
    protocol = result.plan.protocol
    if isinstance(protocol, Replay):
        return {"load": protocol.load}
    return {"ratio": protocol.ratio} if isinstance(protocol, Inflation) else {}


def _bound(result: Result) -> dict[str, Any]:
    count = len(result.plan.bound)
    return {"bound": count} if count else {}


def _preemption(result: Result, figures: Metrics) -> dict[str, Any]:
    if result.evictions is None:
        return {}
    lost = {"lost_gpu_s": figures.lost_gpu_s} if result.plan.protocol.name == "replay" else {}
    return {"evictions": figures.evictions, **lost}


def _refusals(result: Result) -> dict[str, Any]:
    """Counts the pods that were not placed by reason, where more than resources decides."""
    if result.plan.is_plain:
        return {}
    from podium.sim.refusal import count_reasons

    return {"refusals": count_reasons(result)}


def _use(figures: Metrics) -> dict[str, Any]:
    return {
        "gpu_allocation": figures.gpu_allocation,
        "cpu_allocation": figures.cpu_allocation,
        "memory_allocation": figures.memory_allocation,
        "fragmentation": figures.fragmentation,
        "fragmentation_ratio": figures.fragmentation_ratio,
        "placed_share": figures.placed_share,
        "nodes_in_use_mean": figures.nodes_in_use_mean,
        "nodes_in_use_peak": figures.nodes_in_use_peak,
    }


def _times(figures: Metrics) -> dict[str, Any]:
    waiting = figures.waiting
    return {
        "wait_mean_s": waiting.mean_s,
        "wait_p50_s": waiting.p50_s,
        "wait_p95_s": waiting.p95_s,
        "wait_p99_s": waiting.p99_s,
        "wait_max_s": waiting.max_s,
        "waited": waiting.waited,
        "makespan_s": figures.makespan_s,
        "completion_mean_s": figures.completion_mean_s,
    }


def _curve(result: Result) -> dict[str, Any]:
    if not isinstance(result.plan.protocol, Inflation):
        return {}
    curve = load_curve(result)
    shares = np.round(curve.allocation / 100, 12).tolist()
    losses = np.round(curve.fragmentation / 100, 12).tolist()
    percents = curve.percent.tolist()
    return {
        "arrived_ratio": curve.arrived_ratio,
        "allocation_at": {str(p): share for p, share in zip(percents, shares, strict=True)},
        "fragmentation_at": {str(p): loss for p, loss in zip(percents, losses, strict=True)},
    }
