"""Keeps pods that wait in lines, merged by priority and arrival when they are offered.

A line is a FIFO: one for each shape, and one for each gang, in which its first pod waits alone.
Pods are numbered in order of arrival, so a line is sorted by pod number and the order of the
whole queue is (higher priority, lower pod number).
"""

from __future__ import annotations

import numpy as np

from podium.sim.kernel.layout import i8, inner, u1

NOBODY = -1
ROOM, HOLD = np.int64(0), np.int64(1)
"""What a pod waits for: room on a node, or the policy's consent."""


@inner
def join(run, line, pod, reason):
    """Puts a pod at the end of its line."""
    head, tail, next_pod = i8(run.head), i8(run.tail), i8(run.next_pod)
    next_pod[pod] = NOBODY
    if head[line] == NOBODY:
        head[line] = pod
        i8(run.active)[run.active_lines] = line
        run.active_lines += 1
    else:
        next_pod[tail[line]] = pod
    tail[line] = pod
    run.waiting_pods += 1
    mark(run, pod, reason)


@inner
def insert(run, line, pod, reason):
    """Puts a pod into its line by its number; no pass may be under way."""
    head, tail, next_pod = i8(run.head), i8(run.tail), i8(run.next_pod)
    if head[line] == NOBODY or tail[line] < pod:
        join(run, line, pod, reason)
        return
    if pod < head[line]:
        next_pod[pod] = head[line]
        head[line] = pod
    else:
        front = head[line]
        while next_pod[front] < pod:
            front = next_pod[front]
        next_pod[pod] = next_pod[front]
        next_pod[front] = pod
    run.waiting_pods += 1
    mark(run, pod, reason)


@inner
def forget(run, line):
    """Empties a line in which one pod waits; no pass may be under way."""
    mark(run, i8(run.head)[line], ROOM)
    i8(run.head)[line] = NOBODY
    i8(run.tail)[line] = NOBODY
    run.waiting_pods -= 1
    close_pass(run)


@inner
def mark(run, pod, reason):
    """Notes why the pod waits."""
    run.held_pods += reason - u1(run.is_held)[pod]
    u1(run.is_held)[pod] = reason


@inner
def leave(run, line, pod):
    """Takes the pod at the cursor out of its line and moves the cursor on."""
    behind = i8(run.next_pod)[pod]
    front = i8(run.before)[line]
    if front == NOBODY:
        i8(run.head)[line] = behind
    else:
        i8(run.next_pod)[front] = behind
    if behind == NOBODY:
        i8(run.tail)[line] = front
    i8(run.cursor)[line] = behind
    run.waiting_pods -= 1
    mark(run, pod, ROOM)


@inner
def stay(run, line, pod):
    """Leaves the pod at the cursor where it is and moves the cursor on."""
    i8(run.before)[line] = pod
    i8(run.cursor)[line] = i8(run.next_pod)[pod]


@inner
def open_pass(run):
    """Starts a pass over the queue; gives how many lines wait."""
    active, head = i8(run.active), i8(run.head)
    size = np.int64(0)
    for i in range(run.active_lines):
        line = active[i]
        i8(run.cursor)[line] = head[line]
        i8(run.before)[line] = NOBODY
        i8(run.refused_at)[line] = -1
        size = enter(run, size, line)
    return size


@inner
def close_pass(run):
    """Forgets lines that nobody waits for any more; the next to join enters them anew."""
    active, head = i8(run.active), i8(run.head)
    kept = np.int64(0)
    for i in range(run.active_lines):
        if head[active[i]] != NOBODY:
            active[kept] = active[i]
            kept += 1
    run.active_lines = kept


@inner
def key_of(run, line, pod):
    """Gives the place of a pod in the order of the whole queue."""
    return -i8(run.priority)[line] * (1 << 32) + pod


@inner
def enter(run, size, line):
    """Puts a line into the pass by the pod at its cursor; gives the new size."""
    pod = i8(run.cursor)[line]
    if pod == NOBODY:
        return size
    key = key_of(run, line, pod)
    keys, lines = i8(run.pass_key), i8(run.pass_line)
    place = size
    while place and keys[(place - 1) >> 1] > key:
        keys[place] = keys[(place - 1) >> 1]
        lines[place] = lines[(place - 1) >> 1]
        place = (place - 1) >> 1
    keys[place] = key
    lines[place] = line
    return size + 1


@inner
def next_line(run, size):
    """Removes the line whose pod is first in the queue; the size falls by one."""
    keys, lines = i8(run.pass_key), i8(run.pass_line)
    first = lines[0]
    size -= 1
    key, line = keys[size], lines[size]
    place, child = np.int64(0), np.int64(1)
    while child < size:
        if child + 1 < size and keys[child + 1] < keys[child]:
            child += 1
        if key <= keys[child]:
            break
        keys[place] = keys[child]
        lines[place] = lines[child]
        place, child = child, 2 * child + 1
    keys[place] = key
    lines[place] = line
    return first


@inner
def first_held(run):
    """Finds the held pod that is first in the queue."""
    first = np.int64(NOBODY)
    lowest = np.int64(0)
    for i in range(run.active_lines):
        line = i8(run.active)[i]
        pod = i8(run.head)[line]
        while pod != NOBODY and not u1(run.is_held)[pod]:
            pod = i8(run.next_pod)[pod]
        if pod != NOBODY and (first == NOBODY or key_of(run, line, pod) < lowest):
            first = pod
            lowest = key_of(run, line, pod)
    return first
