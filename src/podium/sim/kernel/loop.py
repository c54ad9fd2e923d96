"""Runs the three protocols over the compiled state: replay, inflation, rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.model.records import GPU_MILLI
from podium.sim.kernel.calendar import next_time, pop, push
from podium.sim.kernel.layout import f8, i4, i8, inlined, inner
from podium.sim.kernel.ranking import FAILED, HOLDING, NOWHERE, best_node, note_change
from podium.sim.kernel.scores import best_slot
from podium.sim.kernel.waiting import (
    HOLD,
    NOBODY,
    ROOM,
    close_pass,
    enter,
    first_held,
    join,
    leave,
    mark,
    next_shape,
    open_pass,
    stay,
)
from podium.sim.kernel.world import allocate, pod_of, release, share_slot, whole_slots

UNPLACED, PLACED, HELD_BACK = 0, 1, 2
REPLAY, INFLATION, ROUNDS = 0, 1, 2


@inner
def _slots(run, shape, node):
    pod = pod_of(run, shape)
    if pod.gpu_count == 0:
        return np.int64(0)
    if pod.gpu_milli == GPU_MILLI:
        return np.int64(whole_slots(run, shape, node))
    slot = best_slot(run, shape, node) if run.takes_gpu else share_slot(run, shape, node)
    # Only a policy that changes state can leave none.
    return np.int64(1) << slot if slot >= 0 else np.int64(0)


@inner
def _record_change(run, node, entry):
    note_change(run, node)
    i4(run.change)[run.changes] = entry
    run.changes += 1


@inner
def _place(run, pod, shape, node):
    slots = _slots(run, shape, node)
    allocate(run, shape, node, slots)
    _record_change(run, node, pod + 1)
    i4(run.node)[pod] = node
    i4(run.slots)[pod] = slots
    f8(run.start)[pod] = run.clock
    i4(run.status)[pod] = PLACED
    if run.has_departures:
        push(run, run.clock + f8(run.duration)[pod], pod)


@inner
def _depart(run):
    pod = pop(run)
    shape = i8(run.shape_of)[pod]
    node = np.int64(i4(run.node)[pod])
    release(run, shape, node, np.int64(i4(run.slots)[pod]))
    _record_change(run, node, -(pod + 1))


@inner
def _may_hold(run, pod):
    return i4(run.holds)[pod] < run.max_holds and pod != run.forced_pod


@inner
def _offer(run, pod, shape):
    """Offers a pod to the policy; gives the node or the reason against."""
    run.decisions += 1
    node = best_node(run, shape, _may_hold(run, pod))
    if node >= 0:
        _place(run, pod, shape, node)
    elif node == HOLDING:
        i4(run.holds)[pod] += 1
        i4(run.status)[pod] = HELD_BACK
    elif node == NOWHERE:
        i4(run.status)[pod] = UNPLACED
    else:
        run.error_pod = pod
    return node


@inlined
def _offer_arrival(run, pod):
    shape = i8(run.shape_of)[pod]
    node = _offer(run, pod, shape)
    if node == HOLDING or (node == NOWHERE and not run.is_dropping):
        join(run, shape, pod, HOLD if node == HOLDING else ROOM)
    run.arrived += 1
    return node


@inner
def _offer_waiting(run):
    """Offers every waiting pod once, in queue order; gives how many were placed or held."""
    size = open_pass(run)
    outcomes = np.int64(0)
    while size:
        shape = next_shape(run, size)
        size -= 1
        pod = i8(run.cursor)[shape]
        if i8(run.refused_at)[shape] == run.version and _may_hold(run, pod):
            # A twin was held on this very state: so is this pod, without being offered.
            i4(run.status)[pod] = HELD_BACK
            mark(run, pod, HOLD)
            stay(run, shape, pod)
            size = enter(run, size, shape)
            continue
        node = _offer(run, pod, shape)
        if node == FAILED:
            return np.int64(FAILED)
        if node == NOWHERE:
            # Nothing is released during a pass: the rest of the FIFO fits nowhere either.
            _shut_out(run, shape)
            continue
        outcomes += 1
        if node == HOLDING:
            i8(run.refused_at)[shape] = run.version
            mark(run, pod, HOLD)
            stay(run, shape, pod)
        else:
            leave(run, shape, pod)
        size = enter(run, size, shape)
    close_pass(run)
    run.decisions_at_pass = run.decisions
    return outcomes


@inner
def _shut_out(run, shape):
    pod = i8(run.cursor)[shape]
    if not run.is_dropping and run.held_pods == 0:
        return
    while pod != NOBODY:
        i4(run.status)[pod] = UNPLACED
        if run.is_dropping:
            leave(run, shape, pod)
        else:
            mark(run, pod, ROOM)
            stay(run, shape, pod)
        pod = i8(run.cursor)[shape]


@inner
def _is_pass_due(run):
    return run.held_pods > 0 and run.decisions - run.decisions_at_pass >= run.hold_limit


@inlined
def _drain(run):
    """Offers held pods when nothing else will happen; if none moves, the first may not be held."""
    changes = run.changes
    if _offer_waiting(run) == FAILED:
        return np.int64(FAILED)
    if run.changes == changes and run.held_pods > 0:
        run.forced_pod = first_held(run)
        return _offer_waiting(run)
    return np.int64(0)


@inner
def _arrive(run, pod):
    run.clock = f8(run.arrival)[pod]
    if _offer_arrival(run, pod) == FAILED:
        return np.int64(FAILED)
    return _offer_waiting(run) if _is_pass_due(run) else np.int64(0)


@inlined
def _replay(run):
    """Plays arrivals and departures in time; at equal times departures, retries, arrivals."""
    is_released = False
    failed = np.int64(0)
    while failed != FAILED:
        departs_at = next_time(run)
        arrives_at = f8(run.arrival)[run.arrived] if run.arrived < run.num_pods else np.inf
        if is_released and departs_at > run.clock:
            is_released = False
            failed = _offer_waiting(run)
        elif departs_at <= arrives_at and run.departures:
            run.clock = departs_at
            _depart(run)
            is_released = run.waiting_pods > 0
        elif run.arrived < run.num_pods:
            failed = _arrive(run, run.arrived)
        elif run.held_pods > 0:
            failed = _drain(run)
        else:
            return np.int64(0)
    return np.int64(FAILED)


@inlined
def _inflation(run):
    """Lets pods arrive with no departures; what fits nowhere is dropped."""
    for pod in range(run.num_pods):
        if _arrive(run, pod) == FAILED:
            return np.int64(FAILED)
        i4(run.changes_after)[pod] = run.changes
    return np.int64(0)


@inlined
def _rounds(run):
    """Offers a fixed queue round by round, until a round changes nothing or the last is over."""
    for pod in range(run.num_pods):
        join(run, i8(run.shape_of)[pod], pod, ROOM)
        run.arrived += 1
    for number in range(run.max_rounds):
        run.clock = number
        outcomes = _offer_waiting(run)
        if outcomes == FAILED:
            return np.int64(FAILED)
        if outcomes == 0:
            break
    return np.int64(0)


def play(runs: Any) -> int:
    """Runs the protocol that the record names; gives FAILED or 0."""
    run = runs[0]
    if run.protocol == REPLAY:
        return _replay(run)  # type: ignore[no-any-return]
    if run.protocol == INFLATION:
        return _inflation(run)  # type: ignore[no-any-return]
    return _rounds(run)  # type: ignore[no-any-return]
