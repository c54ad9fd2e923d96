"""Prepares a policy's table in the midst of a run, from the pods that were seen so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from podium.model.workload import Shapes
from podium.policies import demand
from podium.policies.demand import RecentPods
from podium.sim.kernel.loop import PREPARING
from podium.sim.orders import DEMAND_STREAM, stream
from podium.sim.plan import Plan
from podium.sim.state import State, connect


class SeenPods:
    """Keeps the pods of a run that its policy has seen, and those that ran before it began."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.window = RecentPods[int](demand.WINDOW_PODS)
        if plan.demand == "warm":
            self._draw()
        self.add(range(len(plan.bound)))

    def _draw(self) -> None:
        """Fills the window as a day of the same pods would."""
        trace, size = self._plan.trace, demand.WINDOW_PODS
        drawn = stream(self._plan.seed, DEMAND_STREAM).integers(len(trace), size=size)
        for number, pod in enumerate(drawn.tolist()):
            self.window.add(number - size, trace.pods[pod], trace.gpu_specs[pod])

    def add(self, pods: Iterable[int]) -> None:
        """Adds pods by their numbers in order of arrival."""
        arrivals = self._plan.arrivals
        for pod in pods:
            self.window.add(pod, arrivals.pods[pod], arrivals.gpu_specs[pod])

    def shapes(self) -> Shapes:
        """Counts the pods of the window for a table that is prepared now."""
        plan = self._plan
        return self.window.shapes(plan.cluster.gpu_models, plan.trace.typical)


class Window:
    """Runs the core, and stops it wherever a table is due."""

    def __init__(self, plan: Plan, state: State, prepare: Callable[[Shapes], None]) -> None:
        self._state = state
        self._prepare = prepare
        self._seen = SeenPods(plan)
        count = len(plan.arrivals)
        arrays = {"is_recent": np.zeros(count, np.bool_), "new_pod": np.zeros(count, np.int64)}
        connect(state, arrays, {"has_window": 1})
        if len(self._seen.window):
            prepare(self._seen.shapes())
        self._count_anew()

    def around(self, core: Callable[[Any], int]) -> Callable[[Any], int]:
        """Gives a core that has tables prepared by itself."""

        def run(runs: Any) -> int:
            while (status := core(runs)) == PREPARING:
                new = self._state.arrays["new_pod"][: self._state.number("new_pods")]
                self._seen.add(new.tolist())
                self._prepare(self._seen.shapes())
                self._count_anew()
            return status

        return run

    def _count_anew(self) -> None:
        is_recent = self._state.arrays["is_recent"]
        is_recent[:] = False
        is_recent[[pod for pod in self._seen.window if pod >= 0]] = True
        connect(self._state, {}, {"new_pods": 0, "due_pods": self._seen.window.lacking})
