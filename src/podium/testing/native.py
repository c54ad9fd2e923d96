"""Calls a compiled policy on many states. Importing this imports Numba."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from podium.policies import abi
from podium.policies.abi import Native, call_native
from podium.policies.jit import COMPILING, keep_on_disk, stamp_of
from podium.testing.states import States


def score_compiled(
    native: Native, states: States, table: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], bool]:
    """Scores copies of the states, and tells whether the policy changed what it was given."""
    pods, nodes, given = states.pods.copy(), states.nodes.copy(), table.copy()
    columns = given.shape[1] if given.ndim == 2 else 1
    found = np.empty(len(states))
    _caller()(
        native.address,
        (pods.ctypes.data, pods.itemsize),
        (nodes.ctypes.data, nodes.itemsize),
        states.gpus.astype(np.int64),
        (given.ctypes.data, len(given), columns),
        found,
    )
    before = (states.pods.tobytes(), states.nodes.tobytes(), table.tobytes())
    return found, before != (pods.tobytes(), nodes.tobytes(), given.tobytes())


def call_all(address: int, pods: Any, nodes: Any, gpus: Any, table: Any, found: Any) -> None:
    """Calls the policy at an address once for each state."""
    for i in range(len(found)):
        found[i] = call_native(
            address, pods[0] + i * pods[1], nodes[0] + i * nodes[1], gpus[i], *table
        )


def _caller() -> Any:
    with COMPILING:
        return _compiled_caller()


@functools.cache
def _compiled_caller() -> Any:
    made = numba.njit(nogil=True)(call_all)  # an endless policy must not deafen the process
    sources = (Path(__file__), Path(abi.__file__))
    keep_on_disk(made, call_all, stamp_of(path.read_text() for path in sources))
    return made
