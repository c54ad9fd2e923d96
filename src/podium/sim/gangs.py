"""Works out the gangs of a run: who belongs together, how many must fit, and where."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.model import Cluster, Workload
from podium.sim.bound import Bound

LEVELS = {"": 0, "rack": 1, "block": 2, "zone": 3}

Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Gangs:
    """Numbers the gangs of a run from 1; 0 stands for none."""

    gang_of: Numbers  # (num_pods,)
    minimum: Numbers  # (num_gangs + 1,) pods that must run at once
    level: Numbers  # (num_gangs + 1,) 0 anywhere, else all in one domain of that level
    home: Numbers  # (num_gangs + 1,) domain in which members run already, -1 = none
    started: Numbers  # (num_gangs + 1,) members that run already
    priority: npt.NDArray[np.int64]  # (num_gangs,)
    domains: Numbers  # (3, num_nodes): rack, block and zone, -1 = none
    order: npt.NDArray[np.int64]  # (num_pods,) which pod of the trace each arrival is

    @property
    def is_any(self) -> bool:
        """Tells whether there are gangs at all."""
        return len(self.minimum) > 1


def no_gangs(cluster: Cluster) -> Gangs:
    """Describes a run in which every pod starts on its own."""
    none = np.zeros(1, np.int32)
    nowhere = np.full((3, len(cluster)), -1, np.int32)
    nobody = np.zeros(0, np.int64)
    return Gangs(none, none, none, none - 1, none, nobody, nowhere, nobody)


def gangs_of(
    cluster: Cluster, arrivals: Workload, order: npt.NDArray[np.int64], bound: Bound
) -> Gangs:
    """Numbers the gangs in order of first appearance.

    `order` says which pod of the trace each arrival is: where one comes again, as inflation lets
    it, it belongs to another copy of its gang.
    """
    if not arrivals.gangs or not arrivals.gang_rules:
        return no_gangs(cluster)
    gang_of, templates = _numbered(arrivals.pods["gang"], order)
    if not templates:
        return no_gangs(cluster)
    rules = [arrivals.gang_rules[template - 1] for template in templates]
    count = len(rules) + 1
    domains = _domains(cluster)
    level = np.array([0, *(LEVELS[rule.domain] for rule in rules)], np.int32)
    priority = np.zeros(count, np.int64)
    # The first pod that waits stands for its gang in the queue.
    for pod in range(len(arrivals) - 1, len(bound) - 1, -1):
        priority[gang_of[pod]] = arrivals.pods["priority"][pod]
    return Gangs(
        gang_of=gang_of,
        minimum=np.array([0, *(rule.minimum for rule in rules)], np.int32),
        level=level,
        home=_homes(gang_of, level, domains, bound),
        started=np.bincount(gang_of[: len(bound)], minlength=count).astype(np.int32),
        priority=priority[1:],
        domains=domains,
        order=order,
    )


def _numbered(
    names: npt.NDArray[np.int32], order: npt.NDArray[np.int64]
) -> tuple[Numbers, list[int]]:
    number: dict[int, int] = {}  # of the copy that is open, by gang of the trace
    seen: dict[int, set[int]] = {}
    templates: list[int] = []
    found = np.zeros(len(names), np.int32)
    for pod, (name, index) in enumerate(zip(names.tolist(), order.tolist(), strict=True)):
        if name == 0:
            continue
        if name not in number or index in seen[name]:
            templates.append(name)
            number[name], seen[name] = len(templates), set()
        seen[name].add(index)
        found[pod] = number[name]
    return found, templates


def _domains(cluster: Cluster) -> Numbers:
    rows = [cluster.nodes["rack"].astype(np.int32)]
    for names in (cluster.blocks, cluster.zones):
        number = {name: i for i, name in enumerate(dict.fromkeys(n for n in names if n))}
        listed = names or ("",) * len(cluster)
        rows.append(np.array([number.get(name, -1) for name in listed], np.int32))
    return np.stack(rows)


def _homes(gang_of: Numbers, level: Numbers, domains: Numbers, bound: Bound) -> Numbers:
    home = np.full(len(level), -1, np.int32)
    for pod, node in enumerate(bound.node.tolist()):
        gang = gang_of[pod]
        if level[gang] and home[gang] < 0:
            home[gang] = domains[level[gang] - 1, node]
    return home
