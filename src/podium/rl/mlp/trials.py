"""Judges nets by whole runs of the exact simulator, on as many processes as there are cores.

A net meets the same pods in the same order whoever runs it, so that figures do not depend on the
number of processes.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.compute.executor import Call, Executor
from podium.compute.local import ProcessExecutor, ThreadExecutor
from podium.compute.worker import Values, WorkerSpec
from podium.evaluation.cases import Case
from podium.evaluation.default_cases import pods_for
from podium.evaluation.measures import last_within
from podium.policies import Policy, load
from podium.policies.networks.mlp import mlp_policy
from podium.rl.mlp.parameters import arrays_of
from podium.sim import Result
from podium.sim.plan import Plan
from podium.traces.catalogue import is_drawn

Array = npt.NDArray[np.float64]

LOADS = (0.8, 0.85, 0.9, 0.95, 1.0, 1.3)
"""GPU allocation is measured when so many times the GPUs have been asked for.

One run tells them all. Below 100 % a good policy places every pod; one that has broken up free
nodes of many GPUs does not, long before the cluster is full, and its pods wait in a live one.
"""

AT_100, AT_130 = LOADS.index(1.0), LOADS.index(1.3)

KEPT_PLANS = 600
START_S = 300.0  # machine code may have to be compiled first


def inflation_case(trace: str, nodes: int, seed: int, **others: Any) -> Case:
    """Describes the inflation of a trace on so many of its nodes."""
    # Traces that are drawn have as many pods as one asks for; files have what they have.
    pods = pods_for(trace, nodes) if is_drawn(trace) else None
    case = Case(trace, nodes, pods, seed=seed, **others)
    # Of a dump, what runs and ran is demand, too.
    return replace(case, state="history") if case.is_own else case


def allocations(result: Result) -> list[float]:
    """Measures the percent of GPUs in use when the arrived demand is last within each load."""
    placed = np.cumsum(np.where(result.is_placed, result.plan.gpu_weight_milli, 0))
    total = max(1, result.plan.cluster.gpu_milli_total)
    return [100 * float(placed[last_within(result, load)]) / total for load in LOADS]


class TrialWorker:
    """Runs policies on cases; keeps the plans of cases that come again."""

    def __init__(self, setup: Values, threads: int) -> None:
        del threads
        self._units = int(setup["hidden_units"])
        self._plans: OrderedDict[Case, Plan] = OrderedDict()

    def get_ready(self) -> Values:
        """Imports what runs need, which takes longer than a run."""
        from podium.sim.execution import execute  # noqa: F401 - imports Numba

        return {}

    def perform(self, task: Values, shared: Values) -> Values:
        """Runs one policy on one case."""
        from podium.sim.execution import execute

        del shared
        policy = self._policy(task["policy"])
        plan = replace(self._plan(Case(**task["case"]), policy), policy=policy, tier="cached")
        return {"figures": allocations(execute(plan))}

    def close(self) -> None:
        """Has nothing to end."""

    def _policy(self, given: str | bytes) -> Policy:
        if isinstance(given, str):
            return load(given)
        return mlp_policy("mlp", arrays_of(np.frombuffer(given, np.float64), self._units))

    def _plan(self, case: Case, policy: Policy) -> Plan:
        if case not in self._plans:
            self._plans[case] = case.plan(policy)
            if len(self._plans) > KEPT_PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(case)
        return self._plans[case]


class Trials:
    """Runs nets, and policies by their names, on cases."""

    def __init__(self, hidden_units: int, workers: int) -> None:
        self._spec = WorkerSpec(f"{__name__}:TrialWorker", {"hidden_units": hidden_units}, START_S)
        self._workers = workers
        self._executor: Executor | None = None
        self._known: dict[tuple[str, Case], Array] = {}

    def run(self, policies: Sequence[Array | str], cases: Sequence[Case]) -> Array:
        """Returns (policies, cases, loads) of percent."""
        found = np.empty((len(policies), len(cases), len(LOADS)))
        calls = []
        for i, policy in enumerate(policies):
            for j, case in enumerate(cases):
                known = self._known.get((policy, case)) if isinstance(policy, str) else None
                if known is not None:
                    found[i, j] = known
                else:
                    calls.append(Call(i * len(cases) + j, _task(policy, case)))
        for reply in self._ready().run(calls) if calls else ():
            i, j = divmod(reply.key, len(cases))
            found[i, j] = reply.values["figures"]
            policy = policies[i]
            if isinstance(policy, str):
                self._known[policy, cases[j]] = found[i, j].copy()
        return found

    def close(self) -> None:
        """Ends the processes."""
        if self._executor is not None:
            self._executor.close()
        self._executor = None

    def _ready(self) -> Executor:
        if self._executor is None:
            is_alone = self._workers == 1
            kind: Any = ThreadExecutor if is_alone else ProcessExecutor
            self._executor = kind(self._spec, self._workers)
            # A training that is over in a notebook leaves no processes behind.
            weakref.finalize(self, self._executor.close)
            self._executor.get_ready()
        return self._executor


def _task(policy: Array | str, case: Case) -> dict[str, Any]:
    given = policy if isinstance(policy, str) else np.ascontiguousarray(policy).tobytes()
    return {"policy": given, "case": asdict(case)}
