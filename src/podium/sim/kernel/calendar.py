"""Keeps departures in order of time, then of pod, in a binary heap."""

from __future__ import annotations

import numpy as np

from podium.sim.kernel.layout import f8, i8, inner


@inner
def next_time(run):
    """Gives the time of the first departure, infinity when there is none."""
    return f8(run.heap_time)[0] if run.departures else np.inf


@inner
def push(run, time, pod):
    """Adds a departure."""
    times, pods = f8(run.heap_time), i8(run.heap_pod)
    place = run.departures
    run.departures += 1
    while place:
        parent = (place - 1) >> 1
        if times[parent] < time or (times[parent] == time and pods[parent] < pod):
            break
        times[place] = times[parent]
        pods[place] = pods[parent]
        place = parent
    times[place] = time
    pods[place] = pod


@inner
def pop(run):
    """Removes the first departure and gives its pod."""
    times, pods = f8(run.heap_time), i8(run.heap_pod)
    first = pods[0]
    run.departures -= 1
    size = run.departures
    time, pod = times[size], pods[size]
    place, child = np.int64(0), np.int64(1)
    while child < size:
        right = child + 1
        if right < size and (
            times[right] < times[child]
            or (times[right] == times[child] and pods[right] < pods[child])
        ):
            child = right
        if time < times[child] or (time == times[child] and pod < pods[child]):
            break
        times[place] = times[child]
        pods[place] = pods[child]
        place = child
        child = 2 * place + 1
    times[place] = time
    pods[place] = pod
    return first


@inner
def cancel(run, pod):
    """Removes the departure of a pod that leaves earlier."""
    times, pods = f8(run.heap_time), i8(run.heap_pod)
    place = np.int64(0)
    while pods[place] != pod:
        place += 1
    # It rises to the top, past all that come before it, and leaves from there.
    while place:
        parent = (place - 1) >> 1
        times[place] = times[parent]
        pods[place] = pods[parent]
        place = parent
    times[0] = -np.inf
    pods[0] = pod
    pop(run)
