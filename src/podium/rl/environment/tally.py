"""Keeps account of an environment from step to step: what changed, and what it is worth.

Only nodes that changed are looked at again; the log of the run tells which they are.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from podium.model.records import GPU_MILLI
from podium.policies import fragmentation
from podium.policies.abi import node_at, table_pointer
from podium.policies.jit import compiled
from podium.policies.networks.features import NODE_FEATURES, write_state
from podium.sim.kernel.layout import f4, f8, i4, i8, inner
from podium.sim.kernel.offers import PLACED, REPLAY
from podium.sim.kernel.world import node_of, pod_of, slots_of

_ADDRESSES = (
    "nodes",  # float32 (num_nodes, NODE_FEATURES)
    "pods",  # float32 (1 + look_ahead, POD_FEATURES)
    "context",  # float32 (CONTEXT_FEATURES)
    "may_hold",  # uint8 (1)
    "seen",  # float64 (num_nodes, SEEN): what each node was when it was last looked at
    "ahead",  # int64 (2, MOST_AHEAD): keys and numbers of the next pods
    "parts",  # float64 (PARTS): what the last step was worth
    "weights",  # float64 (PARTS): what each part counts
    "reward",  # float32 (1): the sum
    "typical",  # float64 (num_typical, 6): see policies.fragmentation
    "model_shares",  # float64 (num_models)
    "gpu_weights",  # int64 (num_pods): GPU milli that each counts, wherever it is
)
_NUMBERS = (
    *("look_ahead", "num_typical", "has_fragmentation", "has_use", "most_steps", "hold_action"),
    *("steps", "changes", "arrived", "is_done", "is_truncated"),
)
_AMOUNTS = (
    # of the whole cluster: GPU milli, CPU milli, MiB, whole GPUs
    *("gpu_total", "cpu_total", "memory_total", "wait_scale", "demand"),
    *("gpu_left", "cpu_left", "memory_left", "whole_left", "lost", "root", "square"),
    # GPU milli that running pods count: now, and times the seconds since the beginning
    *("level", "area", "began", "clock"),
    # of the step under way
    *("placed", "waited"),
    # of the episode so far, and of one that is over
    *("returned", "allocation"),
)
TALLY = np.dtype(
    [(name, np.int64) for name in (*_ADDRESSES, *_NUMBERS)]
    + [(name, np.float64) for name in _AMOUNTS]
)
"""The account of one environment."""

NUM_PARTS = 5
"""How many kinds of reward there are; `rewards` names them in their order."""

SEEN = 7
_GPU, _CPU, _MEMORY, _WHOLE, _LOST, _ROOT, _SQUARE = range(SEEN)

_write_state = compiled(write_state, "rl")  # type: ignore[arg-type]
_fragmentation = compiled(fragmentation.fragmentation, "rl")  # type: ignore[arg-type]


@inner
def begin(run, tally):
    """Looks at every node of a run that has just begun; what happened so far is worth nothing."""
    _count_time(run, tally)
    for number in range(SEEN * run.num_nodes):
        f8(tally.seen)[number] = 0.0
    look_at_all(run, tally)
    tally.placed = 0.0
    tally.waited = 0.0


@inner
def catch_up(run, tally):
    """Accounts for all changes since the last step, and writes what the step was worth."""
    lost, root, square = tally.lost, tally.root, tally.square
    tally.placed = 0.0
    tally.waited = 0.0
    first = tally.changes
    _count_time(run, tally)
    if run.has_gangs:
        # Members of a gang that is tried are on nodes, and in no log.
        look_at_all(run, tally)
    else:
        for i in range(first, run.changes):
            pod = abs(np.int64(i4(run.change)[i])) - 1
            look_at(run, tally, np.int64(i4(run.node)[pod]))
    if run.offered < 0:
        _count_unplaced(run, tally)
    parts = f8(tally.parts)
    parts[0] = tally.placed / tally.gpu_total
    parts[1] = (lost - tally.lost) / tally.gpu_total
    parts[2] = -tally.waited / (tally.wait_scale * run.num_pods)
    parts[3] = (tally.root - root) / run.num_nodes
    parts[4] = (tally.square - square) / run.num_nodes
    paid = 0.0
    for i in range(NUM_PARTS):
        paid += parts[i] * f8(tally.weights)[i]
    f4(tally.reward)[0] = paid
    tally.returned += paid


@inner
def _count_time(run, tally):
    """Adds up GPUs in use over time, what was placed, and how long it had waited."""
    shapes = i8(run.shape_of)
    while tally.arrived < run.arrived:
        pod = pod_of(run, shapes[tally.arrived])
        tally.demand += pod.gpu_count * pod.gpu_milli
        tally.arrived += 1
    while tally.changes < run.changes:
        entry = np.int64(i4(run.change)[tally.changes])
        number = abs(entry) - 1
        milli = i8(tally.gpu_weights)[number]
        time = f8(run.start)[number]
        if entry > 0:
            tally.placed += milli
            tally.waited += time - f8(run.arrival)[number]
        else:
            time += f8(run.duration)[number]
            milli = -milli
        tally.area += tally.level * (time - tally.clock)
        tally.clock = time
        tally.level += milli
        tally.changes += 1


@inner
def _count_unplaced(run, tally):
    # Whoever never starts has waited until the end.
    end = np.float64(run.max_rounds) if run.max_rounds else max(run.clock, tally.clock)
    for pod in range(run.num_pods):
        if i4(run.status)[pod] != PLACED:
            tally.waited += end - f8(run.arrival)[pod]


@inner
def allocation(run, tally):
    """Gives the share of the GPUs in use: over time in a replay, now otherwise."""
    level = tally.level
    if run.protocol == REPLAY:
        spent = tally.clock - tally.began
        level = tally.area / spent if spent > 0 else 0.0
    return level / tally.gpu_total


@inner
def look_at_all(run, tally):
    """Looks at every node again."""
    for node in range(run.num_nodes):
        look_at(run, tally, np.int64(node))


@inner
def look_at(run, tally, node):
    """Describes a node as it is now, and adds what changed of it to the sums."""
    record, free = node_of(run, node), slots_of(run, node)
    share = 0.0
    if record.gpu_model >= 0:
        share = f8(tally.model_shares)[record.gpu_model]
    row = f4(tally.nodes + 4 * NODE_FEATURES * node)
    _write_state(row, record, free, run.gpu_slots, share)
    gpu, whole = 0.0, 0.0
    for slot in range(run.gpu_slots):
        gpu += free[slot]
        whole += free[slot] == GPU_MILLI
    seen = f8(tally.seen + 8 * SEEN * node)
    tally.gpu_left += _moved(seen, _GPU, gpu)
    tally.cpu_left += _moved(seen, _CPU, np.float64(record.cpu_milli_left))
    tally.memory_left += _moved(seen, _MEMORY, np.float64(record.memory_mib_left))
    tally.whole_left += _moved(seen, _WHOLE, whole)
    if tally.has_use:
        root, square = _use(record, gpu)
        tally.root += _moved(seen, _ROOT, root)
        tally.square += _moved(seen, _SQUARE, square)
    if tally.has_fragmentation:
        tally.lost += _moved(seen, _LOST, _lost(run, tally, node))


@inner
def _moved(seen, field, now):
    moved = now - seen[field]
    seen[field] = now
    return moved


@inner
def _use(record, gpu_left):
    """Gives the mean root and the mean square of the used shares of what a node has."""
    root, square, kinds = 0.0, 0.0, 0
    for kind in range(3):
        left, total = gpu_left, np.float64(GPU_MILLI * record.gpu_count)
        if kind == 1:
            left, total = np.float64(record.cpu_milli_left), np.float64(record.cpu_milli_total)
        elif kind == 2:
            left, total = np.float64(record.memory_mib_left), np.float64(record.memory_mib_total)
        if total > 0:
            used = max(0.0, (total - left) / total)
            root += math.sqrt(used)
            square += used * used
            kinds += 1
    return root / max(1, kinds), square / max(1, kinds)


@inner
def _lost(run, tally, node):
    table = numba.carray(table_pointer(tally.typical), (tally.num_typical, 6))
    address = run.nodes + node * run.node_bytes
    if run.gpu_slots > 8:
        return _fragmentation(node_at_16(address), table, 0, 0, 0, 0)
    return _fragmentation(node_at_8(address), table, 0, 0, 0, 0)


node_at_8, node_at_16 = node_at[8], node_at[16]
