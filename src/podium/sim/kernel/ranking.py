"""Finds the best node for a shape: by an incremental score cache, or by scanning all nodes.

The cache keeps a row of scores per shape with a 64-ary index of maxima over it. Nodes that
change are appended to a log; a row catches up with the log when its shape is next asked for.
Among equal scores both ways take the lowest rank, or one of all by the same draw, or one of those
that a second policy likes best.
"""

from __future__ import annotations

import numpy as np

from podium.policies.abi import call_native
from podium.sim.kernel.constraints import allows, set_floors
from podium.sim.kernel.layout import f8, hot, i4, i8, inner, u1
from podium.sim.kernel.scores import HELD, INFEASIBLE, NO_STATE, score_node, tie_score
from podium.sim.kernel.world import draw, fits

NOWHERE, HOLDING, FAILED = -1, -2, -3
POLICY_FAILED, BAD_CHOICE = np.int64(1), np.int64(2)
_ANY_NODE = np.int64(-1)
FAN_BITS = 6
FAN = 1 << FAN_BITS


@hot
def note_change(run, node):
    """Records that a node is not what it was."""
    if run.version == run.log_size:
        _forget_log(run)
    if run.is_cached:
        i4(run.log)[run.version] = node
    i8(run.last_change)[node] = run.version
    run.version += 1
    run.moves += 1
    i4(run.state_of)[node] = NO_STATE


@inner
def _forget_log(run):
    # Gangs that are taken back make more changes than there are placements and releases.
    for shape in range(run.num_shapes):
        i8(run.seen)[shape] = -1
    last = i8(run.last_change)
    for node in range(run.num_nodes):
        last[node] = min(last[node], 0)
    run.version = 1


@inner
def best_node(run, shape, can_hold):
    """Gives the best node for a shape, or NOWHERE, HOLDING or FAILED."""
    if run.is_cluster:
        return _chosen(run, shape, can_hold)
    if not run.is_cached:
        return _scan(run, shape, can_hold)
    failed = _catch_up(run, shape)
    if failed >= 0:
        return _fail(run, POLICY_FAILED, failed)
    if run.has_constraints or run.trial_level:
        return _best_allowed(run, shape, can_hold)
    first = _leftmost_best(run, shape, can_hold)
    if first >= 0 and run.has_random_ties:
        return _any_in_row(run, shape, first)
    if first >= 0 and run.tie_policy:
        return _settled(run, shape, f8(run.scores + shape * run.num_nodes * 8), first)
    return first


@inner
def _fail(run, code, node):
    run.error_code = code
    run.error_node = node
    return FAILED


@inner
def _scan(run, shape, can_hold):
    best = INFEASIBLE
    chosen = np.int64(NOWHERE)
    row = f8(run.row)
    if run.has_constraints or run.trial_level:
        set_floors(run)
    for node in range(run.num_nodes):
        if (run.has_constraints or run.trial_level) and not allows(run, node):
            row[node] = INFEASIBLE
            continue
        score = score_node(run, shape, node)
        row[node] = score
        if score > best:
            best = score
            chosen = np.int64(node)
        elif np.isnan(score):
            return _fail(run, POLICY_FAILED, node)
    if chosen >= 0 and best == HELD and can_hold:
        return HOLDING
    if chosen >= 0 and run.has_random_ties:
        return _any_of(run, row, best, chosen)
    if chosen >= 0 and run.tie_policy:
        return _settled(run, shape, row, chosen)
    return chosen


@inner
def _settled(run, shape, row, first):
    """Gives the node with the highest score of the second policy among equals, or draws one."""
    best, ties = -np.inf, np.int64(0)
    chosen = np.int64(first)
    for node in range(first, run.num_nodes):
        if row[node] != row[first]:
            continue
        if (run.has_constraints or run.trial_level) and not allows(run, node):
            continue
        score = tie_score(run, shape, node)
        if score > best:
            best, ties, chosen = score, np.int64(1), np.int64(node)
        elif score == best:
            ties += 1
            if draw(run, ties) == 0:
                chosen = np.int64(node)
    return chosen


