"""Asks the policy for the score of a shape on a node, and remembers answers by exact state."""

from __future__ import annotations

import numpy as np

from podium.model.records import GPU_MILLI, POD
from podium.policies.abi import call_native
from podium.sim.kernel.layout import f8, hot, i4, i8, inner
from podium.sim.kernel.world import has_room, pod_of, pod_on, record_on, slots_of

INFEASIBLE = -np.inf
HELD = -1.7976931348623157e308  # below every other score, above what does not fit
LOWEST = -1.7976931348623155e308  # the least score; what is finite places, however low
NO_STATE = -1
NO_SLOT = np.int64(-1)  # typed, so that _call is compiled once

_POD_BYTES = POD.itemsize


@hot
def score_node(run, shape, node):
    """Scores a shape on a node; NaN when the policy failed."""
    record = record_on(run, shape, node)
    if record < 0 or not has_room(run, record, node):
        return INFEASIBLE
    if run.has_memo:
        return f8(run.key_scores)[_remember(run, record, node)]
    if run.takes_gpu and _is_one_share(pod_of(run, record)):
        return _best_share(run, record, node)[0]
    return _call(run, record, node, NO_SLOT)


@inner
def tie_score(run, shape, node):
    """Scores a shape by the policy that settles ties, on a node that has room for it."""
    pod = run.shapes + record_on(run, shape, node) * _POD_BYTES
    return call_native(run.tie_policy, pod, run.nodes + node * run.node_bytes, NO_SLOT, 0, 0, 0)


@inner
def is_one_share(run, shape, node):
    """Tells whether the shape takes a part of one GPU on a node, so that slots are scored."""
    return _is_one_share(pod_on(run, shape, node))


@inner
def _is_one_share(pod):
    return pod.gpu_count == 1 and pod.gpu_milli < GPU_MILLI


@inner
def best_slot(run, shape, node):
    """Gives the slot that a policy scoring GPUs likes best for a share pod."""
    record = record_on(run, shape, node)
    if run.has_memo:
        return i4(run.key_slots)[_remember(run, record, node)]
    return _best_share(run, record, node)[1]


# From here on a shape is the record that it is on the node.


@inner
def _best_share(run, shape, node):
    need = pod_of(run, shape).gpu_milli
    free = slots_of(run, node)
    best = HELD
    chosen = NO_SLOT
    for slot in range(run.gpu_slots):
        if free[slot] >= need:
            score = _call(run, shape, node, slot)
            if np.isnan(score):
                return score, slot
            if chosen < 0 or score > best:
                best = score
                chosen = np.int64(slot)
    return best, chosen


@hot
def _call(run, shape, node, slot):
    score = call_native(
        run.policy,
        run.shapes + shape * _POD_BYTES,
        run.nodes + node * run.node_bytes,
        slot,
        run.table,
        run.rows,
        run.columns,
    )
    if HELD < score < np.inf:
        return score
    if score == HELD:
        return LOWEST
    return HELD if score < HELD else np.nan


@inner
def _remember(run, shape, node):
    if i4(run.state_of)[node] == NO_STATE:
        i4(run.state_of)[node] = _intern(run, node)
    keys = i8(run.keys)
    key = _key(run, shape, node)
    place = _mix(key) & run.key_mask
    while keys[place] != 0:
        if keys[place] == key:
            return place
        place = (place + 1) & run.key_mask
    if 2 * run.used_keys > run.key_mask:
        _forget(run)
        i4(run.state_of)[node] = _intern(run, node)
        key = _key(run, shape, node)
        place = _mix(key) & run.key_mask
    if run.takes_gpu and _is_one_share(pod_of(run, shape)):
        f8(run.key_scores)[place], i4(run.key_slots)[place] = _best_share(run, shape, node)
    else:
        f8(run.key_scores)[place] = _call(run, shape, node, NO_SLOT)
    keys[place] = key
    run.used_keys += 1
    return place


@inner
def _key(run, shape, node):
    return (np.int64(shape) << 32) + i4(run.state_of)[node] + 1


@inner
def _intern(run, node):
    # The hash only finds the bucket; equality is decided on all bytes of the record.
    words = i8(run.nodes + node * run.node_bytes)
    count = run.node_bytes // 8
    code = np.int64(0)
    for i in range(count):
        code = _mix(code ^ words[i])
    buckets = i4(run.buckets)
    place = code & run.bucket_mask
    while buckets[place] != 0:
        if _equal(i8(run.states + (buckets[place] - 1) * run.node_bytes), words, count):
            return buckets[place] - 1
        place = (place + 1) & run.bucket_mask
    if run.used_states == run.max_states:
        _forget(run)
        place = code & run.bucket_mask
    state = run.used_states
    kept = i8(run.states + state * run.node_bytes)
    for i in range(count):
        kept[i] = words[i]
    buckets[place] = state + 1
    run.used_states = state + 1
    return state


@inner
def _equal(one, other, count):
    for i in range(count):
        if one[i] != other[i]:
            return False
    return True


@inner
def _forget(run):
    # The memo is full; it is only a cache.
    for i in range(run.bucket_mask + 1):
        i4(run.buckets)[i] = 0
    for i in range(run.key_mask + 1):
        i8(run.keys)[i] = 0
    for node in range(run.num_nodes):
        i4(run.state_of)[node] = NO_STATE
    run.used_states = 0
    run.used_keys = 0


@inner
def _mix(value):
    z = np.uint64(value) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(z ^ (z >> np.uint64(31)))
