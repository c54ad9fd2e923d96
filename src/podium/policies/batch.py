"""Calls a compiled policy on many records in one go. Importing this imports Numba.

Both loops are compiled once, kept on disk, and let other threads run meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from podium.model.records import POD
from podium.policies import abi
from podium.policies.abi import Native, call_native
from podium.policies.jit import COMPILING, keep_on_disk, marked, stamp_of
from podium.policies.states import States

Scores = npt.NDArray[np.float64]
Slots = npt.NDArray[np.int64]


def score_nodes(
    native: Native,
    pod: Any,
    nodes: npt.NDArray[Any],
    picked: Slots,
    table: Scores,
    *,
    by_slot: bool,
) -> tuple[Scores, Slots, int]:
    """Scores a pod on the picked nodes, by slot or not.

    Returns the scores, the best slots (-1 where slots are not scored), and the index of the first
    node on which the policy failed, or -1. A score of NaN or of plus infinity is a failure.
    """
    pods, nodes = np.array([pod], POD), np.ascontiguousarray(nodes)
    found, slots = np.empty(len(picked)), np.full(len(picked), -1)
    failed = _compiled(_call_nodes)(
        native.address,
        pods.ctypes.data,
        (nodes.ctypes.data, nodes.itemsize),
        np.ascontiguousarray(nodes["gpu_milli_left"]),  # of one type, or it is compiled twice
        int(pods["gpu_milli"][0]) if by_slot else 0,
        picked,
        _place_of(table),
        found,
        slots,
    )
    return found, slots, failed


def score_states(native: Native, states: States, table: Scores) -> tuple[Scores, bool]:
    """Scores copies of the states, and returns whether the policy changed its arguments."""
    pods, nodes, numbers = states.pods.copy(), states.nodes.copy(), table.copy()
    found = np.empty(len(states))
    _compiled(_call_states)(
        native.address,
        (pods.ctypes.data, pods.itemsize),
        (nodes.ctypes.data, nodes.itemsize),
        states.gpus.astype(np.int64),
        _place_of(numbers),
        found,
    )
    before = (states.pods.tobytes(), states.nodes.tobytes(), table.tobytes())
    return found, before != (pods.tobytes(), nodes.tobytes(), numbers.tobytes())


def _place_of(table: Scores) -> tuple[int, int, int]:
    return table.ctypes.data, len(table), table.shape[1] if table.ndim == 2 else 1


def _call_nodes(  # noqa: PLR0913 - compiled code takes numbers and arrays, no records of its own
    address: int, pod: int, nodes: Any, free: Any, need: int, picked: Any, table: Any,
    found: Any, slots: Any,
) -> int:  # fmt: skip
    for i in range(len(picked)):
        node = nodes[0] + picked[i] * nodes[1]
        best = -math.inf
        if need == 0:
            best = call_native(address, pod, node, -1, *table)
        for slot in range(free.shape[1] if need > 0 else 0):
            if free[picked[i], slot] >= need:
                score = call_native(address, pod, node, slot, *table)
                if slots[i] < 0 or not score <= best:
                    best = score
                    slots[i] = slot
                if not best < math.inf:
                    break
        found[i] = best
        if not best < math.inf:
            return int(picked[i])
    return -1


def _call_states(address: int, pods: Any, nodes: Any, gpus: Any, table: Any, found: Any) -> None:
    for i in range(len(found)):
        found[i] = call_native(
            address, pods[0] + i * pods[1], nodes[0] + i * nodes[1], gpus[i], *table
        )


_LOOPS: dict[Callable[..., Any], Any] = {}


def _compiled(loop: Callable[..., Any]) -> Any:
    made = _LOOPS.get(loop)
    if made is None:
        with COMPILING:
            made = _LOOPS.get(loop) or _LOOPS.setdefault(loop, _compile(loop))
    return made


def _compile(loop: Callable[..., Any]) -> Any:
    sources = (Path(__file__), Path(abi.__file__))
    stamp = stamp_of([loop.__name__, *(path.read_text(encoding="utf-8") for path in sources)])
    # An endless policy must not deafen the process: others run while this one does.
    made = numba.njit(nogil=True)(marked(loop, stamp[:24]))
    keep_on_disk(made, loop, stamp)
    return made
