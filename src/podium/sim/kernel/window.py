"""Notes who could be placed, and stops where a policy's table is to be prepared anew."""

from __future__ import annotations

import numpy as np

from podium.sim.kernel.constraints import allows, set_floors
from podium.sim.kernel.layout import i8, inner, u1
from podium.sim.kernel.world import fits

_ENOUGH = 2
"""Nodes between which there is something to score."""


@inner
def awaits_table(run, shape):
    """Notes the offered pod, and tells whether a table is due before it is scored.

    A pod that fits nowhere is not seen by the policy, and one that fits a single node is not
    scored: kube-scheduler asks nobody then.
    """
    if run.is_prepared:
        run.is_prepared = 0
        return False
    if u1(run.is_recent)[run.offered] and run.new_pods < run.due_pods:
        return False
    nodes = _fitting(run, shape)
    if nodes > 0:
        note_pod(run, run.offered)
    run.is_prepared = nodes >= _ENOUGH and run.new_pods >= run.due_pods
    return run.is_prepared != 0


@inner
def note_pod(run, pod):
    """Adds a pod to those that are new to the window, unless it is in it."""
    if u1(run.is_recent)[pod]:
        return
    u1(run.is_recent)[pod] = True
    i8(run.new_pod)[run.new_pods] = pod
    run.new_pods += 1


@inner
def _fitting(run, shape):
    """Counts the nodes that the offered pod fits, up to enough of them."""
    if run.has_constraints or run.trial_level:
        set_floors(run)
    found = np.int64(0)
    for node in range(run.num_nodes):
        if fits(run, shape, node):
            if (run.has_constraints or run.trial_level) and not allows(run, node):
                continue
            found += 1
            if found == _ENOUGH:
                break
    return found
