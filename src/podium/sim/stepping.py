"""Steps runs from outside: one run by hand, or many at once to learn from.

The rules are those of `simulate`: the core plays events until a pod is offered that fits some
node, and waits there. Nodes are numbered by rank, as cluster policies see them. Importing this
imports Numba.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model import Cluster, Workload
from podium.model.records import POD, Node, Pod, node_view, pod_view
from podium.policies import HOLD, ClusterPolicy
from podium.policies.session import Situation
from podium.sim.engine import Setup, make_plan
from podium.sim.execution import collect
from podium.sim.interrupt import insistent
from podium.sim.kernel import Variant, stepper
from podium.sim.kernel.layout import RECORDS, RUN
from podium.sim.kernel.stepping import HOLD_ACTION, NONE_REFUSED
from podium.sim.plan import Plan
from podium.sim.protocols import Protocol, Replay
from podium.sim.result import Result
from podium.sim.situation import Situations
from podium.sim.state import (
    CHANGED,
    Arrays,
    State,
    aligned,
    build_state,
    connect,
    connect_memo,
    connect_policy,
    connect_ranking,
)

__all__ = ["HOLD_ACTION", "Episode", "Observation", "Offer", "VectorEnvironment", "stepped_plan"]

ANY_SLOT = -1
"""Leaves the GPU of a share pod to the run's rule."""


class _Nobody:
    """Stands where a run has its chooser: a stepped run is decided from outside."""

    def __init__(self, seed: int) -> None:
        pass

    def choose(self, _pod: Any, _nodes: Any, _feasible: Any) -> float:
        raise UsageError(
            "a stepped run has no policy that could choose",
            hint="decide its offers with Episode or VectorEnvironment",
        )


