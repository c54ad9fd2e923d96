"""Keeps pods that wait: one FIFO per shape, merged by priority and arrival when offered.

Pods are numbered in order of arrival, so a FIFO per shape is sorted by pod number and the
order of the whole queue is (higher priority, lower pod number).
"""

from __future__ import annotations

import numpy as np

from podium.sim.kernel.layout import i8, inner, u1

NOBODY = -1
ROOM, HOLD = np.int64(0), np.int64(1)
"""What a pod waits for: room on a node, or the policy's consent."""


@inner
def join(run, shape, pod, reason):
    """Puts a pod at the end of its shape's FIFO."""
    head, tail, next_pod = i8(run.head), i8(run.tail), i8(run.next_pod)
    next_pod[pod] = NOBODY
    if head[shape] == NOBODY:
        head[shape] = pod
        i8(run.active)[run.active_shapes] = shape
        run.active_shapes += 1
    else:
        next_pod[tail[shape]] = pod
    tail[shape] = pod
    run.waiting_pods += 1
    mark(run, pod, reason)


@inner
def mark(run, pod, reason):
    """Notes why the pod waits."""
    run.held_pods += reason - u1(run.is_held)[pod]
    u1(run.is_held)[pod] = reason


@inner
def leave(run, shape, pod):
    """Takes the pod at the cursor out of its FIFO and moves the cursor on."""
    behind = i8(run.next_pod)[pod]
    front = i8(run.before)[shape]
    if front == NOBODY:
        i8(run.head)[shape] = behind
    else:
        i8(run.next_pod)[front] = behind
    if behind == NOBODY:
        i8(run.tail)[shape] = front
    i8(run.cursor)[shape] = behind
    run.waiting_pods -= 1
    mark(run, pod, ROOM)


@inner
def stay(run, shape, pod):
    """Leaves the pod at the cursor where it is and moves the cursor on."""
    i8(run.before)[shape] = pod
    i8(run.cursor)[shape] = i8(run.next_pod)[pod]


@inner
def open_pass(run):
    """Starts a pass over the queue; gives how many shapes wait."""
    active, head = i8(run.active), i8(run.head)
    size = np.int64(0)
    for i in range(run.active_shapes):
        shape = active[i]
        i8(run.cursor)[shape] = head[shape]
        i8(run.before)[shape] = NOBODY
        i8(run.refused_at)[shape] = -1
        size = enter(run, size, shape)
    return size


@inner
def close_pass(run):
    """Forgets shapes that nobody waits for any more; the next to join enters them anew."""
    active, head = i8(run.active), i8(run.head)
    kept = np.int64(0)
    for i in range(run.active_shapes):
        if head[active[i]] != NOBODY:
            active[kept] = active[i]
            kept += 1
    run.active_shapes = kept


@inner
def _key(run, shape, pod):
    return -i8(run.priority)[shape] * (1 << 32) + pod


@inner
def enter(run, size, shape):
    """Puts a shape into the pass by the pod at its cursor; gives the new size."""
    pod = i8(run.cursor)[shape]
    if pod == NOBODY:
        return size
    key = _key(run, shape, pod)
    keys, shapes = i8(run.pass_key), i8(run.pass_shape)
    place = size
    while place and keys[(place - 1) >> 1] > key:
        keys[place] = keys[(place - 1) >> 1]
        shapes[place] = shapes[(place - 1) >> 1]
        place = (place - 1) >> 1
    keys[place] = key
    shapes[place] = shape
    return size + 1


@inner
def next_shape(run, size):
    """Removes the shape whose pod is first in the queue; the size falls by one."""
    keys, shapes = i8(run.pass_key), i8(run.pass_shape)
    first = shapes[0]
    size -= 1
    key, shape = keys[size], shapes[size]
    place, child = np.int64(0), np.int64(1)
    while child < size:
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if key <= keys[child]:
            break
        keys[place] = keys[child]
        shapes[place] = shapes[child]
        place, child = child, 2 * child + 1
    keys[place] = key
    shapes[place] = shape
    return first


@inner
def first_held(run):
    """Finds the held pod that is first in the queue."""
    first = np.int64(NOBODY)
    lowest = np.int64(0)
    for i in range(run.active_shapes):
        shape = i8(run.active)[i]
        pod = i8(run.head)[shape]
        while pod != NOBODY and not u1(run.is_held)[pod]:
            pod = i8(run.next_pod)[pod]
        if pod != NOBODY and (first == NOBODY or _key(run, shape, pod) < lowest):
            first = pod
            lowest = _key(run, shape, pod)
    return first
