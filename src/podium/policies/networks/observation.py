"""Writes what a serving network sees, by the arithmetic that environments train it with.

Importing this imports Numba.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.records import GPU_MILLI, POD
from podium.policies.jit import COMPILING, compiled
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
        _writer()(self.nodes, self.pods, self.context, nodes, shown, held, feasible, queue)


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


def _write(
    rows: Any, pod_rows: Any, context: Any, nodes: Any, pods: Any, held: Any, feasible: Any,
    queue: Any,
) -> None:  # fmt: skip
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
            whole += 1 if node.gpu_milli_left[slot] == 1000 else 0
    for i in range(len(nodes)):
        node, row = nodes[i], rows[i]
        share = by_model[node.gpu_model] / max(1, gpu_total) if node.gpu_model >= 0 else 0.0
        write_state(row, node, node.gpu_milli_left, slots, share)
        if feasible[i]:
            write_pair(row, pods[0], node, node.gpu_milli_left, slots)
        else:
            clear_pair(row)
    pod_rows[:] = 0.0
    for i in range(len(pods)):
        write_pod(pod_rows[i], pods[i], held[i])
    context[0] = gpu / max(1.0, 1000.0 * gpu_total)
    context[1] = cpu / max(1.0, cpu_total)
    context[2] = memory / max(1.0, memory_total)
    context[3] = 1000.0 * whole / max(1.0, 1000.0 * gpu_total)
    context[4] = fitting / len(nodes)
    for i in range(len(queue)):
        context[5 + i] = queue[i]


write_state, write_pair = features.write_state, features.write_pair
clear_pair, write_pod = features.clear_pair, features.write_pod

_WRITERS: list[Any] = []


def _writer() -> Any:
    if not _WRITERS:
        with COMPILING:
            if not _WRITERS:
                _WRITERS.append(compiled(_write, "serving"))
    return _WRITERS[0]
