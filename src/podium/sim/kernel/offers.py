"""Plays the three protocols (replay, inflation, rounds) from one offer to the next.

`next_offer` lets events happen until a pod is to be decided, and `apply` carries the decision out.
Where a run stands between the two is in its record. So whoever decides, the policy in `play` or
somebody outside, goes by the same rules.
"""

from __future__ import annotations

import numpy as np

from podium.model.records import GPU_MILLI
from podium.sim.kernel.calendar import next_time, pop, push
from podium.sim.kernel.constraints import class_of, count, is_enabling
from podium.sim.kernel.gangs import (
    awaits_gang,
    begin_trial,
    close_trial,
    disband,
    enlist,
    is_enough,
    is_ready,
    line_of,
    next_member,
    pass_member,
    take_in,
    tries_elsewhere,
)
from podium.sim.kernel.layout import f8, i4, i8, inlined, inner
from podium.sim.kernel.ranking import HOLDING, NOWHERE, note_change
from podium.sim.kernel.waiting import (
    HOLD,
    NOBODY,
    ROOM,
    close_pass,
    enter,
    first_held,
    forget,
    insert,
    join,
    leave,
    mark,
    next_line,
    open_pass,
    stay,
)
from podium.sim.kernel.world import allocate, pod_on, release, share_slot, share_slots, whole_slots

UNPLACED, PLACED, HELD_BACK = 0, 1, 2
REPLAY, INFLATION, ROUNDS = 0, 1, 2
NOT_DRAINING = -1
NOT_BEGUN = -2
_OVER, _GOING_ON = np.int64(-2), np.int64(NOBODY)
"""What an event leaves behind when it offers no pod."""


@inlined
def next_offer(run):
    """Lets events happen until a pod is to be decided; gives the pod, or NOBODY at the end."""
    pod = _GOING_ON
    while pod == _GOING_ON:
        if run.trial_gang:
            pod = next_member(run)
            if pod == NOBODY:
                _end_trial(run)
        elif run.is_passing:
            pod = _next_waiting(run)
            if pod == NOBODY:
                _end_pass(run)
            elif run.has_gangs and awaits_gang(run, pod):
                begin_trial(run, pod)
                pod = _GOING_ON
        elif run.protocol == REPLAY:
            pod = _next_in_time(run)
        elif run.protocol == INFLATION:
            pod = _arrival(run) if run.arrived < run.num_pods else _OVER
        else:
            pod = _next_round(run)
    run.offered = pod if pod >= 0 else NOBODY
    if run.has_constraints and pod >= 0:
        run.pod_class = class_of(run, pod)
    return run.offered


@inlined
def apply(run, node, slot):
    """Decides the pod that is offered: a node that fits, HOLDING if it may be held, or NOWHERE.

    The slot is that of a pod with a part of a GPU; a negative one leaves it to the run's rule.
    """
    pod = run.offered
    shape = i8(run.shape_of)[pod]
    run.decisions += 1
    if run.trial_gang:
        _apply_member(run, pod, shape, node, slot)
        return
    if node >= 0:
        _place(run, pod, shape, node, slot)
    elif node == HOLDING:
        i4(run.holds)[pod] += 1
        i4(run.status)[pod] = HELD_BACK
    else:
        i4(run.status)[pod] = UNPLACED
    if run.is_passing:
        _settle_waiting(run, pod, node)
    else:
        _settle_arrival(run, pod, node)


@inner
def _apply_member(run, pod, shape, node, slot):
    if node >= 0:
        _put(run, pod, shape, node, slot)
        take_in(run, pod, node)
    elif node == HOLDING:
        i4(run.holds)[pod] += 1
        i4(run.status)[pod] = HELD_BACK
        run.is_trial_held = 1
    else:
        i4(run.status)[pod] = UNPLACED
    pass_member(run, pod)


@inner
def _end_trial(run):
    gang = run.trial_gang
    if is_enough(run):
        _start_gang(run, gang)
        return
    _take_back(run)
    if not tries_elsewhere(run):
        _refuse_gang(run, gang)


@inner
def _start_gang(run, gang):
    leader = i8(run.gang_head)[gang]
    line = line_of(run, leader)
    for i in range(run.trial_size):
        _confirm(run, i8(run.trial_members)[i])
    i4(run.gang_started)[gang] += run.trial_size
    close_trial(run)
    _set_aside(run, leader)
    disband(run, gang)
    if run.is_passing:
        run.pass_outcomes += 1
        leave(run, line, leader)
        return
    if i8(run.head)[line] != NOBODY:
        forget(run, line)
    _join_late(run)
    _settle_gang_arrival(run)


