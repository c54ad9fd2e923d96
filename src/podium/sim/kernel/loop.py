"""Runs a policy to the end: offer by offer, it takes the node that the policy likes best."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.sim.kernel.layout import i4, i8, inner
from podium.sim.kernel.offers import apply, may_hold, next_offer
from podium.sim.kernel.ranking import FAILED, NOWHERE, best_node
from podium.sim.kernel.scores import NO_SLOT, best_slot, is_one_share
from podium.sim.kernel.waiting import NOBODY
from podium.sim.kernel.window import awaits_table

PREEMPTING = -4
"""Says that a pod fits nowhere, and that whoever runs the core may evict others for it."""

PREPARING = -5
"""Says that the table of the policy is to be prepared anew before the offered pod is scored."""


def play(runs: Any) -> int:
    """Runs the protocol that the record names; gives FAILED, PREEMPTING, PREPARING or 0."""
    run = runs[0]
    while run.is_prepared or next_offer(run) != NOBODY:
        shape = i8(run.shape_of)[run.offered]
        if run.has_window and awaits_table(run, shape):
            return PREPARING
        node = best_node(run, shape, may_hold(run, run.offered))
        if node == FAILED:
            run.error_pod = run.offered
            return FAILED
        if node == NOWHERE and run.has_preemption and not run.trial_gang and _may_evict(run):
            return PREEMPTING
        apply(run, node, _slot(run, shape, node))
    return 0


@inner
def _may_evict(run):
    """Tells whether pods of lower priority may run, so that it is worth asking for victims.

    Most pods that wait in an overloaded cluster are among the lowest, and are refused here. Who
    has left since others were evicted still counts.
    """
    priority, line_of = i8(run.priority), i8(run.line_of)
    while run.noted_changes < run.changes:
        entry = np.int64(i4(run.change)[run.noted_changes])
        if entry > 0:
            run.lowest_running = min(run.lowest_running, priority[line_of[entry - 1]])
        run.noted_changes += 1
    return priority[line_of[run.offered]] > run.lowest_running


@inner
def _slot(run, shape, node):
    if run.takes_gpu and node >= 0 and is_one_share(run, shape, node):
        return np.int64(best_slot(run, shape, node))
    return NO_SLOT
