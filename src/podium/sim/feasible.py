"""Says which nodes could take a pod, at any moment of a run: the compiled core decides.

Importing this imports Numba.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UnknownName
from podium.model import Cluster, Workload
from podium.sim.engine import Setup
from podium.sim.interrupt import insistent
from podium.sim.kernel import prober
from podium.sim.plan import Plan
from podium.sim.protocols import Rounds
from podium.sim.result import Result
from podium.sim.state import Running, State, build_world, copied
from podium.sim.state_at import running_at
from podium.sim.stepping import stepped_plan

Flags = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]


def feasible_nodes(cluster: Cluster, workload: Workload, pod_name: str) -> list[str]:
    """Names the nodes that could take a pod now, in the cluster's order.

    Pods that are bound run where they are, and nobody else runs. A pod that is bound itself does
    not stand in its own way.

    Raises:
        UnknownName: the workload has no such pod.
        InputError: a pod is bound to a node that the cluster does not have.
    """
    plan = present_plan(cluster, workload)
    if pod_name not in plan.arrivals.names:
        raise UnknownName.among("pod", pod_name, set(plan.arrivals.names))
    pod = plan.arrivals.names.index(pod_name)
    others = np.delete(np.arange(len(plan.bound)), pod) if pod < len(plan.bound) else None
    is_feasible = Moment(plan, build_world(plan, _bound(plan, others))).feasible(pod)
    return [cluster.names[node] for node in np.flatnonzero(is_feasible).tolist()]


def present_plan(cluster: Cluster, workload: Workload) -> Plan:
    """Plans a run of which only the beginning is asked for: nodes and bound pods as they are."""
    return stepped_plan(cluster, workload, Rounds(), Setup(ranks="listed"))


def moment_before(plan: Plan) -> Moment:
    """Gives a run as it begins: bound pods run, nobody else does."""
    return Moment(plan, build_world(plan, _bound(plan)))


def moment_at(result: Result, changes: int | None = None) -> Moment:
    """Gives a run after its first so many changes, or at its end."""
    stints = running_at(result, len(result.changes) if changes is None else changes)
    history = result.history
    running = Running(history.pod[stints], history.node[stints], history.slots[stints])
    return Moment(result.plan, build_world(result.plan, running))


def _bound(plan: Plan, some: Whole | None = None) -> Running:
    pods = np.arange(len(plan.bound)) if some is None else some
    return Running(pods, plan.bound.node[pods], plan.bound.slots[pods])


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """Is the state of a run at one moment, as the core keeps it: nodes stand in rank order."""

    plan: Plan
    state: State
    derived: dict[Any, Any] = field(default_factory=dict, repr=False)  # what no change changes

    def feasible(self, pod: int) -> Flags:
        """Tells of each node, as the cluster lists them, whether it could take a pod now."""
        self._probe(np.array([pod]))
        found = np.zeros(len(self.plan.cluster), bool)
        found[self.plan.rank_order] = self.state.arrays["feasible"]
        return found

    def seated(self, pods: Whole, level: int = 0, domain: int = -1) -> tuple[Moment, Flags]:
        """Lets pods run on the first node that each fits; gives what is then, and who found one.

        A level above 0 and a domain keep them on the nodes of one rack, block or zone.
        """
        after = Moment(self.plan, copied(self.state), self.derived)
        record = after.state.record
        record["trial_level"], record["trial_domain"] = level, domain
        # The last is only looked at; so somebody stands behind it.
        found: Flags = after._probe(np.append(pods, pods[-1]))[:-1] >= 0
        record["trial_level"] = 0
        return after, found

    def line(self, pod: int) -> int:
        """Gives the line of a pod; pods of one line fit alike."""
        return int(self.state.arrays["line_of"][pod])

    def _probe(self, pods: Whole) -> Whole:
        with insistent():
            ask = prober(self.plan.variant)
        seats = np.zeros(len(pods), np.int64)
        ask(self.state.seen_by(self.plan.variant), pods.astype(np.int64), seats)
        return seats
