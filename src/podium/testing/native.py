"""Calls a compiled policy on many states. Importing this imports Numba."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from podium.policies.abi import CALLBACK, Native
from podium.testing.states import States


def score_compiled(
    native: Native, states: States, table: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], bool]:
    """Scores copies of the states, and tells whether the policy changed what it was given."""
    pods, nodes, given = states.pods.copy(), states.nodes.copy(), table.copy()
    call = CALLBACK(native.address)
    columns = given.shape[1] if given.ndim == 2 else 1
    found = np.array(
        [
            call(
                pods.ctypes.data + i * pods.itemsize,
                nodes.ctypes.data + i * nodes.itemsize,
                int(states.gpus[i]),
                given.ctypes.data,
                len(given),
                columns,
            )
            for i in range(len(states))
        ]
    )
    before = (states.pods.tobytes(), states.nodes.tobytes(), table.tobytes())
    return found, before != (pods.tobytes(), nodes.tobytes(), given.tobytes())
