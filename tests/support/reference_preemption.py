"""Chooses victims slowly and obviously, from the documentation and source of kube-scheduler.

On every node all pods of lower priority are taken away; if the pod then fits, as many as possible
come back, first those that a PodDisruptionBudget protects, then the others, the more important
before the less important. The rest are victims. Nodes are compared by budgets violated, the
highest priority of a victim, the sum of priorities, the number of victims, and the earliest start
among the victims of highest priority, which should be late; then by rank.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Running:
    """Says where a pod runs, and since when."""

    index: int
    pod: object
    rank: int
    slots: list
    since_s: float


def importance(running):
    """Sorts the most important first."""
    return -running.pod.priority, running.since_s, running.index


def find_victims(world, pod, running, budgets):
    """Gives (rank, victims) of the best node, or None; budgets map names to pods and allowance."""
    found = []
    for rank, node in enumerate(world.nodes):
        lower = [r for r in running if r.rank == rank and r.pod.priority < pod.priority]
        if not lower:
            continue
        lower.sort(key=importance)
        chosen = _victims_on(world, pod, node, lower, budgets)
        if chosen is not None:
            victims, violations = chosen
            found.append((_cost(victims, violations), rank, victims))
    if not found:
        return None
    _, rank, victims = min(found, key=lambda each: each[:2])
    return rank, victims


def _victims_on(world, pod, node, lower, budgets):
    for each in lower:
        node.stop(each.pod, each.slots)
    if not world.fits(pod, node):
        for each in lower:
            node.start(each.pod, each.slots)
        return None
    protected = _protected(lower, budgets)
    victims, violations = [], 0
    first = [each for each in lower if each.index in protected]
    others = [each for each in lower if each.index not in protected]
    for each in first + others:
        node.start(each.pod, each.slots)
        if not world.fits(pod, node):
            node.stop(each.pod, each.slots)
            victims.append(each)
            violations += each.index in protected
    for each in victims:
        node.start(each.pod, each.slots)
    return sorted(victims, key=importance), violations


def _protected(lower, budgets):
    left = {name: max(0, allowed) for name, (_, allowed) in budgets.items()}
    protected = set()
    for each in lower:
        for name, (members, _) in budgets.items():
            if each.index in members:
                left[name] -= 1
                if left[name] < 0:
                    protected.add(each.index)
    return protected


def _cost(victims, violations):
    highest = max(each.pod.priority for each in victims)
    earliest = min(each.since_s for each in victims if each.pod.priority == highest)
    total = sum(each.pod.priority + 2**31 for each in victims)
    return violations, highest, total, len(victims), -earliest
