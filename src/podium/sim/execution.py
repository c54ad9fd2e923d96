"""Executes a plan on the compiled core. Importing this imports Numba."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from podium.errors import PodiumError, PolicyError
from podium.model.state import occupied
from podium.policies import ClusterPolicy, PairPolicy
from podium.policies.source import NoNumber
from podium.sim.bound import placed_records
from podium.sim.callback import ClusterCallback
from podium.sim.interrupt import deferred_interrupt, insistent, unbroken
from podium.sim.kernel import core
from podium.sim.kernel.offers import PLACED
from podium.sim.native_call import NativeCall, Table
from podium.sim.plan import Plan
from podium.sim.protocols import Replay, Rounds
from podium.sim.result import Result
from podium.sim.shapes import core_shapes
from podium.sim.state import (
    State,
    build_state,
    connect_memo,
    connect_ranking,
    gpu_slots,
)
from podium.sim.tiers import is_cache_worthwhile

if TYPE_CHECKING:
    from podium.sim.preemption import Preemption


Core = Callable[[Any], int]
"""Runs the record of a run; gives 0, or why it stopped."""


class Execution:
    """Runs a plan once; another thread may watch how far it is."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._state: State | None = None
        self.tables: list[tuple[int, Table]] = []  # prepared in the run, after so many changes

    @property
    def arrived(self) -> int:
        """Counts the pods that have arrived so far."""
        return self._state.number("arrived") if self._state else 0

    @property
    def settled(self) -> int:
        """Counts the pods that have been dealt with so far: in rounds all arrive at once."""
        if self._state is None or not isinstance(self._plan.protocol, Rounds):
            return self.arrived
        return self.arrived - self._state.number("waiting_pods")

    def run(self) -> Result:
        """Runs the plan and collects its result."""
        plan = self._plan
        with insistent():
            play = core(plan.variant)
        table = _table(plan)
        _compile(plan, table)
        began = time.perf_counter()
        state = build_state(plan)
        call = NativeCall(plan, state, table)
        self.tables = call.tables
        connect_memo(state, has_memo=plan.tier == "python")
        connect_ranking(state, is_cached=_is_cached(plan))
        self._state = state
        preemption, play = _preemption(plan, state), _preparing(plan, state, call, play)
        with deferred_interrupt(call.stop):
            seen = state.seen_by(plan.variant)
            status = preemption.play(play) if preemption else play(seen)
        if status != 0:
            raise _failure(plan, state, call)
        result = collect(plan, state, began)
        if preemption is None:
            return result
        return replace(result, evictions=preemption.evictions(plan.rank_order))


def execute(plan: Plan) -> Result:
    """Runs a plan and collects its result."""
    return Execution(plan).run()


def table_at(plan: Plan, changes: int) -> Table:
    """Gives the table by which a pair policy decides after so many changes of a run.

    Where tables are prepared as pods come, the run is made once more to know them.
    """
    table = _table(plan)
    if plan.follows_pods:
        again = Execution(plan)
        again.run()
        table = next((each for after, each in reversed(again.tables) if after <= changes), table)
    return table


def _preemption(plan: Plan, state: State) -> Preemption | None:
    # Imported where it is used: a run without it needs none of it.
    if not plan.protocol.preemption:
        return None
    from podium.sim.preemption import Preemption

    return Preemption(plan, state)


def _preparing(plan: Plan, state: State, call: NativeCall, play: Core) -> Core:
    """Gives a core that has the table prepared anew as pods come, where the run goes by them."""
    if not plan.follows_pods:
        return play
    from podium.sim.window import Window

    return Window(plan, state, call.prepare).around(play)


def _table(plan: Plan) -> Table:
    if isinstance(plan.policy, ClusterPolicy):
        return np.zeros(1)
    return plan.preparation.take(plan.policy, plan.trace)


def _compile(plan: Plan, table: Table) -> None:
    # Before the clock starts: it is done once, however many runs follow.
    if isinstance(plan.policy, PairPolicy) and plan.tier != "python":
        with unbroken():
            plan.policy.native(table.ndim, gpu_slots(plan.cluster))