def stepped_plan(
    cluster: Cluster, workload: Workload, protocol: Protocol | None = None,
    setup: Setup | None = None,
) -> Plan:  # fmt: skip
    """Plans a run that is decided from outside; `make_plan` takes a policy and its GPU rule too."""
    nobody = ClusterPolicy("stepped", _Nobody, may_hold=True)
    return make_plan(cluster, workload, nobody, protocol or Replay(), setup or Setup())


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Shows what there is to decide in each environment; `reset` and `step` write it in place.

    All arrays are read-only views: copy what must outlive the next step. Environments with fewer
    nodes than the largest have empty records behind them, which nothing fits.
    """

    nodes: npt.NDArray[Any]  # (num_environments, most_nodes) of node records, in rank order
    pods: npt.NDArray[Any]  # (num_environments,) of POD: what is offered
    feasible: npt.NDArray[np.bool_]  # (num_environments, most_nodes) where it fits
    may_hold: npt.NDArray[np.bool_]  # (num_environments,) else holding takes the first that fits
    is_done: npt.NDArray[np.bool_]  # (num_environments,)
    clock_s: npt.NDArray[np.float64]  # (num_environments,)
    arrived: npt.NDArray[np.int64]  # (num_environments,) pods that have come before the offered one
    waiting: npt.NDArray[np.int64]  # (num_environments,) pods in the queue


class VectorEnvironment:
    """Steps many independent runs by one compiled call, without Python's lock."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self._plans = _plans(plans)
        kind = _record_kind(self._plans)
        size, width = len(self._plans), max(len(plan.cluster) for plan in self._plans)
        self._nodes = aligned(np.zeros((size, width), kind))
        self._feasible = np.zeros((size, width), np.bool_)
        self._runs = np.zeros(size, RUN)
        self._pods = np.zeros(size, POD)
        self._may_hold, self._is_done = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        self._any_slots = np.full(size, ANY_SLOT, np.int64)
        self._states = [self._laid_out(i, plan) for i, plan in enumerate(self._plans)]
        self._fresh = [_snapshot(state) for state in self._states]
        self._began = [time.perf_counter()] * size
        self.observation = self._shown()
        self._choose_core()
        self.reset()

    def __len__(self) -> int:
        return len(self._plans)

    def reset(self, environment: int | None = None, plan: Plan | None = None) -> Observation:
        """Begins one environment again, or all; one may be given another plan to run."""
        if environment is None:
            for i in range(len(self)):
                self._restore(i, plan)
            self._step(*self._batch(slice(None), self._any_slots, self._any_slots))
        else:
            i = self._number(environment)
            self._restore(i, plan)
            only = slice(i, i + 1)
            self._step(*self._batch(only, self._any_slots[only], self._any_slots[only]))
        return self.observation

    def step(
        self, actions: npt.NDArray[np.int64], slots: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.bool_]:
        """Decides every offered pod and goes on to the next; tells which environments are done.

        An action is the number of a node that fits, or HOLD_ACTION. A slot is the GPU of a pod that
        asks for a part of one. If one action is refused, nothing moves. What is given for an
        environment that is done is not read.
        """
        acted = whole_numbers(actions, len(self), "actions")
        chosen = self._any_slots if slots is None else whole_numbers(slots, len(self), "slots")
        refused = self._step(*self._batch(slice(None), acted, chosen))
        if refused != NONE_REFUSED:
            raise self._refusal(refused, int(acted[refused]), int(chosen[refused]))
        return self.observation.is_done

    def result(self, environment: int) -> Result:
        """Collects the result of an environment that is done."""
        i = self._number(environment)
        state, plan = self._states[i], self._plans[i]
        if not self._is_done[i]:
            raise UsageError(
                f"pod {self.offered(i)} is still to be decided",
                where=f"environment {environment}",
                hint="step until it is done",
            )
        arrays = {name: array.copy() for name, array in state.arrays.items()}
        return collect(plan, State(arrays, state.record.copy()), self._began[i])

    def offered(self, environment: int) -> int:
        """Gives the number of the offered pod in order of arrival, -1 when all is over."""
        return self._states[self._number(environment)].number("offered")

    def situation(self, environment: int, look_ahead: int) -> Situation:
        """Tells what a chooser would be told beside pod and nodes: the pods ahead, for instance."""
        return Situations(self._states[self._number(environment)]).now(look_ahead)

    def arguments(self, actions: npt.NDArray[np.int64]) -> tuple[Any, ...]:
        """Gives what `kernel.stepper` takes, for actors that are compiled together with it."""
        return self._batch(slice(None), actions, self._any_slots)

    def _number(self, environment: int) -> int:
        """Takes the number of an environment; one from behind would be taken for another."""
        if _is_whole(environment) and 0 <= environment < len(self):
            return int(environment)
        raise UsageError(
            f"there is no environment {environment!r}", where="argument environment",
            hint=f"give a whole number from 0 to {len(self) - 1}",
        )  # fmt: skip

    def _batch(self, which: slice, actions: Any, slots: Any) -> tuple[Any, ...]:
        shown = (self._pods[which], self._may_hold[which], self._is_done[which])
        return (self._seen[which], actions, slots, *shown)

    def _choose_core(self) -> None:
        """Takes the plain core, unless some run needs the other."""
        variant: Variant = "plain" if all(plan.is_plain for plan in self._plans) else "full"
        with insistent():
            self._step = stepper(variant)
        self._seen = self._runs.view(RECORDS[variant])

    def _laid_out(self, i: int, plan: Plan) -> State:
        built = build_state(plan)
        connect_policy(built, plan.policy, 0, np.zeros(1), plan.seed)
        connect_memo(built, has_memo=False)
        connect_ranking(built, is_cached=False)
        self._runs[i : i + 1] = built.record
        self._nodes[i], self._feasible[i] = np.zeros(1, self._nodes.dtype), False
        nodes = self._nodes[i, : len(plan.cluster)]
        nodes[:] = built.arrays["nodes"]
        state = State(built.arrays, self._runs[i : i + 1])
        rows: Arrays = {"nodes": nodes, "feasible": self._feasible[i, : len(plan.cluster)]}
        connect(state, rows, {})
        return state

    def _restore(self, i: int, plan: Plan | None) -> None:
        if plan is not None:
            self._check(plan)
            self._plans[i] = plan
            self._states[i] = self._laid_out(i, plan)
            self._fresh[i] = _snapshot(self._states[i])
            self._choose_core()
        record, arrays = self._fresh[i]
        self._runs[i : i + 1] = record
        for name, array in arrays.items():
            self._states[i].arrays[name][...] = array
        self._began[i] = time.perf_counter()

    def _check(self, plan: Plan) -> None:
        _plans([plan])
        width = self._nodes.shape[1]
        if plan.cluster.nodes.dtype != self._nodes.dtype or len(plan.cluster) > width:
            raise UsageError(
                f"the plan has {len(plan.cluster):,} nodes, there is room for {width:,} of the "
                "same kind of record",
                where=plan.cluster.name,
                hint="make an environment whose first plans have the largest cluster",
            )

    def _shown(self) -> Observation:
        runs = read_only(self._runs)
        return Observation(
            nodes=read_only(self._nodes),
            pods=read_only(self._pods),
            feasible=read_only(self._feasible),
            may_hold=read_only(self._may_hold),
            is_done=read_only(self._is_done),
            clock_s=runs["clock"],
            arrived=runs["arrived"],
            waiting=runs["waiting_pods"],
        )

    def _refusal(self, i: int, action: int, slot: int) -> UsageError:
        plan = self._plans[i]
        pod = f'pod "{plan.arrivals.names[self.offered(i)]}"'
        is_known = 0 <= action < len(plan.cluster)
        if not is_known:
            said = f"{action} is neither a node nor HOLD_ACTION"
        elif not self._feasible[i, action]:
            said = f'the pod does not fit node {action} ("{_name_of(plan, action)}")'
        else:
            said = f"the pod does not fit GPU {slot} of node {action}"
        return UsageError(
            said, where=f"environment {i}, {pod}", hint="choose among the nodes marked feasible"
        )