@inner
def _any_of(run, row, best, first):
    ties = np.int64(0)
    for node in range(first, run.num_nodes):
        ties += row[node] == best
    wanted = draw(run, ties)
    for node in range(first, run.num_nodes):
        if row[node] == best:
            if wanted == 0:
                return node
            wanted -= 1
    return first


@inner
def mark_feasible(run, shape):
    """Marks the nodes that a shape fits now; gives the first of them, or NOWHERE."""
    first = np.int64(NOWHERE)
    feasible = u1(run.feasible)
    if run.has_constraints or run.trial_level:
        set_floors(run)
    for node in range(run.num_nodes):
        feasible[node] = fits(run, shape, node)
        if run.has_constraints or run.trial_level:
            feasible[node] = feasible[node] and allows(run, node)
        if first < 0 and feasible[node]:
            first = np.int64(node)
    return first


@inner
def _chosen(run, shape, can_hold):
    first = mark_feasible(run, shape)
    if first < 0:
        return NOWHERE
    feasible = u1(run.feasible)
    choice = call_native(run.policy, shape, 0, -1, 0, 0, 0)
    if np.isnan(choice):
        return _fail(run, POLICY_FAILED, _ANY_NODE)
    if choice == -np.inf:
        return HOLDING if can_hold else first
    node = int(choice)
    if node < 0 or node >= run.num_nodes or node != choice or not feasible[node]:
        return _fail(run, BAD_CHOICE, node)
    return node


@inner
def _catch_up(run, shape):
    begin = i8(run.seen)[shape]
    if begin < 0:
        failed = _fill(run, shape)
        if failed >= 0:
            return failed
    log = i4(run.log)
    last = i8(run.last_change)
    for position in range(begin if begin >= 0 else run.version, run.version):
        node = np.int64(log[position])
        if last[node] == position:
            score = score_node(run, shape, node)
            if np.isnan(score):
                return node
            _set(run, shape, node, score)
    i8(run.seen)[shape] = run.version
    return np.int64(-1)


@inner
def _fill(run, shape):
    row = f8(run.scores + shape * run.num_nodes * 8)
    kind_of, kind_score, kind_shape = i4(run.kind_of), f8(run.kind_score), i8(run.kind_shape)
    last = i8(run.last_change)
    for node in range(run.num_nodes):
        kind = kind_of[node]
        if last[node] < 0 and kind_shape[kind] == shape:
            row[node] = kind_score[kind]
            continue
        score = score_node(run, shape, node)
        if np.isnan(score):
            return np.int64(node)
        row[node] = score
        if last[node] < 0:
            kind_score[kind] = score
            kind_shape[kind] = shape
    _index(run, shape, row)
    return np.int64(-1)


@inner
def _index(run, shape, row):
    starts = i8(run.level_starts)
    values, size = row, run.num_nodes
    for level in range(run.num_levels):
        tops = _tops(run, shape, starts[level])
        blocks = starts[level + 1] - starts[level]
        for block in range(blocks):
            tops[block] = _block_max(values, block, size)
        values, size = tops, blocks


@inner
def _tops(run, shape, start):
    return f8(run.tops + (shape * run.num_tops + start) * 8)


@inner
def _block_max(values, block, size):
    top = INFEASIBLE
    for i in range(block * FAN, min(block * FAN + FAN, size)):
        top = values[i] if values[i] > top else top
    return top


@inner
def _set(run, shape, node, score):
    values, size = f8(run.scores + shape * run.num_nodes * 8), run.num_nodes
    old, new, child = values[node], score, np.int64(node)
    if old == new:
        return
    values[node] = new
    starts = i8(run.level_starts)
    for level in range(run.num_levels):
        tops = _tops(run, shape, starts[level])
        block = child >> FAN_BITS
        top = tops[block]
        if new < top:
            if old != top:
                return
            new = _block_max(values, block, size)
        if new == top:
            return
        tops[block] = new
        old, child = top, block
        values, size = tops, starts[level + 1] - starts[level]


