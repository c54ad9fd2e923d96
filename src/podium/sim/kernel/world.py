"""Works on the state of the cluster: fit, allocation, release, choice of GPUs."""

from __future__ import annotations

import numpy as np

from podium.model.records import ANY_MODEL, GPU_MILLI, NODE_8, POD
from podium.policies.abi import node_at, pod_at
from podium.sim.kernel.layout import hot, i4, inner, u8
from podium.sim.shapes import NO_WAY

BEST, WORST, RANDOM = 0, 1, 2
CLASSES = 17

_POD_BYTES = POD.itemsize
_SLOTS_AT = NODE_8.fields["gpu_milli_left"][1]  # type: ignore[index]
_INVERSE_53 = 1.0 / (1 << 53)
# A record of 8 slots also describes the head of one with 16.
_head_at = node_at[8]


@hot
def pod_of(run, shape):
    """Gives a shape's pod record."""
    return pod_at(run.shapes + shape * _POD_BYTES)


@inner
def pod_on(run, shape, node):
    """Gives a shape's pod record as it is on the GPUs of a node."""
    if run.has_shares:
        return pod_of(run, _shared(run, shape, node))
    return pod_of(run, shape)


@inner
def _shared(run, shape, node):
    first = _share(run, shape, node)
    if not run.has_spreads:
        return first
    record = first
    while record >= 0:
        pod = pod_of(run, record)
        if _has_gpus(run, record, node, pod):
            return record
        record = np.int64(i4(run.spreads)[record])
    return first


@inner
def _share(run, shape, node):
    kind = node_of(run, node).gpu_model
    if kind < 0:
        return np.int64(shape)
    return np.int64(i4(run.shares)[shape * run.num_kinds + kind])


@inner
def held_record(run, shape, node, slots):
    """Gives the record that a shape is on some GPUs of a node: their number tells which."""
    if not run.has_shares:
        return np.int64(shape)
    first = _share(run, shape, node)
    if not run.has_spreads:
        return first
    count = np.int64(0)
    for slot in range(run.gpu_slots):
        count += (slots >> slot) & 1
    record = first
    while record >= 0 and pod_of(run, record).gpu_count != count:
        record = np.int64(i4(run.spreads)[record])
    # Who ran before the run began may hold fewer GPUs than it asks for.
    return record if record >= 0 else first


@hot
def node_of(run, node):
    """Gives a node's record."""
    return _head_at(run.nodes + node * run.node_bytes)


@hot
def slots_of(run, node):
    """Gives the free milli of a node's GPU slots."""
    return i4(run.nodes + node * run.node_bytes + _SLOTS_AT)


@inner
def fits(run, shape, node):
    """Tells whether a node has what a shape asks for now."""
    record = record_on(run, shape, node)
    return record >= 0 and has_room(run, record, node)


@hot
def record_on(run, shape, node):
    """Gives the record of a shape on the GPUs of a node, -1 where they cannot serve it."""
    if run.has_shares:
        return _shared(run, shape, node)
    return np.int64(shape)


@hot
def has_room(run, shape, node):
    """Tells whether CPU, memory, GPU model and GPUs are there."""
    pod = pod_of(run, shape)
    record = node_of(run, node)
    if pod.cpu_milli > record.cpu_milli_left or pod.memory_mib > record.memory_mib_left:
        # What nobody asks for cannot be short, not even on a node that gave more than it has.
        if pod.cpu_milli > max(record.cpu_milli_left, 0):
            return False
        if pod.memory_mib > max(record.memory_mib_left, 0):
            return False
    if pod.gpu_count == 0:
        return True
    if pod.gpu_models != ANY_MODEL and (
        record.gpu_model < 0 or (pod.gpu_models >> record.gpu_model) & 1 == 0
    ):
        return False
    return _has_gpus(run, shape, node, pod)


@hot
def _has_gpus(run, record, node, pod):
    """Tells whether GPUs have room; devices may lie anyhow over all shared GPUs of a node."""
    if _fitting(run, node, pod.gpu_milli) >= pod.gpu_count:
        return True
    if not run.has_spreads or pod.gpu_count != node_of(run, node).gpu_count:
        return False
    if i4(run.spreads)[record] == NO_WAY:
        return False
    free = slots_of(run, node)
    left = np.int64(0)
    for slot in range(run.gpu_slots):
        left += free[slot]
    return left >= np.int64(pod.gpu_count) * pod.gpu_milli


