"""Walks through the changes of a run again, to measure what the core does not spend time on."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numba
import numpy as np

from podium.policies import fragmentation
from podium.policies.jit import COMPILING, compiled, keep_on_disk, stamp_of

node_fragmentation = compiled(fragmentation.fragmentation, "walk")  # type: ignore[arg-type]


def walk(nodes, pods, node_of, slots, changes, typical, written):
    """Writes the nodes in use and the cluster's fragmentation (GPU milli) after each change."""
    running = np.zeros(len(nodes), np.int32)
    lost = np.zeros(len(nodes))
    total = 0.0
    for node in range(len(nodes)):
        lost[node] = node_fragmentation(nodes[node], typical)
        total += lost[node]
    written[0, 0], written[1, 0] = 0, total
    used = 0
    for i in range(len(changes)):
        pod = abs(changes[i]) - 1
        sign = 1 if changes[i] > 0 else -1
        node = node_of[pod]
        _apply(nodes[node], pods[pod], slots[pod], sign)
        running[node] += sign
        if sign > 0 and running[node] == 1:
            used += 1
        elif sign < 0 and running[node] == 0:
            used -= 1
        now = node_fragmentation(nodes[node], typical)
        total += now - lost[node]
        lost[node] = now
        written[0, i + 1], written[1, i + 1] = used, total


@numba.njit
def _apply(node, pod, slots, sign):
    node.cpu_milli_left -= sign * pod.cpu_milli
    node.memory_mib_left -= sign * pod.memory_mib
    slot = 0
    while slots:
        if slots & 1:
            node.gpu_milli_left[slot] -= sign * pod.gpu_milli
        slots >>= 1
        slot += 1


def walker() -> Any:
    """Gives the compiled walk, from disk where it was compiled before."""
    with COMPILING:
        return _walker()


@functools.cache
def _walker() -> Any:
    made = numba.njit(nogil=True)(walk)
    sources = (Path(__file__), Path(fragmentation.__file__))
    keep_on_disk(made, walk, stamp_of(path.read_text() for path in sources))
    return made