def _is_whole(given: object) -> bool:
    return isinstance(given, int | np.integer) and not isinstance(given, bool)


def _rank(node: int, count: int) -> int:
    """Takes the number of a node; one from behind would be taken for another."""
    if _is_whole(node) and 0 <= node < count:
        return int(node)
    raise UsageError(
        f"there is no node {node!r}", where="argument node",
        hint=f"give a whole number from 0 to {count - 1}",
    )  # fmt: skip


def _name_of(plan: Plan, rank: int) -> str:
    name: str = plan.cluster.names[plan.rank_order[rank]]
    return name


def _plans(given: Any) -> list[Plan]:
    """Takes plans, one for each environment."""
    plans: list[Plan] = list(given) if isinstance(given, Iterable) else [given]
    wrong = given if isinstance(given, Plan) else next(
        (each for each in plans if not isinstance(each, Plan)), None
    )  # fmt: skip
    if wrong is None:
        _refuse_preemption(plans)
        return plans
    is_alone = isinstance(wrong, Plan)
    raise UsageError(
        "one plan is no list of plans" if is_alone else f"{type(wrong).__name__} is not a plan",
        where="argument plans" if is_alone else "argument plan",
        hint="give a list of what stepped_plan(cluster, workload) makes",
    )


def _refuse_preemption(plans: Iterable[Plan]) -> None:
    if any(plan.protocol.preemption for plan in plans):
        raise UsageError(
            "a run with preemption cannot be stepped", where="argument plans",
            hint="leave preemption out; simulate runs with it",
        )  # fmt: skip


def _record_kind(plans: Sequence[Plan]) -> np.dtype[Any]:
    kinds = {plan.cluster.nodes.dtype for plan in plans}
    if len(kinds) != 1:
        raise UsageError(
            "no plan to step" if not plans else "the plans have nodes of up to 8 and of more GPUs",
            hint="give plans, all of one kind of node record",
        )
    return kinds.pop()


