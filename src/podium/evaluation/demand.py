"""Leaves out pods of which too little is read, and of demand those that no node can take.

Drawn again and again, a pod that fits nowhere would be most of what arrives and is not placed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from podium.evaluation.windows import as_demand
from podium.model import Cluster, Workload
from podium.traces.kubernetes.contest import pod_name
from podium.traces.notes import counted
from podium.traces.trace import Trace

UNKNOWN = "of which too little is read"
NOT_KNOWN = "too little is read of what they ask for to know where they fit"

MOST_LEFT_OUT = 0.5
"""Mistakes are few: where more than this share of the pods fits nowhere, the cluster is amiss."""

Flags = npt.NDArray[np.bool_]


def known(trace: Trace) -> Trace:
    """Leaves out pods of which too little is read to place them, with their gangs, and says so.

    What runs keeps its room, also where others of its gang are left out.
    """
    workload = trace.workload
    if workload is None or not trace.doubts:
        return trace
    unread = np.array([pod_name(workload, i) in trace.doubts for i in range(len(workload))])
    is_waiting = np.array([not node for node in workload.bound_to or ("",) * len(workload)])
    is_out = _with_gangs(workload, unread & is_waiting) & is_waiting
    if not is_out.any():
        return trace
    count = int(is_out.sum())
    return replace(
        trace,
        workload=None if is_out.all() else workload.taken(np.flatnonzero(~is_out)),
        notes=(*trace.notes, f"{NOT_KNOWN}, so left out: {counted(count, 'pod')}"),
        left_out={**trace.left_out, UNKNOWN: count},
    )


def placeable(trace: Trace) -> Trace:
    """Leaves out pods that fit on no empty node, with their gangs, and says so.

    Where most would be left out, all stay: the runs themselves tell what keeps them from nodes.
    """
    if trace.cluster is None or trace.workload is None:
        return trace
    reasons = misfits(trace.cluster, trace.workload)
    is_out = _with_gangs(trace.workload, np.array([bool(each) for each in reasons]))
    count = int(is_out.sum())
    if not count or count > MOST_LEFT_OUT * len(is_out):
        return trace
    told = Counter(each for each in reasons if each).most_common()
    why = ", ".join(f"{reason} {pods:,}" for reason, pods in told)
    note = f"no node can take them even when it is empty, so left out: {counted(count, 'pod')}"
    kept = trace.workload.taken(np.flatnonzero(~is_out))
    return replace(trace, workload=kept, notes=(*trace.notes, f"{note} ({why})"))


def misfits(cluster: Cluster, workload: Workload) -> list[str]:
    """Tells of each pod why no node could take it even if nothing ran; empty where one could."""
    from podium.sim.feasible import moment_before, present_plan
    from podium.sim.refusal import refusal_at, refused_alike

    # In the order of the trace, and each for itself.
    alone = replace(
        as_demand(workload), arrival_s=None, duration_s=None, gangs=(), gang_rules=(),
    )  # fmt: skip
    moment = moment_before(present_plan(cluster, alone))
    kinds = [refused_alike(moment, pod) for pod in range(len(alone))]
    one_of = {kind: pod for pod, kind in enumerate(kinds)}
    found = {kind: refusal_at(moment, pod) for kind, pod in one_of.items()}
    return ["" if found[kind].would_fit_empty else found[kind].reason for kind in kinds]


def _with_gangs(workload: Workload, is_out: Flags) -> Flags:
    """Adds the gangs of pods: without one of its pods, no gang starts."""
    gang = workload.pods["gang"]
    found: Flags = is_out | (np.isin(gang, gang[is_out]) & (gang > 0))
    return found
