"""Tries gangs: their pods are placed one by one, and all taken back unless enough of them fit.

The members of a gang that has not started wait in a list of their own. Its first pod stands for
all of them in the queue, in a line that no other pod is in. A gang that must be in one domain
is tried in the domain of the node that the policy likes best for its first pod; then, without
that domain, again.
"""

from __future__ import annotations

import numpy as np

from podium.sim.kernel.layout import i4, i8, inner, u1
from podium.sim.kernel.waiting import NOBODY


@inner
def awaits_gang(run, pod):
    """Tells whether a pod may start only together with its gang."""
    gang = i4(run.gang_of)[pod]
    return gang > 0 and i4(run.gang_started)[gang] < i4(run.gang_minimum)[gang]


@inner
def line_of(run, pod):
    """Gives the line of the queue that a pod waits in: its own, or that of its gang."""
    if run.has_gangs and awaits_gang(run, pod):
        return run.first_gang_line + np.int64(i4(run.gang_of)[pod]) - 1
    return i8(run.line_of)[pod]


@inner
def enlist(run, pod):
    """Adds a pod that has arrived to the members of its gang."""
    gang = i4(run.gang_of)[pod]
    heads, tails, members = i8(run.gang_head), i8(run.gang_tail), i8(run.next_member)
    members[pod] = NOBODY
    if heads[gang] == NOBODY:
        heads[gang] = pod
    else:
        members[tails[gang]] = pod
    tails[gang] = pod
    i4(run.gang_arrived)[gang] += 1


@inner
def is_ready(run, pod):
    """Tells whether enough pods of a gang have arrived for it to start."""
    gang = i4(run.gang_of)[pod]
    there = i4(run.gang_started)[gang] + i4(run.gang_arrived)[gang]
    return there >= i4(run.gang_minimum)[gang]


@inner
def begin_trial(run, pod):
    """Begins to try the gang of a pod on the present state."""
    run.trial_gang = i4(run.gang_of)[pod]
    run.trial_level = i4(run.gang_level)[run.trial_gang]
    run.is_trial_held = 0
    run.trial_home = _home(run)
    _rewind(run)


@inner
def _home(run):
    # Members that run already say where the others must go.
    return np.int64(i4(run.gang_home)[run.trial_gang]) if run.trial_level > 0 else np.int64(-1)


@inner
def _rewind(run):
    run.trial_pod = i8(run.gang_head)[run.trial_gang]
    run.trial_left = i4(run.gang_arrived)[run.trial_gang]
    run.trial_size = 0
    run.trial_domain = run.trial_home


@inner
def next_member(run):
    """Gives the member to offer next; NOBODY when all were, or too few can follow."""
    gang = run.trial_gang
    most = i4(run.gang_started)[gang] + run.trial_size + run.trial_left
    if most < i4(run.gang_minimum)[gang]:
        return np.int64(NOBODY)
    return np.int64(run.trial_pod)


@inner
def pass_member(run, pod):
    """Goes on to the member behind one that was decided."""
    run.trial_pod = i8(run.next_member)[pod]
    run.trial_left -= 1


@inner
def take_in(run, pod, node):
    """Notes that a member found a node; the first one settles the domain."""
    i8(run.trial_members)[run.trial_size] = pod
    run.trial_size += 1
    if run.trial_level > 0 and run.trial_domain < 0:
        run.trial_domain = domain_at(run, node)


@inner
def domain_at(run, node):
    """Gives a node's domain at the level of the gang that is tried."""
    return np.int64(i4(run.gang_domains)[(run.trial_level - 1) * run.num_nodes + node])


@inner
def is_enough(run):
    """Tells whether the members that found nodes are enough to start."""
    gang = run.trial_gang
    return i4(run.gang_started)[gang] + run.trial_size >= i4(run.gang_minimum)[gang]


@inner
def tries_elsewhere(run):
    """Begins again in another domain, if one is left to be tried."""
    if run.trial_level == 0 or run.trial_home >= 0 or run.trial_domain < 0:
        return False
    u1(run.is_barred)[run.trial_domain] = True
    _rewind(run)
    return True


@inner
def is_in_domain(run, node):
    """Tells whether the gang that is tried may use a node."""
    domain = domain_at(run, node)
    if domain < 0 or u1(run.is_barred)[domain]:
        return False
    return run.trial_domain < 0 or domain == run.trial_domain


@inner
def close_trial(run):
    """Ends a trial, whatever came of it."""
    run.trial_gang = 0
    if run.trial_level > 0:
        for domain in range(run.num_domains):
            u1(run.is_barred)[domain] = False
    run.trial_level = 0


@inner
def disband(run, gang):
    """Forgets the members that have arrived: they are placed, or wait on their own, or dropped."""
    i8(run.gang_head)[gang] = NOBODY
    i8(run.gang_tail)[gang] = NOBODY
    i4(run.gang_arrived)[gang] = 0
