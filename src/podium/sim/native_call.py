"""Connects a policy with the compiled core. Importing this imports Numba."""

from __future__ import annotations

import functools
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.workload import Shapes
from podium.policies import ClusterPolicy, PairPolicy, load
from podium.policies.abi import Native, python_callback
from podium.policies.session import is_same_table, refresh_chooser
from podium.sim.callback import ClusterCallback, PairCallback
from podium.sim.plan import TIE_POLICY, Plan
from podium.sim.situation import Situations
from podium.sim.state import State, connect_policy, connect_table, forget_scores, gpu_slots

Table = npt.NDArray[np.float64]


class NativeCall:
    """Is what the core calls: an address, its table, and the Python behind it, if any."""

    def __init__(self, plan: Plan, state: State, table: Table) -> None:
        self._plan = plan
        self._state = state
        self._table = table
        self.tables: list[tuple[int, Table]] = []  # prepared in the run, after so many changes
        self.callback = _callback(plan, state, table)
        self._native = self._called()
        address = self._native.address
        connect_policy(state, plan.policy, address, table, plan.seed, _tie_address(plan))

    def prepare(self, shapes: Shapes) -> None:
        """Has the table prepared anew; scores that went by another one are forgotten."""
        policy = self._plan.policy
        if isinstance(policy, ClusterPolicy):
            refresh_chooser(policy, self._chooser, shapes)
            return
        table = policy.table(shapes)
        if is_same_table(table, self._table):
            return
        self._table = table
        self.tables.append((self._state.number("changes"), table))
        if isinstance(self.callback, PairCallback):
            self.callback.table = table
        else:
            self._native = self._called()
        connect_table(self._state, self._native.address, table)
        forget_scores(self._state)

    def stop(self, frame: FrameType | None) -> None:
        """Makes a policy in plain Python end the run; machine code ends by itself."""
        if self.callback is not None:
            self.callback.stop(frame)

    @property
    def _chooser(self) -> Any:
        assert isinstance(self.callback, ClusterCallback)
        return self.callback.chooser

    def _called(self) -> Native:
        if self.callback is not None:
            return python_callback(self.callback)
        assert not isinstance(self._plan.policy, ClusterPolicy)
        native: Native = self._plan.policy.native(self._table.ndim, gpu_slots(self._plan.cluster))
        return native


def _callback(plan: Plan, state: State, table: Table) -> PairCallback | ClusterCallback | None:
    nodes, shapes = state.arrays["nodes"], state.arrays["shapes"]
    policy = plan.policy
    if isinstance(policy, ClusterPolicy):
        chooser = policy.chooser(plan.seed)
        situations = Situations(state) if hasattr(chooser, "observe") else None
        return ClusterCallback(chooser, nodes, shapes, state.arrays["feasible"], situations)
    return PairCallback(policy, nodes, shapes, table) if plan.tier == "python" else None


def _tie_address(plan: Plan) -> int:
    """Gives what settles ties, 0 where the order of the nodes or the policy's own rule does."""
    policy = plan.policy
    if plan.ties == "order" or not isinstance(policy, PairPolicy) or policy.ties == "random":
        return 0
    address: int = _tie_policy().native(1, gpu_slots(plan.cluster)).address
    return address


@functools.cache
def _tie_policy() -> PairPolicy:
    """Loads it once: its machine code must outlive every run that calls it."""
    policy = load(TIE_POLICY)
    assert isinstance(policy, PairPolicy)
    return policy
