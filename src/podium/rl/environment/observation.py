"""Writes what an environment shows: the offered pod and those behind it, nodes, and the queue."""

from __future__ import annotations

import numpy as np

from podium.policies.jit import compiled
from podium.policies.networks.features import (
    CONTEXT_FEATURES,
    FIRST_PAIR,
    NODE_FEATURES,
    POD_FEATURES,
    clear_pair,
    write_pair,
    write_pod,
)
from podium.sim.kernel.layout import f4, i4, i8, inner, u1
from podium.sim.kernel.offers import may_hold
from podium.sim.kernel.waiting import NOBODY, key_of
from podium.sim.kernel.world import node_of, pod_of, pod_on, slots_of

MOST_AHEAD = 16
"""So many pods behind the offered one can be shown."""

_write_pair = compiled(write_pair, "rl")  # type: ignore[arg-type]
_clear_pair = compiled(clear_pair, "rl")  # type: ignore[arg-type]
_write_pod = compiled(write_pod, "rl")  # type: ignore[arg-type]


@inner
def show(run, tally):
    """Writes everything about the pod that is offered."""
    can_hold = may_hold(run, run.offered)
    u1(tally.may_hold)[0] = can_hold
    feasible = _show_pairs(run, tally)
    _show_pods(run, tally)
    row = f4(tally.context)
    row[0] = tally.gpu_left / tally.gpu_total
    row[1] = tally.cpu_left / tally.cpu_total
    row[2] = tally.memory_left / tally.memory_total
    row[3] = 1000.0 * tally.whole_left / tally.gpu_total
    row[4] = feasible / run.num_nodes
    row[5] = 1.0 if can_hold else 0.0
    row[6] = tally.demand / tally.gpu_total
    row[7] = run.waiting_pods / run.num_pods
    row[8] = (run.num_pods - run.arrived) / run.num_pods
    row[9] = 0.0
    if run.max_rounds:
        row[9] = (run.max_rounds - run.round) / run.max_rounds


@inner
def show_nothing(run, tally):
    """Writes zeros: the run is over."""
    for i in range(NODE_FEATURES * run.num_nodes):
        f4(tally.nodes)[i] = 0.0
    for i in range(POD_FEATURES * (1 + tally.look_ahead)):
        f4(tally.pods)[i] = 0.0
    for i in range(CONTEXT_FEATURES):
        f4(tally.context)[i] = 0.0
    u1(tally.may_hold)[0] = 0


@inner
def _show_pairs(run, tally):
    shape = i8(run.shape_of)[run.offered]
    feasible = u1(run.feasible)
    count = 0
    for node in range(run.num_nodes):
        row = f4(tally.nodes + 4 * NODE_FEATURES * node)
        if feasible[node]:
            count += 1
            pod = pod_on(run, shape, np.int64(node))
            _write_pair(row, pod, node_of(run, node), slots_of(run, node), run.gpu_slots)
        elif row[FIRST_PAIR] != 0.0:
            _clear_pair(row)
    return count


@inner
def _show_pods(run, tally):
    _show_pod(run, tally, np.int64(0), np.int64(run.offered))
    shown = np.int64(0)
    if tally.look_ahead and run.waiting_pods:
        shown = _find_next(run, tally)
        for place in range(shown):
            _show_pod(run, tally, np.int64(place + 1), i8(tally.ahead)[MOST_AHEAD + place])
    for i in range(POD_FEATURES * (1 + shown), POD_FEATURES * (1 + tally.look_ahead)):
        f4(tally.pods)[i] = 0.0


@inner
def _show_pod(run, tally, place, pod):
    row = f4(tally.pods + 4 * POD_FEATURES * place)
    _write_pod(row, pod_of(run, i8(run.shape_of)[pod]), i4(run.holds)[pod])


@inner
def _find_next(run, tally):
    """Lists who is offered next if nothing else happens: of a pass the rest, else all who wait."""
    count = np.int64(0)
    if not run.is_passing:
        for i in range(run.active_lines):
            line = i8(run.active)[i]
            count = _consider(run, tally, line, i8(run.head)[line], count)
        return count
    for i in range(run.pass_size):
        if count < tally.look_ahead or i8(run.pass_key)[i] < i8(tally.ahead)[count - 1]:
            line = i8(run.pass_line)[i]
            count = _consider(run, tally, line, i8(run.cursor)[line], count)
    if not run.trial_gang:
        line = i8(run.line_of)[run.offered]
        count = _consider(run, tally, line, i8(run.next_pod)[run.offered], count)
    return count


@inner
def _consider(run, tally, line, pod, count):
    """Puts the pods of a line where they belong among the first of the queue."""
    keys, pods = i8(tally.ahead), i8(tally.ahead + 8 * MOST_AHEAD)
    while pod != NOBODY:
        key = key_of(run, line, pod)
        if count == tally.look_ahead and key >= keys[count - 1]:
            return count
        count = min(count + 1, tally.look_ahead)
        place = count - 1
        while place and keys[place - 1] > key:
            keys[place] = keys[place - 1]
            pods[place] = pods[place - 1]
            place -= 1
        keys[place] = key
        pods[place] = pod
        pod = i8(run.next_pod)[pod]
    return count
