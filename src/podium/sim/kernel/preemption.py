"""Evicts pods for one of higher priority that fits nowhere, as kube-scheduler's default does.

On each node all pods of lower priority are thought away. If the pod then fits, as many as possible
are put back: first those whose eviction violates a PodDisruptionBudget, then the others, each time
the more important first. Who cannot be put back is a victim. The node is chosen by its victims.
Source: `pkg/scheduler/framework/preemption` and `plugins/defaultpreemption` of Kubernetes 1.36.

A run without preemption never compiles this. What it needs beside the run is in its own record.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.model.records import ANY_MODEL
from podium.sim.kernel.calendar import cancel
from podium.sim.kernel.constraints import allows, count, is_free, set_floors
from podium.sim.kernel.layout import f8, i4, i8, inner, u1
from podium.sim.kernel.offers import UNPLACED, apply
from podium.sim.kernel.ranking import FAILED, NOWHERE, POLICY_FAILED, note_change
from podium.sim.kernel.scores import NO_SLOT, best_slot, is_one_share, score_node
from podium.sim.kernel.waiting import NOBODY, ROOM, insert
from podium.sim.kernel.window import note_pod
from podium.sim.kernel.world import allocate, fits, node_of, pod_of, record_on, release

NOBODY_RUNS = 1 << 62
"""Stands for the lowest priority of all that run, while nobody does."""

_NUMBERS = (
    # changes of the run that the lists of running pods contain, and pods evicted so far
    *("seen_changes", "evictions"),
    *("num_budgets", "num_levels"),
    "lowest_level",  # no pod of a lower one runs
    # the victims on the node that is looked at, and what they are compared by
    *("num_victims", "violations", "highest", "priority_sum"),
    # the same of the best node so far
    *("best_size", "best_violations", "best_highest", "best_sum"),
)
SPACE_ARRAYS = {
    "priority": "int64 (num_pods)",
    "may_preempt": "uint8 (num_pods): its preemptionPolicy is not Never",
    "age": "float64 (num_pods): how long a pod had run when the run began",
    "level_of": "int64 (num_pods): index of its priority among the levels",
    "level_priority": "int64 (num_levels): every priority once, the lowest first",
    "running_at": "int64 (num_levels): running pods of each priority",
    "first": "int64 (num_nodes): a pod that runs there",
    "behind": "int64 (num_pods): the next one on its node",
    "ahead": "int64 (num_pods): the one before it on its node",
    "touched": "int64 (num_nodes): changes of the run after the last one of this node",
    "barren_at": "int64 (num_lines): changes after which no node had victims, -1 = never",
    "budget_start": "int64 (num_pods + 1)",
    "budget_of": "int64: budgets that select a pod",
    "is_healthy": "uint8 (num_pods): counts for its budgets while it runs",
    "healthy": "int64 (num_budgets): running pods",
    "desired": "int64 (num_budgets): those that should run",
    "allowed": "int64 (num_budgets): scratch",
    "victims": "int64 (num_pods): on the node that is looked at, the most important first",
    "is_violating": "uint8 (num_pods): whether evicting victim i violates a budget",
    "is_back": "uint8 (num_pods): whether victim i can be put back",
    "best_victims": "int64 (num_pods)",
    # who was evicted, in order
    "evicted_at": "int64: index of the eviction among the changes of the run",
    "evicted_node": "int32: rank of the node",
    "evicted_slots": "int32: bit mask of GPU slots",
    "evicted_start": "float64",
    "evicted_end": "float64",
    "evicted_for": "int64: the pod that it made room for",
}
"""The arrays of preemption; the record holds their addresses."""

SPACE = np.dtype(
    [("earliest", np.float64), ("best_earliest", np.float64)]
    + [(name, np.int64) for name in (*_NUMBERS, *SPACE_ARRAYS)]
)


def preempt(runs: Any, spaces: Any) -> int:
    """Decides the offered pod, which fits nowhere: others leave, or it waits; gives FAILED or 0."""
    run, space = runs[0], spaces[0]
    _catch_up(run, space)
    _note_lowest(run, space)
    node = _best_node(run, space, run.offered)
    slot = NO_SLOT
    if node >= 0:
        _evict(run, space, node)
        shape = i8(run.shape_of)[run.offered]
        if run.takes_gpu and is_one_share(run, shape, node):
            if np.isnan(score_node(run, shape, node)):
                run.error_code, run.error_node, run.error_pod = POLICY_FAILED, node, run.offered
                return FAILED
            slot = np.int64(best_slot(run, shape, node))
        if run.has_window:
            note_pod(run, run.offered)
    apply(run, node, slot)
    return 0


@inner
def _catch_up(run, space):
    """Follows the changes of the run in the lists of running pods."""
    for position in range(space.seen_changes, run.changes):
        entry = np.int64(i4(run.change)[position])
        pod = abs(entry) - 1
        node = np.int64(i4(run.node)[pod])
        i8(space.touched)[node] = position + 1
        if entry > 0:
            _link(space, pod, node)
        else:
            _unlink(space, pod, node)
    space.seen_changes = run.changes


@inner
def _link(space, pod, node):
    first, behind, ahead = i8(space.first), i8(space.behind), i8(space.ahead)
    behind[pod], ahead[pod] = first[node], NOBODY
    if first[node] != NOBODY:
        ahead[first[node]] = pod
    first[node] = pod
    _count_running(space, pod, np.int64(1))


@inner
def _unlink(space, pod, node):
    behind, ahead = i8(space.behind), i8(space.ahead)
    if ahead[pod] == NOBODY:
        i8(space.first)[node] = behind[pod]
    else:
        behind[ahead[pod]] = behind[pod]
    if behind[pod] != NOBODY:
        ahead[behind[pod]] = ahead[pod]
    _count_running(space, pod, np.int64(-1))


@inner
def _count_running(space, pod, sign):
    level = i8(space.level_of)[pod]
    i8(space.running_at)[level] += sign
    space.lowest_level = min(space.lowest_level, level)
    if u1(space.is_healthy)[pod]:
        for i in range(i8(space.budget_start)[pod], i8(space.budget_start)[pod + 1]):
            i8(space.healthy)[i8(space.budget_of)[i]] += sign


@inner
def _note_lowest(run, space):
    """Says below which priority nobody runs: the core asks for no victims there."""
    running_at = i8(space.running_at)
    while space.lowest_level < space.num_levels and not running_at[space.lowest_level]:
        space.lowest_level += 1
    run.lowest_running = NOBODY_RUNS
    if space.lowest_level < space.num_levels:
        run.lowest_running = i8(space.level_priority)[space.lowest_level]
    run.noted_changes = run.changes


@inner
def _best_node(run, space, pod):
    """Finds the node on which evictions for a pod cost least, and its victims; or NOWHERE."""
    best = np.int64(NOWHERE)
    is_above_others = space.lowest_level < i8(space.level_of)[pod]
    if not u1(space.may_preempt)[pod] or not is_above_others:
        return best
    line = i8(run.line_of)[pod]
    # Without constraints, a node that has not changed since is as barren as it was.
    since = np.int64(-1) if run.has_constraints else i8(space.barren_at)[line]
    for node in range(run.num_nodes):
        if i8(space.touched)[node] <= since or not _is_resolvable(run, pod, node):
            continue
        if _finds_victims(run, space, pod, node) and (best < 0 or _is_better(space)):
            best = np.int64(node)
            _remember(space)
    if best < 0:
        i8(space.barren_at)[line] = run.changes
    return best


@inner
def _is_resolvable(run, pod, node):
    """Tells whether a node could take the pod if it were empty, as far as that is quickly said."""
    shape = record_on(run, i8(run.shape_of)[pod], node)
    if shape < 0:
        return False
    if run.has_constraints:
        row = np.int64(i4(run.filter_of)[run.pod_class])
        if not u1(run.admits)[row * run.num_nodes + node]:
            return False
    asked, there = pod_of(run, shape), node_of(run, node)
    if asked.cpu_milli > there.cpu_milli_total or asked.memory_mib > there.memory_mib_total:
        return False
    if asked.gpu_count > there.gpu_count:
        return False
    return (
        asked.gpu_count == 0
        or asked.gpu_models == ANY_MODEL
        or (there.gpu_model >= 0 and (asked.gpu_models >> there.gpu_model) & 1 == 1)
    )


@inner
def _finds_victims(run, space, pod, node):
    """Finds who must leave a node for the pod; the state is afterwards as it was."""
    size = _list_lower(run, space, pod, node)
    if size == 0:
        return False
    victims = i8(space.victims)
    for i in range(size):
        _leave(run, victims[i], node)
    fits_then = _fits(run, pod, node)
    if fits_then:
        _mark_violating(space, size)
        _put_back(run, space, pod, node, size)
        _weigh(run, space, size)
    for i in range(size):
        if not fits_then or not u1(space.is_back)[i]:
            _return(run, victims[i], node)
    if fits_then:
        _drop_those_back(space, size)
    return fits_then


@inner
def _list_lower(run, space, pod, node):
    """Lists the pods of lower priority on a node, the most important first; gives how many."""
    priority, victims = i8(space.priority), i8(space.victims)
    size = np.int64(0)
    other = i8(space.first)[node]
    while other != NOBODY:
        if priority[other] < priority[pod]:
            place = size
            while place and _is_more_important(run, space, other, victims[place - 1]):
                victims[place] = victims[place - 1]
                place -= 1
            victims[place] = other
            size += 1
        other = i8(space.behind)[other]
    return size


@inner
def _is_more_important(run, space, one, other):
    priority = i8(space.priority)
    if priority[one] != priority[other]:
        return priority[one] > priority[other]
    began, other_began = _began(run, space, one), _began(run, space, other)
    return began < other_began or (began == other_began and one < other)


@inner
def _began(run, space, pod):
    return f8(run.start)[pod] - f8(space.age)[pod]


@inner
def _leave(run, pod, node):
    release(run, i8(run.shape_of)[pod], node, np.int64(i4(run.slots)[pod]))
    if run.has_constraints:
        count(run, pod, node, np.int64(-1))


@inner
def _return(run, pod, node):
    allocate(run, i8(run.shape_of)[pod], node, np.int64(i4(run.slots)[pod]))
    if run.has_constraints:
        count(run, pod, node, np.int64(1))


@inner
def _fits(run, pod, node):
    if not fits(run, i8(run.shape_of)[pod], node):
        return False
    if is_free(run):
        return True
    set_floors(run)
    return allows(run, node)


@inner
def _mark_violating(space, size):
    """Marks whose eviction violates a budget, if all before them in the list leave as well."""
    allowed = i8(space.allowed)
    for budget in range(space.num_budgets):
        allowed[budget] = max(0, i8(space.healthy)[budget] - i8(space.desired)[budget])
    for i in range(size):
        pod = i8(space.victims)[i]
        u1(space.is_violating)[i] = False
        for j in range(i8(space.budget_start)[pod], i8(space.budget_start)[pod + 1]):
            budget = i8(space.budget_of)[j]
            allowed[budget] -= 1
            if allowed[budget] < 0:
                u1(space.is_violating)[i] = True


@inner
def _put_back(run, space, pod, node, size):
    """Puts back as many as possible, those that budgets protect first."""
    victims = i8(space.victims)
    space.violations = 0
    for protected in range(1, -1, -1):
        for i in range(size):
            if u1(space.is_violating)[i] != protected:
                continue
            _return(run, victims[i], node)
            u1(space.is_back)[i] = _fits(run, pod, node)
            if not u1(space.is_back)[i]:
                _leave(run, victims[i], node)
                space.violations += protected


@inner
def _weigh(run, space, size):
    """Works out what nodes are compared by."""
    victims, priority = i8(space.victims), i8(space.priority)
    space.num_victims = 0
    space.priority_sum = 0
    space.earliest = np.inf
    for i in range(size):
        if u1(space.is_back)[i]:
            continue
        if space.num_victims == 0:
            space.highest = priority[victims[i]]
        if priority[victims[i]] == space.highest:
            space.earliest = min(space.earliest, _began(run, space, victims[i]))
        space.num_victims += 1
        space.priority_sum += priority[victims[i]] + (1 << 31)


@inner
def _drop_those_back(space, size):
    victims, place = i8(space.victims), np.int64(0)
    for i in range(size):
        if not u1(space.is_back)[i]:
            victims[place] = victims[i]
            place += 1


@inner
def _is_better(space):
    """Compares as `pickOneNodeForPreemption` does; the best so far has the lower rank."""
    if space.violations != space.best_violations:
        return space.violations < space.best_violations
    if space.highest != space.best_highest:
        return space.highest < space.best_highest
    if space.priority_sum != space.best_sum:
        return space.priority_sum < space.best_sum
    if space.num_victims != space.best_size:
        return space.num_victims < space.best_size
    return space.earliest > space.best_earliest


@inner
def _remember(space):
    space.best_violations, space.best_highest = space.violations, space.highest
    space.best_sum, space.best_size = space.priority_sum, space.num_victims
    space.best_earliest = space.earliest
    for i in range(space.num_victims):
        i8(space.best_victims)[i] = i8(space.victims)[i]


@inner
def _evict(run, space, node):
    """Lets the victims of the best node leave at once, and wait again."""
    for i in range(space.best_size):
        pod = i8(space.best_victims)[i]
        _note_eviction(run, space, pod, node)
        _leave(run, pod, node)
        note_change(run, node)
        if run.has_departures:
            cancel(run, pod)
        _unlink(space, pod, node)
        i4(run.change)[run.changes] = -(pod + 1)
        run.changes += 1
        _forget_placement(run, space, pod)
        _queue_again(run, pod)
    i8(space.touched)[node] = run.changes
    space.seen_changes = run.changes
    # Who was refused before may fit now.
    run.is_released = 1


@inner
def _note_eviction(run, space, pod, node):
    place = space.evictions
    i8(space.evicted_at)[place] = run.changes
    i4(space.evicted_node)[place] = node
    i4(space.evicted_slots)[place] = i4(run.slots)[pod]
    f8(space.evicted_start)[place] = f8(run.start)[pod]
    f8(space.evicted_end)[place] = run.clock
    i8(space.evicted_for)[place] = run.offered
    space.evictions += 1


@inner
def _forget_placement(run, space, pod):
    i4(run.node)[pod] = NOBODY
    i4(run.slots)[pod] = 0
    f8(run.start)[pod] = np.nan
    i4(run.status)[pod] = UNPLACED
    # What it had done before the run began is lost as well.
    f8(run.duration)[pod] += f8(space.age)[pod]
    f8(space.age)[pod] = 0.0
    # However it was, it counts as healthy once it runs again.
    u1(space.is_healthy)[pod] = True
    if run.has_gangs:
        i4(run.gang_of)[pod] = 0


@inner
def _queue_again(run, pod):
    if run.is_passing:
        i8(run.late)[run.late_members] = pod
        run.late_members += 1
    else:
        insert(run, i8(run.line_of)[pod], pod, ROOM)
