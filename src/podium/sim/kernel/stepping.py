"""Steps runs that somebody outside decides: one decision in each run, at each call."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.sim.kernel.layout import i8, inner, u1
from podium.sim.kernel.offers import apply, may_hold, next_offer
from podium.sim.kernel.ranking import HOLDING, NOWHERE, mark_feasible
from podium.sim.kernel.scores import NO_SLOT, is_one_share
from podium.sim.kernel.waiting import NOBODY
from podium.sim.kernel.world import pod_of, pod_on, slots_of

HOLD_ACTION = -1
"""The action that holds a pod; every other action is the number of a node."""

NONE_REFUSED = -1


def step(runs: Any, actions: Any, slots: Any, pods: Any, holdable: Any, is_done: Any) -> int:
    """Decides the offered pod of every run, and goes on to the next one that fits somewhere.

    Gives the first run whose action is refused, and then leaves all runs as they are. A run that
    has not begun is begun, one that is done is left alone; their actions are not read.
    """
    for i in range(len(runs)):
        if runs[i].offered >= 0 and not is_allowed(runs[i], actions[i], slots[i]):
            return i
    for i in range(len(runs)):
        run = runs[i]
        if run.offered >= 0:
            decide(run, actions[i], slots[i])
        if run.offered != NOBODY and await_decision(run) == NOBODY:
            is_done[i] = True
        if run.offered >= 0:
            is_done[i] = False
            pods[i] = pod_of(run, i8(run.shape_of)[run.offered])
            holdable[i] = may_hold(run, run.offered)
    return NONE_REFUSED


@inner
def await_decision(run):
    """Goes on until a pod is offered that fits somewhere, and marks where; NOBODY at the end."""
    while next_offer(run) != NOBODY:
        if mark_feasible(run, i8(run.shape_of)[run.offered]) != NOWHERE:
            return run.offered
        apply(run, np.int64(NOWHERE), NO_SLOT)
    for node in range(run.num_nodes):
        u1(run.feasible)[node] = False
    return np.int64(NOBODY)


@inner
def decide(run, action, slot):
    """Decides the offered pod; one that may not be held goes to the first node that fits."""
    node = action
    if action == HOLD_ACTION:
        node = np.int64(HOLDING) if may_hold(run, run.offered) else first_feasible(run)
        slot = NO_SLOT
    apply(run, node, slot)


@inner
def first_feasible(run):
    """Finds the first node that is marked feasible; there is one where a pod is offered."""
    node = np.int64(0)
    while not u1(run.feasible)[node]:
        node += 1
    return node


@inner
def is_allowed(run, action, slot):
    """Tells whether the action holds the offered pod or names a node, and a GPU, that it fits."""
    if action == HOLD_ACTION:
        return True
    if action < 0 or action >= run.num_nodes or not u1(run.feasible)[action]:
        return False
    shape = i8(run.shape_of)[run.offered]
    if slot < 0 or not is_one_share(run, shape, action):
        return True
    return (
        slot < run.gpu_slots and slots_of(run, action)[slot] >= pod_on(run, shape, action).gpu_milli
    )
