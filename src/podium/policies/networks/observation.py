"""Writes what a serving network sees, by the arithmetic that environments train it with.

Importing this imports Numba.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from podium.model.records import GPU_MILLI, POD
from podium.policies.jit import COMPILING, compiled, keep_on_disk, stamp_of
from podium.policies.networks import features
from podium.policies.networks.features import (
    CONTEXT_FEATURES,
    NODE_FEATURES,
    POD_FEATURES,
)
from podium.policies.session import Situation

Floats = npt.NDArray[np.float32]


class Observer:
    """Describes one offer after another, each in the same arrays."""

    def __init__(self, look_ahead: int) -> None:
        self.nodes: Floats = np.zeros((0, NODE_FEATURES), np.float32)
        self.pods: Floats = np.zeros((1 + look_ahead, POD_FEATURES), np.float32)
        self.context: Floats = np.zeros(CONTEXT_FEATURES, np.float32)

    def look(
        self, pod: Any, nodes: npt.NDArray[Any], feasible: npt.NDArray[np.bool_],
        situation: Situation,
    ) -> None:  # fmt: skip
        """Writes `nodes`, `pods` and `context` for a pod that is offered."""
        if len(self.nodes) != len(nodes):
            self.nodes = np.zeros((len(nodes), NODE_FEATURES), np.float32)
        count = min(len(situation.ahead), len(self.pods) - 1)
        shown = np.empty(1 + count, POD)
        shown[0], shown[1:] = tuple(pod), situation.ahead[:count]
        held = np.array([situation.holds, *situation.ahead_holds[:count]], np.int64)
        queue = _queue_numbers(situation, nodes)
        rows = (self.nodes, self.pods, self.context)
        with COMPILING:
            write = _writer()
        write(rows, nodes, feasible, shown, held, queue)


def _queue_numbers(situation: Situation, nodes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Lists QUEUE_NAMES, which are read from a run and not from the nodes."""
    gpu = float(GPU_MILLI * int(nodes["gpu_count"].sum(dtype=np.int64)))
    pods = max(1, situation.num_pods)
    rounds = situation.max_rounds
    left = (rounds - situation.round) / rounds if rounds else 0.0
    return np.array([
        1.0 if situation.may_hold else 0.0,
        situation.gpu_milli_asked / max(1.0, gpu),
        situation.waiting / pods,
        situation.to_come / pods,
        left,
    ])  # fmt: skip


def _write(rows: Any, nodes: Any, feasible: Any, pods: Any, held: Any, queue: Any) -> None:
    node_rows, pod_rows, context = rows
    slots = nodes[0].gpu_milli_left.shape[0]
    by_model = np.zeros(64, np.int64)
    gpu_total, cpu_total, memory_total = 0, 0, 0
    gpu, cpu, memory, whole, fitting = 0, 0, 0, 0, 0
    for i in range(len(nodes)):
        node = nodes[i]
        if node.gpu_model >= 0:
            by_model[node.gpu_model] += node.gpu_count
        gpu_total += node.gpu_count
        cpu_total += node.cpu_milli_total
        memory_total += node.memory_mib_total
        cpu += node.cpu_milli_left
        memory += node.memory_mib_left
        fitting += 1 if feasible[i] else 0
        for slot in range(slots):
            gpu += node.gpu_milli_left[slot]
            whole += 1 if node.gpu_milli_left[slot] == GPU_MILLI else 0
    for i in range(len(nodes)):
        node, row = nodes[i], node_rows[i]
        share = by_model[node.gpu_model] / max(1, gpu_total) if node.gpu_model >= 0 else 0.0
        write_state(row, node, node.gpu_milli_left, slots, share)
        if feasible[i]:
            write_pair(row, pods[0], node, node.gpu_milli_left, slots)
        else:
            clear_pair(row)
    pod_rows[:] = 0.0
    for i in range(len(pods)):
        write_pod(pod_rows[i], pods[i], held[i])
    context[0] = gpu / max(1.0, float(GPU_MILLI) * gpu_total)
    context[1] = cpu / max(1.0, cpu_total)
    context[2] = memory / max(1.0, memory_total)
    context[3] = float(GPU_MILLI) * whole / max(1.0, float(GPU_MILLI) * gpu_total)
    context[4] = fitting / len(nodes)
    for i in range(len(queue)):
        context[5 + i] = queue[i]


write_state, write_pair = features.write_state, features.write_pair
clear_pair, write_pod = features.clear_pair, features.write_pod


@functools.cache
def _writer() -> Any:
    """Compiles the loop, or reads it from disk where it was compiled before."""
    sources = (Path(__file__), Path(str(features.__file__)))
    stamp = stamp_of([each.read_text(encoding="utf-8") for each in sources])
    made = compiled(cast("FunctionType", _write), stamp[:24])
    keep_on_disk(made, made.py_func, stamp)
    return made