def _is_cached(plan: Plan) -> bool:
    if not isinstance(plan.policy, PairPolicy):
        return False
    if plan.tier == "python":
        return is_cache_worthwhile(plan.arrivals, len(plan.cluster))
    return plan.tier == "cached"


def collect(plan: Plan, state: State, began: float) -> Result:
    """Collects the result of a run that has ended; `began` is when, by the performance counter."""
    if not _is_conserved(plan, state):
        raise PolicyError(
            "the policy changed the state of the cluster",
            where=plan.policy.name,
            hint="a policy only reads the pod and the node it is given",
        )
    wall_s = time.perf_counter() - began
    ranks = state.arrays["node"]
    return Result(
        plan=plan,
        node=np.where(ranks >= 0, plan.rank_order[ranks], -1).astype(np.int32),
        slots=state.arrays["slots"],
        arrival_s=state.arrays["arrival"],
        start_s=state.arrays["start"],
        status=state.arrays["status"].astype(np.int8),
        holds=state.arrays["holds"],
        changes=state.arrays["change"][: state.number("changes")],
        changes_after=state.arrays["changes_after"],
        decisions=state.number("decisions"),
        wall_s=wall_s,
    )


def _failure(plan: Plan, state: State, call: NativeCall) -> BaseException:
    callback = call.callback
    if callback is None:
        return _explained_in_python(plan)
    error = callback.error
    if isinstance(error, PodiumError | KeyboardInterrupt | SystemExit):
        return error
    where = _place(plan, state)
    if error is not None:
        told = str(error) if isinstance(error, NoNumber) else f"{type(error).__name__}: {error}"
        failure = PolicyError(told, where=_line(plan, error) + where)
        failure.__cause__ = error
        return failure
    if isinstance(callback, ClusterCallback):
        return PolicyError(
            f"the policy chose {callback.choice}, which is not a node that fits",
            where=where,
            hint="return the index of a feasible node, or HOLD",
        )
    return PolicyError("the score is NaN or infinite", where=where, hint="return a finite number")


def _explained_in_python(plan: Plan) -> BaseException:
    # Compiled code only knows that the policy failed. Every tier makes the same decisions, so
    # plain Python fails at the same place and can say why.
    try:
        execute(replace(plan, tier="python"))
    except BaseException as error:  # noqa: BLE001 - handed to the caller, who raises it
        return error
    return PolicyError(
        "the compiled policy fails where plain Python does not",
        where=plan.policy.name,
        hint="podium policies check shows where they differ; --tier python avoids compiling",
    )


def _place(plan: Plan, state: State) -> str:
    pod, node = state.number("error_pod"), state.number("error_node")
    where = f'{plan.policy.name}, pod "{plan.arrivals.names[pod]}"'
    if 0 <= node < len(plan.cluster):
        where += f' on node "{plan.cluster.names[plan.rank_order[node]]}"'
    return where


def _line(plan: Plan, error: BaseException) -> str:
    """Names the line of the policy's own file at which it failed."""
    source = plan.policy.source
    found = source.line_of(error) if source is not None else 0
    return f"line {found} of " if found else ""


def _is_conserved(plan: Plan, state: State) -> bool:
    """Tells whether the records are what the placements, and nothing else, make of them."""
    shapes = _words(state.arrays["shapes"])
    if not np.array_equal(shapes, _words(core_shapes(plan.arrivals).records)):
        return False
    return np.array_equal(_words(state.arrays["nodes"]), _words(_expected_nodes(plan, state)))


def _words(records: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    # NumPy takes and compares rows of numbers many times faster than records.
    return records.view(np.int64).reshape(len(records), -1)


def _expected_nodes(plan: Plan, state: State) -> npt.NDArray[Any]:
    nodes = plan.cluster.nodes[plan.rank_order]
    if isinstance(plan.protocol, Replay):
        return nodes
    placed = np.flatnonzero(state.arrays["status"] == PLACED)
    at, slots = state.arrays["node"], state.arrays["slots"]
    where = plan.rank_order[np.maximum(at, 0)]
    pods = placed_records(plan.arrivals, where, slots, plan.cluster)
    return occupied(nodes, pods[placed], at[placed], slots[placed])