@hot
def _fitting(run, node, need):
    # Loops of a fixed length are turned into vector instructions.
    free = slots_of(run, node)
    count = np.int32(0)
    for slot in range(8):
        count += np.int32(free[slot] >= need)
    if run.gpu_slots > 8:
        for slot in range(8, 16):
            count += np.int32(free[slot] >= need)
    return count


@inner
def allocate(run, shape, node, slots):
    """Takes the shape's resources from the node."""
    pod = pod_of(run, held_record(run, shape, node, slots))
    _move(run, pod, node, slots, np.int64(-1))
    if pod.gpu_count:
        kind = _class(pod)
        i4(run.class_counts)[node * CLASSES + kind] += 1
        node_of(run, node).gpu_classes |= 1 << kind


@inner
def release(run, shape, node, slots):
    """Returns the shape's resources to the node."""
    pod = pod_of(run, held_record(run, shape, node, slots))
    _move(run, pod, node, slots, np.int64(1))
    if pod.gpu_count:
        kind = _class(pod)
        counts = i4(run.class_counts)
        counts[node * CLASSES + kind] -= 1
        if counts[node * CLASSES + kind] == 0:
            node_of(run, node).gpu_classes &= ~(1 << kind)


@inner
def _class(pod):
    return 0 if pod.gpu_milli < GPU_MILLI else pod.gpu_count


@inner
def _move(run, pod, node, slots, sign):
    record = node_of(run, node)
    record.cpu_milli_left += sign * pod.cpu_milli
    record.memory_mib_left += sign * pod.memory_mib
    free = slots_of(run, node)
    slot = 0
    while slots:
        if slots & 1:
            free[slot] += sign * pod.gpu_milli
        slots >>= 1
        slot += 1


@inner
def whole_slots(run, shape, node):
    """Picks the lowest free slots for a pod of whole GPUs, as a bit mask."""
    wanted = pod_on(run, shape, node).gpu_count
    if run.has_spreads and wanted == node_of(run, node).gpu_count:
        return (np.int64(1) << wanted) - 1
    free = slots_of(run, node)
    mask = 0
    slot = 0
    while wanted and slot < run.gpu_slots:
        if free[slot] == GPU_MILLI:
            mask |= 1 << slot
            wanted -= 1
        slot += 1
    return mask


@inner
def share_slot(run, shape, node):
    """Picks the slot for a share pod: tightest, loosest, or any of those that fit."""
    need = pod_on(run, shape, node).gpu_milli
    if run.gpu_choice == RANDOM:
        return _random_slot(run, slots_of(run, node), need)
    return _chosen_slot(run, node, need, np.int64(0))


@inner
def share_slots(run, shape, node):
    """Picks the slots for a pod with a share of several GPUs, as a bit mask."""
    pod = pod_on(run, shape, node)
    if pod.gpu_count == node_of(run, node).gpu_count:
        return (np.int64(1) << pod.gpu_count) - 1
    mask = np.int64(0)
    for _ in range(pod.gpu_count):
        slot = _chosen_slot(run, node, pod.gpu_milli, mask)
        if slot >= 0:
            mask |= np.int64(1) << slot
    return mask


@inner
def _chosen_slot(run, node, need, taken):
    free = slots_of(run, node)
    best = -1
    for slot in range(run.gpu_slots):
        if free[slot] < need or (taken >> slot) & 1:
            continue
        if (
            best < 0
            or (run.gpu_choice == BEST and free[slot] < free[best])
            or (run.gpu_choice == WORST and free[slot] > free[best])
        ):
            best = slot
    return best


@inner
def _random_slot(run, free, need):
    count = np.int64(0)
    for slot in range(run.gpu_slots):
        count += free[slot] >= need
    wanted = draw(run, count)
    for slot in range(run.gpu_slots):
        if free[slot] >= need:
            if wanted == 0:
                return slot
            wanted -= 1
    return -1


@inner
def draw(run, count):
    """Draws a whole number below count with splitmix64; one of one needs no draw."""
    if count <= 1:
        return 0
    state = u8(run.random_state)
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.int64(np.float64(z >> np.uint64(11)) * _INVERSE_53 * count)