@inner
def _set_aside(run, leader):
    # Members without a node may come later, each on its own.
    pod = leader
    while pod != NOBODY:
        if i4(run.status)[pod] != PLACED and not (
            run.is_dropping and i4(run.status)[pod] == UNPLACED
        ):
            i8(run.late)[run.late_members] = pod
            run.late_members += 1
        pod = i8(run.next_member)[pod]


@inner
def _join_late(run):
    for i in range(run.late_members):
        pod = i8(run.late)[i]
        is_held = i4(run.status)[pod] == HELD_BACK
        insert(run, i8(run.line_of)[pod], pod, HOLD if is_held else ROOM)
    run.late_members = 0


@inner
def _take_back(run):
    for i in range(run.trial_size):
        pod = i8(run.trial_members)[run.trial_size - 1 - i]
        node = np.int64(i4(run.node)[pod])
        _remove(run, pod, node)
        i4(run.node)[pod] = NOBODY
        i4(run.slots)[pod] = 0
        f8(run.start)[pod] = np.nan
        i4(run.status)[pod] = UNPLACED


@inner
def _refuse_gang(run, gang):
    leader = i8(run.gang_head)[gang]
    line = line_of(run, leader)
    reason = HOLD if run.is_trial_held else ROOM
    close_trial(run)
    if reason == ROOM:
        _find_no_room(run, leader)
    if run.is_passing:
        run.pass_outcomes += reason
        mark(run, leader, reason)
        if reason == ROOM and run.is_dropping:
            leave(run, line, leader)
            disband(run, gang)
        else:
            stay(run, line, leader)
        return
    is_waiting = i8(run.head)[line] != NOBODY
    if reason == ROOM and run.is_dropping:
        if is_waiting:
            forget(run, line)
        disband(run, gang)
    elif is_waiting:
        mark(run, leader, reason)
    else:
        join(run, line, leader, reason)
    _settle_gang_arrival(run)


@inner
def _find_no_room(run, leader):
    pod = leader
    while pod != NOBODY:
        i4(run.status)[pod] = UNPLACED
        pod = i8(run.next_member)[pod]


@inner
def _settle_gang_arrival(run):
    if run.protocol == INFLATION:
        i4(run.changes_after)[run.arrived - 1] = run.changes
    if run.held_pods > 0 and run.decisions - run.decisions_at_pass >= run.hold_limit:
        _begin_pass(run)


@inner
def may_hold(run, pod):
    """Tells whether the pod may be held at this offer."""
    if run.trial_gang and run.forced_pod == i8(run.gang_head)[run.trial_gang]:
        return False
    return i4(run.holds)[pod] < run.max_holds and pod != run.forced_pod


@inlined
def _next_in_time(run):
    # At equal times departures, retries, arrivals.
    departs_at = next_time(run)
    arrives_at = f8(run.arrival)[run.arrived] if run.arrived < run.num_pods else np.inf
    if run.is_released and departs_at > run.clock:
        run.is_released = 0
        if run.waiting_pods > 0:
            _begin_pass(run)
    elif departs_at <= arrives_at and run.departures:
        run.clock = departs_at
        _depart(run)
        run.is_released = 1
    elif run.arrived < run.num_pods:
        return _arrival(run)
    elif run.held_pods > 0:
        # Nothing else will happen: held pods are offered, and if none moves, the first is forced.
        run.drained_at = run.changes
        _begin_pass(run)
    else:
        return _OVER
    return _GOING_ON


@inlined
def _next_round(run):
    for pod in range(run.arrived, run.num_pods):
        run.arrived += 1
        if run.has_gangs and awaits_gang(run, pod):
            _queue_member(run, pod)
        else:
            join(run, i8(run.line_of)[pod], pod, ROOM)
    if run.round >= run.max_rounds:
        return _OVER
    run.clock = run.round
    _begin_pass(run)
    return _GOING_ON


@inner
def _arrival(run):
    run.clock = f8(run.arrival)[run.arrived]
    if run.has_gangs and awaits_gang(run, run.arrived):
        _member_arrives(run)
        return _GOING_ON
    return run.arrived


@inner
def _member_arrives(run):
    pod = run.arrived
    run.arrived += 1
    enlist(run, pod)
    if run.protocol == INFLATION:
        i4(run.changes_after)[pod] = run.changes
    if is_ready(run, pod):
        begin_trial(run, pod)


@inner
def _queue_member(run, pod):
    was_ready = is_ready(run, pod)
    enlist(run, pod)
    if is_ready(run, pod) and not was_ready:
        leader = i8(run.gang_head)[i4(run.gang_of)[pod]]
        insert(run, line_of(run, leader), leader, ROOM)