def _snapshot(state: State) -> tuple[npt.NDArray[Any], Arrays]:
    return state.record.copy(), {name: state.arrays[name].copy() for name in CHANGED}


def whole_numbers(given: Any, size: int, name: str) -> npt.NDArray[np.int64]:
    """Reads one whole number for each environment."""
    array = np.ascontiguousarray(given)
    if array.shape != (size,) or array.dtype.kind not in "iu":
        raise UsageError(
            f"{name} are {array.dtype} of shape {array.shape}",
            hint=f"one whole number for each of the {size} environments is expected",
        )
    return array.astype(np.int64, copy=False)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Shows an array to somebody who must not write to it."""
    # NumPy lets whoever has a view of writeable memory make the view writeable again.
    shown = memoryview(array.view(np.uint8).reshape(-1).data).toreadonly()
    return np.frombuffer(shown, array.dtype).reshape(array.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """Shows one pod that is to be decided, and the cluster as it is then."""

    name: str
    pod: Pod
    nodes: npt.NDArray[Any]  # (num_nodes,) of node records in rank order; read-only, moves on
    feasible: npt.NDArray[np.bool_]  # (num_nodes,) where the pod fits; read-only, moves on
    may_hold: bool  # else holding takes the first node that fits
    clock_s: float

    def node(self, number: int) -> Node:
        """Shows one node as it is now, to read its fields as those of the pod."""
        return node_view(self.nodes[_rank(number, len(self.nodes))])


class Episode:
    """Steps one run by hand, offer by offer; its result is that of `simulate`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._one = VectorEnvironment([plan])
        self.offer: Offer | None = self._next()

    @classmethod
    def of(
        cls, cluster: Cluster, workload: Workload, protocol: Protocol | None = None,
        setup: Setup | None = None,
    ) -> Episode:  # fmt: skip
        """Begins a run on a cluster and a workload."""
        return cls(stepped_plan(cluster, workload, protocol, setup))

    def apply(self, node: float, slot: int = ANY_SLOT) -> Offer | None:
        """Places the offered pod on a node; gives the next offer, or nothing when all is over.

        HOLD in the place of a node holds the pod back, as it does for a policy that chooses.
        """
        if self.offer is None:
            raise UsageError("the run is over", hint="result() gives what came of it")
        if isinstance(node, float) and node == HOLD:
            return self._decide(HOLD_ACTION, ANY_SLOT)
        where = f'environment 0, pod "{self.offer.name}"'
        if not _is_whole(node) or node == HOLD_ACTION:  # what finds no node often says -1
            hint = "choose among the nodes marked feasible; hold() holds the pod back"
            raise UsageError(f"{node!r} is not the number of a node", where=where, hint=hint)
        if not _is_whole(slot) or slot < ANY_SLOT:
            hint = f"give a GPU of the node, or {ANY_SLOT} for the rule of the run"
            raise UsageError(f"{slot!r} is not the number of a GPU", where=where, hint=hint)
        return self._decide(int(node), int(slot))

    def hold(self) -> Offer | None:
        """Holds the offered pod back; gives the next offer, or nothing when all is over."""
        return self.apply(HOLD)

    def _decide(self, action: int, slot: int) -> Offer | None:
        self._one.step(np.array([action]), np.array([slot]))
        self.offer = self._next()
        return self.offer

    def node_name(self, node: int) -> str:
        """Gives the name of a node by its number in an offer."""
        return _name_of(self._plan, _rank(node, len(self._plan.cluster)))

    def result(self) -> Result:
        """Collects the result, once no offer is left."""
        return self._one.result(0)

    def _next(self) -> Offer | None:
        shown = self._one.observation
        if shown.is_done[0]:
            return None
        return Offer(
            name=self._plan.arrivals.names[self._one.offered(0)],
            pod=pod_view(shown.pods[0]),
            nodes=shown.nodes[0],
            feasible=shown.feasible[0],
            may_hold=bool(shown.may_hold[0]),
            clock_s=float(shown.clock_s[0]),
        )
