"""Runs the core with preemption: where a pod fits nowhere, pods of lower priority make room.

The core stops at such a pod, and a function that is compiled apart from it decides. So a run
without preemption neither compiles nor carries any of this. Importing this imports Numba.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model import Workload
from podium.model.disruption import DisruptionBudget
from podium.sim.history import Evictions
from podium.sim.interrupt import insistent
from podium.sim.kernel import preempter
from podium.sim.kernel.loop import PREEMPTING
from podium.sim.kernel.preemption import NOBODY_RUNS, SPACE
from podium.sim.kernel.waiting import NOBODY
from podium.sim.plan import Plan
from podium.sim.state import State, connect

Arrays = dict[str, npt.NDArray[Any]]

_EVICTED: dict[str, Any] = {
    "evicted_at": np.int64, "evicted_node": np.int32, "evicted_slots": np.int32,
    "evicted_start": np.float64, "evicted_end": np.float64, "evicted_for": np.int64,
}  # fmt: skip


class Preemption:
    """Owns what preemption needs beside the state of a run."""

    def __init__(self, plan: Plan, state: State) -> None:
        with insistent():
            self._preempt = preempter()
        self._state = state
        self._num_pods = len(plan.arrivals)
        self._record = np.zeros(1, SPACE)
        self._arrays: Arrays = {}
        budgets = _budgets(plan.arrivals, len(plan.bound))
        self._connect(_pods(plan.arrivals) | _lists(plan, state) | budgets)
        self._record["num_budgets"] = len(plan.arrivals.budgets)
        self._record["num_levels"] = len(self._arrays["level_priority"])
        self._make_private(plan)

    def play(self, core: Callable[[Any], int]) -> int:
        """Runs the core to the end, and decides for it where a pod fits nowhere."""
        while True:
            self._make_room()
            status = core(self._state.record)
            if status == PREEMPTING:
                status = self._preempt(self._state.record, self._record)
                if status == 0:
                    continue
            return status

    def evictions(self, rank_order: npt.NDArray[np.int64]) -> Evictions:
        """Gives who was evicted, in order."""
        count = int(self._record["evictions"][0])
        at, node, slots, start, end, preemptor = (
            self._arrays[name][:count].copy() for name in _EVICTED
        )
        return Evictions(at, rank_order[node].astype(np.int32), slots, start, end, preemptor)

    def _make_private(self, plan: Plan) -> None:
        """Copies what evictions change and other runs share; any pod may have to wait again."""
        arrays = self._state.arrays
        private: Arrays = {name: arrays[name].copy() for name in ("gang_of", "duration")}
        private["late"] = np.zeros(len(plan.arrivals), np.int64)
        connect(self._state, private, {"has_preemption": 1, "lowest_running": NOBODY_RUNS})

    def _make_room(self) -> None:
        """Lets the lists of changes and evictions grow: one call evicts each pod once at most."""
        evictions = int(self._record["evictions"][0])
        if len(self._arrays.get("evicted_at", ())) < evictions + self._num_pods:
            size = 2 * (evictions + self._num_pods)
            grown = {
                name: _grown(self._arrays.get(name), size, kind) for name, kind in _EVICTED.items()
            }
            self._connect(grown)
        # A pod is placed and leaves once, and once more for each eviction.
        change = self._state.arrays["change"]
        most = 2 * (evictions + 2 * self._num_pods)
        if len(change) < most:
            connect(self._state, {"change": _grown(change, 2 * most, np.int32)}, {})

    def _connect(self, arrays: Arrays) -> None:
        self._arrays |= arrays
        for name, array in arrays.items():
            self._record[name] = array.ctypes.data


def _grown(array: npt.NDArray[Any] | None, size: int, kind: Any) -> npt.NDArray[Any]:
    larger = np.zeros(size, kind)
    if array is not None:
        larger[: len(array)] = array
    return larger


def _pods(arrivals: Workload) -> Arrays:
    count = len(arrivals)
    priority = arrivals.pods["priority"].astype(np.int64)
    levels, level_of = np.unique(priority, return_inverse=True)
    never = np.array(arrivals.never_preempts or (False,) * count, np.bool_)
    age = np.zeros(count) if arrivals.age_s is None else arrivals.age_s.copy()
    return {
        "priority": priority,
        "may_preempt": ~never,
        "age": age,
        "level_of": level_of.astype(np.int64).ravel(),
        "level_priority": levels,
        "running_at": np.zeros(len(levels), np.int64),
    }


def _lists(plan: Plan, state: State) -> Arrays:
    count, nodes = len(plan.arrivals), len(plan.cluster)
    return {
        "first": np.full(nodes, NOBODY, np.int64),
        "behind": np.full(count, NOBODY, np.int64),
        "ahead": np.full(count, NOBODY, np.int64),
        "touched": np.zeros(nodes, np.int64),
        "barren_at": np.full(state.number("num_lines"), -1, np.int64),
        "victims": np.zeros(count, np.int64),
        "best_victims": np.zeros(count, np.int64),
        "is_violating": np.zeros(count, np.bool_),
        "is_back": np.zeros(count, np.bool_),
    }


def _budgets(arrivals: Workload, num_bound: int) -> Arrays:
    """Lists the budgets that select each pod, and how many of its pods each wants to run."""
    count, budgets = len(arrivals), arrivals.budgets
    selected = arrivals.selected_by_budgets()
    is_healthy = np.ones(count, np.bool_)
    for flags in (arrivals.is_terminating, arrivals.is_unready):
        is_healthy &= ~np.array(flags or (False,) * count, np.bool_)
    desired = []
    for budget, members in zip(budgets, selected, strict=True):
        expected = int(members.sum())
        # Whose eviction has begun, a budget has let go.
        members &= ~_is_disrupted(arrivals, num_bound, budget)
        running = members[:num_bound]
        healthy = int((running & is_healthy[:num_bound]).sum())
        desired.append(budget.must_run(expected, int(running.sum()), healthy))
    number, pod = np.nonzero(selected)
    order = np.lexsort((number, pod))
    return {
        "budget_start": np.concatenate([[0], np.cumsum(selected.sum(axis=0))]).astype(np.int64),
        "budget_of": number[order].astype(np.int64),
        "is_healthy": is_healthy,
        "healthy": np.zeros(len(budgets), np.int64),
        "desired": np.array(desired, np.int64),
        "allowed": np.zeros(len(budgets), np.int64),
    }


def _is_disrupted(
    arrivals: Workload, num_bound: int, budget: DisruptionBudget
) -> npt.NDArray[np.bool_]:
    found = np.zeros(len(arrivals), np.bool_)
    if budget.disrupted:
        # Where namespaces tell pods of one name apart, they are part of it.
        names = (name.rpartition("/")[2] for name in arrivals.names[:num_bound])
        found[:num_bound] = [name in budget.disrupted for name in names]
    return found
