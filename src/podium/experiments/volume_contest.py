"""Runs pods that compete for volumes until each has volumes that others before it left.

The core knows where the volumes of a pod let it run, but not that one of them serves one claim.
So the run is followed as kube-scheduler would bind claims, and the first pod whose node has no
volume left for it runs again with what is left. What was decided before it stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from podium.experiments.listener import Listener
from podium.model.constraints import UNCONSTRAINED
from podium.traces.kubernetes.contest import Contest, PodName, pod_name
from podium.traces.kubernetes.volumes import FULL, Consumer, Volumes

if TYPE_CHECKING:
    from podium.experiments.case import Case
    from podium.model import Workload
    from podium.policies import Policy
    from podium.sim import Result

MOST_RUNS = 100

ANY_VOLUME = "which of several volumes pods before it get is not known"
GANG = "which volumes its gang leaves it is not known"
LATER = "where a volume will be that is yet to be made for another pod is not known"
TOO_MANY = "too many pods compete for volumes to follow them all"
UNATTACHED = "whether evicted pods would leave room to attach its volumes is not known"


@dataclass(slots=True)
class _Ledger:
    """Follows who gets which volumes in a run."""

    contest: Contest
    volumes: Volumes
    followed: list[int] = field(default_factory=list)  # changes of the run
    placed: set[PodName] = field(default_factory=set)
    gangs: set[int] = field(default_factory=set)  # that ran again with what they left themselves
    doubts: dict[PodName, str] = field(default_factory=dict)  # why an answer may be wrong

    def follow(self, result: Result) -> int | None:
        """Binds the claims of pods as they are placed; gives the first that finds none left."""
        changes: list[int] = result.changes.tolist()
        if changes[: len(self.followed)] != self.followed:
            self.volumes = self.contest.volumes.copied()
            self.followed, self.placed, self.doubts = [], set(), {}
        for change in changes[len(self.followed) :]:
            pod = abs(change) - 1
            known = self.contest.consumers.get(pod_name(result.plan.arrivals, pod))
            if known is not None and not self._take(result, change, known):
                return pod
            self.followed.append(change)
        return None

    def _take(self, result: Result, change: int, known: Consumer) -> bool:
        if change < 0:
            self.volumes.detach(known)
            return True
        name = (known.namespace, known.name)
        cluster, at = result.plan.cluster, int(result.node[change - 1])
        labels = cluster.labels[at] if cluster.labels else {}
        node = cluster.names[at]
        if name not in self.placed:
            rules = self.volumes.tied(known).rules
            if not all(rule.is_met(node, labels) for rule in rules):
                return False
            self.placed.add(name)
            if not self.volumes.bind(known, node, labels):
                self._doubt(ANY_VOLUME)
        return True

    def _doubt(self, why: str) -> None:
        for name in self.contest.consumers.keys() - self.placed:
            self.doubts.setdefault(name, why)

    def narrowed(self, workload: Workload, result: Result, pod: int) -> Workload:
        """Leaves pods that are yet to be placed what volumes there are left.

        Where a pod of a gang finds none, nobody else is told: the gang may not start after all.
        """
        gang = int(result.plan.arrivals.pods["gang"][pod])
        if gang:
            self.gangs.add(gang)
        constraints = list(workload.constraints or (UNCONSTRAINED,) * len(workload))
        for i in range(len(workload)):
            name = pod_name(workload, i)
            known = self.contest.consumers.get(name)
            is_meant = not gang or int(workload.pods["gang"][i]) == gang
            if known is not None and name not in self.placed and is_meant:
                rules = self.volumes.tied(known).rules
                constraints[i] = replace(constraints[i], volumes=rules)
        return replace(workload, constraints=tuple(constraints))

    def unknown(self, result: Result) -> dict[int, str]:
        """Says of which pods the answer may be wrong, and why."""
        found = {}
        for pod in range(len(result.plan.bound), len(result.status)):
            name = pod_name(result.plan.arrivals, pod)
            why = self.doubts.get(name) or self._unplaced(result, pod, name)
            if why:
                found[pod] = why
        return found

    def _unplaced(self, result: Result, pod: int, name: PodName) -> str:
        known = self.contest.consumers.get(name)
        if known is None or result.is_placed[pod]:
            return ""
        if int(result.plan.arrivals.pods["gang"][pod]) in self.gangs:
            return GANG
        claims, before = self.volumes, self.contest.volumes
        given = {each.name: each.selected_node for each in before.waiting(known)}
        if any(each.selected_node != given[each.name] for each in claims.waiting(known)):
            return LATER
        is_full = any(rule.text == FULL for rule in claims.tied(known).rules)
        return UNATTACHED if is_full and result.evictions is not None else ""


def run_contest(
    case: Case, contest: Contest, policy: Policy, listener: Listener
) -> tuple[Result, Mapping[int, str]]:
    """Runs a case, and says of which pods it is not known whether they fit, and why."""
    from podium.experiments.simulate import run_case

    ledger = _Ledger(contest, contest.volumes.copied())
    for _ in range(MOST_RUNS):
        result = run_case(case, policy, listener)
        pod = ledger.follow(result)
        if pod is None:
            return result, ledger.unknown(result)
        case = replace(case, workload=ledger.narrowed(case.workload, result, pod))
    placed = {abs(change) - 1 for change in ledger.followed}
    rest = {*range(len(result.plan.bound), len(result.status))} - placed
    return result, ledger.unknown(result) | dict.fromkeys(rest, TOO_MANY)
