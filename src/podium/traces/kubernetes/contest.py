"""Finds the pods that wait and may take volumes, or room to attach them, from each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.model.workload import Workload
from podium.traces.kubernetes.volumes import Consumer, Volumes

CONTESTED = "may take volumes from each other, and only `podium fit` keeps them apart"

PodName = tuple[str, str]  # namespace and name


def pod_name(workload: Workload, pod: int) -> PodName:
    """Names a pod as its namespace does."""
    namespace = workload.namespaces[pod] if workload.namespaces else ""
    return namespace or "default", workload.names[pod].rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Contest:
    """Holds the pods that compete for volumes, and what there is of them."""

    volumes: Volumes
    consumers: Mapping[PodName, Consumer]


def contest_of(volumes: Volumes, waiting: Sequence[Consumer]) -> Contest | None:
    """Finds the pods that cannot be judged each on its own; often there are none."""
    wanted = [set(_wanted(volumes, pod)) for pod in waiting]
    counts = Counter(each for found in wanted for each in found)
    crowded = _crowded(volumes, waiting)
    consumers = {
        (pod.namespace, pod.name): pod
        for pod, found in zip(waiting, wanted, strict=True)
        if any(counts[each] > 1 for each in found)
        or any(driver in crowded for driver, _ in volumes.attached(pod))
    }
    return Contest(volumes, consumers) if consumers else None


def _wanted(volumes: Volumes, pod: Consumer) -> Iterator[tuple[str, ...]]:
    """Lists the claims that are not bound, and the volumes that may be bound to them."""
    for claim in volumes.waiting(pod):
        yield claim.namespace, claim.name
        if not claim.selected_node:
            yield from ((name,) for name in volumes.serving(claim))


def _crowded(volumes: Volumes, waiting: Sequence[Consumer]) -> set[str]:
    """Names the drivers that cannot attach to some node all that pods wait for."""
    every = {each for pod in waiting for each in volumes.attached(pod)}
    counts = Counter(driver for driver, _ in every)
    found: set[str] = set()
    for node, limits in volumes.limits.items():
        for driver in limits.keys() & counts.keys() - found:
            room = volumes.room(node, driver)
            if room is not None and room < counts[driver]:
                found.add(driver)
    return found