@inner
def _best_allowed(run, shape, can_hold):
    """Finds the best node among those that constraints allow."""
    set_floors(run)
    chosen = _leftmost_best(run, shape, np.False_)
    if chosen >= 0 and not allows(run, chosen):
        chosen = _next_allowed(run, shape)
    if chosen < 0:
        return np.int64(NOWHERE)
    row = f8(run.scores + shape * run.num_nodes * 8)
    if row[chosen] == HELD and can_hold:
        return np.int64(HOLDING)
    if run.has_random_ties:
        return _any_allowed(run, shape, chosen)
    if run.tie_policy:
        return _settled(run, shape, row, chosen)
    return chosen


@inner
def _next_allowed(run, shape):
    tops, blocks = _tops(run, shape, 0), i8(run.level_starts)[1]
    # The block with the highest score gives a bound that spares most of the others.
    likely = np.int64(0)
    for block in range(1, blocks):
        if tops[block] > tops[likely]:
            likely = np.int64(block)
    chosen = _best_in(run, shape, likely, np.int64(NOWHERE))
    row = f8(run.scores + shape * run.num_nodes * 8)
    best = row[chosen] if chosen >= 0 else INFEASIBLE
    for block in range(blocks):
        if tops[block] > best or (tops[block] == best and block << FAN_BITS < chosen):
            chosen = _best_in(run, shape, block, chosen)
            best = row[chosen] if chosen >= 0 else INFEASIBLE
    return chosen


@inner
def _best_in(run, shape, block, chosen):
    """Gives the best allowed node of a block, or the one chosen so far if that is better."""
    row = f8(run.scores + shape * run.num_nodes * 8)
    best = row[chosen] if chosen >= 0 else INFEASIBLE
    for node in range(block * FAN, min(block * FAN + FAN, run.num_nodes)):
        is_better = row[node] > best or (row[node] == best and node < chosen)
        if is_better and allows(run, node):
            best, chosen = row[node], np.int64(node)
    return chosen


@inner
def _any_allowed(run, shape, first):
    row = f8(run.scores + shape * run.num_nodes * 8)
    best, ties = row[first], np.int64(0)
    for node in range(first, run.num_nodes):
        ties += row[node] == best and allows(run, node)
    wanted = draw(run, ties)
    for node in range(first, run.num_nodes):
        if row[node] == best and allows(run, node):
            if wanted == 0:
                return np.int64(node)
            wanted -= 1
    return first


@inner
def _leftmost_best(run, shape, can_hold):
    starts = i8(run.level_starts)
    best = _tops(run, shape, starts[run.num_levels - 1])[0]
    if best == INFEASIBLE:
        return np.int64(NOWHERE)
    if best == HELD and can_hold:
        return np.int64(HOLDING)
    place = np.int64(0)
    for level in range(run.num_levels - 2, -1, -1):
        tops = _tops(run, shape, starts[level])
        place = place << FAN_BITS
        while tops[place] != best:
            place += 1
    row = f8(run.scores + shape * run.num_nodes * 8)
    place = place << FAN_BITS
    while row[place] != best:
        place += 1
    return place


@inner
def _any_in_row(run, shape, first):
    # Counted when asked for: keeping counts beside the maxima costs every change of a score.
    row, tops = f8(run.scores + shape * run.num_nodes * 8), _tops(run, shape, 0)
    best, begin, blocks = row[first], first >> FAN_BITS, i8(run.level_starts)[1]
    ties = np.int64(0)
    for block in range(begin, blocks):
        if tops[block] == best:
            ties += _block_ties(row, block, run.num_nodes, best)
    wanted = draw(run, ties)
    for block in range(begin, blocks):
        if tops[block] == best:
            ties = _block_ties(row, block, run.num_nodes, best)
            if wanted < ties:
                return _nth_tie(row, block << FAN_BITS, best, wanted)
            wanted -= ties
    return first


@inner
def _block_ties(row, block, size, best):
    ties = np.int64(0)
    for i in range(block * FAN, min(block * FAN + FAN, size)):
        ties += row[i] == best
    return ties


@inner
def _nth_tie(row, place, best, wanted):
    while row[place] != best or wanted > 0:
        wanted -= row[place] == best
        place += 1
    return place