@inlined
def _next_waiting(run):
    """Gives the next pod of the pass under way, or NOBODY at its end."""
    while run.pass_size:
        line = next_line(run, run.pass_size)
        run.pass_size -= 1
        pod = i8(run.cursor)[line]
        # Rounds are counted, and so is every hold in them: nobody may wait for ever behind twins.
        is_offered = run.protocol == ROUNDS or i8(run.refused_at)[line] != run.moves
        if is_offered or not may_hold(run, pod):
            return pod
        # A twin was held on this very state: so is this pod, without being offered.
        i4(run.status)[pod] = HELD_BACK
        mark(run, pod, HOLD)
        stay(run, line, pod)
        run.pass_size = enter(run, run.pass_size, line)
    return np.int64(NOBODY)


@inner
def _begin_pass(run):
    run.is_passing = 1
    run.pass_outcomes = 0
    run.pass_size = open_pass(run)


@inner
def _end_pass(run):
    close_pass(run)
    run.is_passing = 0
    if run.late_members:
        _join_late(run)
    run.decisions_at_pass = run.decisions
    if run.protocol == INFLATION:
        i4(run.changes_after)[run.arrived - 1] = run.changes
    elif run.protocol == ROUNDS:
        # A round that changes nothing is the last.
        run.round = run.round + 1 if run.pass_outcomes else run.max_rounds
    elif run.drained_at != NOT_DRAINING:
        is_stuck = run.changes == run.drained_at and run.held_pods > 0
        run.drained_at = NOT_DRAINING
        if is_stuck:
            run.forced_pod = first_held(run)
            _begin_pass(run)


@inner
def _settle_arrival(run, pod, node):
    if node == HOLDING or (node == NOWHERE and not run.is_dropping):
        join(run, i8(run.line_of)[pod], pod, HOLD if node == HOLDING else ROOM)
    run.arrived += 1
    if run.protocol == INFLATION:
        i4(run.changes_after)[pod] = run.changes
    if run.held_pods > 0 and run.decisions - run.decisions_at_pass >= run.hold_limit:
        _begin_pass(run)


@inner
def _settle_waiting(run, pod, node):
    line = i8(run.line_of)[pod]
    if node == NOWHERE:
        # The rest of the FIFO fits nowhere either; after an eviction another pass follows.
        _shut_out(run, line)
        return
    run.pass_outcomes += 1
    if node == HOLDING:
        i8(run.refused_at)[line] = run.moves
        mark(run, pod, HOLD)
        stay(run, line, pod)
    else:
        leave(run, line, pod)
    run.pass_size = enter(run, run.pass_size, line)


@inner
def _shut_out(run, line):
    pod = i8(run.cursor)[line]
    if not run.is_dropping and run.held_pods == 0:
        return
    while pod != NOBODY:
        i4(run.status)[pod] = UNPLACED
        if run.is_dropping:
            leave(run, line, pod)
        else:
            mark(run, pod, ROOM)
            stay(run, line, pod)
        pod = i8(run.cursor)[line]


@inner
def _place(run, pod, shape, node, slot):
    _put(run, pod, shape, node, slot)
    _confirm(run, pod)


@inner
def _put(run, pod, shape, node, slot):
    slots = slots_for(run, shape, node, slot)
    allocate(run, shape, node, slots)
    if run.has_constraints:
        count(run, pod, node, np.int64(1))
    note_change(run, node)
    i4(run.node)[pod] = node
    i4(run.slots)[pod] = slots
    f8(run.start)[pod] = run.clock
    i4(run.status)[pod] = PLACED


@inner
def _confirm(run, pod):
    _record(run, pod + 1)
    if run.has_constraints and is_enabling(run, pod):
        run.is_released = 1
    if run.has_departures:
        push(run, run.clock + f8(run.duration)[pod], pod)


@inner
def slots_for(run, shape, node, slot):
    """Picks the GPUs that a shape gets on a node, as a bit mask."""
    pod = pod_on(run, shape, node)
    if pod.gpu_count == 0:
        return np.int64(0)
    if pod.gpu_milli == GPU_MILLI:
        return np.int64(whole_slots(run, shape, node))
    if pod.gpu_count > 1:
        return np.int64(share_slots(run, shape, node))
    if slot < 0:
        slot = np.int64(share_slot(run, shape, node))
    # Only a policy that changes state can leave none.
    return np.int64(1) << slot if slot >= 0 else np.int64(0)


@inner
def _depart(run):
    pod = pop(run)
    _remove(run, pod, np.int64(i4(run.node)[pod]))
    _record(run, -(pod + 1))


@inner
def _remove(run, pod, node):
    release(run, i8(run.shape_of)[pod], node, np.int64(i4(run.slots)[pod]))
    if run.has_constraints:
        count(run, pod, node, np.int64(-1))
    note_change(run, node)


@inner
def _record(run, entry):
    i4(run.change)[run.changes] = entry
    run.changes += 1
