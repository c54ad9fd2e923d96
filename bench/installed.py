"""Measures what Podium costs as the chart installs it: memory, batching, GPUs given out twice.

    KUBEBUILDER_ASSETS=FOLDER python bench/installed.py [memory] [batching] [double]

memory: what the process holds at its start, and with 1,500 nodes and 10,000 pods.
batching: pods a second that take whole nodes, with kube-scheduler asking Podium and without; any
extender switches its opportunistic batching off.
double: how many of 100 nodes two kube-schedulers give out twice, where each has half of 90 pods
that take a whole node: the cluster's own beside Podium's, and beside another like itself.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from extender_throughput import SCHEDULED, Figures, limited, nodes
from faults import INSTALLED, environment

from podium.kube.manifests import scheduler_configuration
from support.control_plane import ControlPlane, ProgramsMissingError, control_plane, find_programs
from support.extended import figure, wait_until, wait_until_decided
from support.kubelike import gpu_pod
from support.manifests import bound
from support.service import served

GPUS = 8
SIZE = (1500, 10_000)
WHOLE_PODS = 300
SHARED_NODES, SHARED_PODS = 100, 90
ROUNDS = 5
OTHER = "podium-scheduler"
QPS = 200
"""As the chart limits kube-scheduler."""

POLL_S = 0.02
MISSING = 3
NUMBERS = itertools.count()


@contextmanager
def podium(plane: ControlPlane) -> Iterator[Any]:
    """Runs Podium as it is installed."""
    given = {**INSTALLED, "kubeconfig": plane.kubeconfig}
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder), **environment(given)) as process,
    ):
        yield process


def whole_pods(count: int, scheduler: str = "default-scheduler") -> list[dict[str, Any]]:
    """Writes pods that take all GPUs of a node."""
    names = (f"pod-{next(NUMBERS):06}" for _ in range(count))
    return [gpu_pod(name, GPUS, schedulerName=scheduler) for name in names]


def resident_mb(process: Any) -> float:
    """Gives the memory that a process holds."""
    pages = int(Path(f"/proc/{process.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory(plane: ControlPlane) -> None:
    """Prints the memory of Podium on an empty and on a filled cluster."""
    size, count = SIZE
    with podium(plane) as process:
        print(f"memory, at the start: {resident_mb(process):.0f} MB")
        plane.api.create_all(nodes(size))
        runs = (bound(gpu_pod(f"runs-{i:05}"), f"node-{i % size:05}") for i in range(count))
        plane.api.create_all(runs)
        wait_until(lambda: figure(process, "podium_extender_pods") == count)
        print(f"memory, with {size:,} nodes and {count:,} pods: {resident_mb(process):.0f} MB")
    with podium(plane) as process:
        wait_until(lambda: figure(process, "podium_extender_pods") == count)
        print(f"memory, started on that cluster: {resident_mb(process):.0f} MB", flush=True)


def rate(plane: ControlPlane, configuration: dict[str, Any]) -> float:
    """Lets kube-scheduler place pods that wait for it; gives pods a second of the middle ones."""
    plane.api.create_all(whole_pods(WHOLE_PODS))
    seen: list[tuple[float, float]] = []
    with plane.scheduler({**configuration, **limited(plane, QPS)}) as port:
        figures = Figures(plane, port)
        while not seen or seen[-1][1] < WHOLE_PODS:
            seen.append((time.monotonic(), figures.read().get(SCHEDULED, 0.0)))
            time.sleep(POLL_S)
    clear_pods(plane)
    inside = [each for each in seen if 0.1 * WHOLE_PODS <= each[1] <= 0.9 * WHOLE_PODS]
    (first_s, first), (last_s, last) = inside[0], inside[-1]
    return (last - first) / (last_s - first_s)


def clear_pods(plane: ControlPlane) -> None:
    """Deletes all pods."""
    plane.api.ask("DELETE", "/api/v1/namespaces/default/pods", {"gracePeriodSeconds": 0})
    wait_until(lambda: not plane.api.pods())


def batching(plane: ControlPlane) -> None:
    """Prints how fast whole-node pods are placed, in turns."""
    plane.api.create_all(nodes(SIZE[0]))
    rates: dict[str, list[float]] = {"without": [], "with": []}
    with podium(plane) as process:
        for _ in range(ROUNDS):
            rates["without"].append(rate(plane, scheduler_configuration()))
            rates["with"].append(rate(plane, scheduler_configuration(process.url)))
            wait_until(lambda: figure(process, "podium_extender_pods") == 0)
    for kind, found in rates.items():
        told = f"median {statistics.median(found):.0f}, fastest {max(found):.0f}"
        print(f"batching, {kind} Podium: {told} whole-node pods a second", flush=True)


def twice(plane: ControlPlane, other: dict[str, Any]) -> int:
    """Lets the cluster's kube-scheduler and another place pods; counts nodes given out twice."""
    half = SHARED_PODS // 2
    with plane.scheduler(), plane.scheduler(other):
        pairs = zip(whole_pods(half), whole_pods(half, OTHER), strict=True)
        made = [each for pair in pairs for each in pair]
        plane.api.create_all(made)
        found = wait_until_decided(plane.api, made)
    clear_pods(plane)
    return sum(count > 1 for count in Counter(found.values()).values())


def double(plane: ControlPlane) -> None:
    """Prints how many nodes are given out twice, in every round."""
    plane.api.create_all(nodes(SHARED_NODES))
    stock = {"profiles": [{"schedulerName": OTHER}]}
    counts: dict[str, list[int]] = {"another of its own kind": [], "that of Podium": []}
    with podium(plane) as process:
        installed = scheduler_configuration(process.url, OTHER)
        for _ in range(ROUNDS):
            counts["another of its own kind"].append(twice(plane, stock))
            counts["that of Podium"].append(twice(plane, installed))
    for kind, found in counts.items():
        told = ", ".join(map(str, sorted(found)))
        print(f"double, kube-scheduler beside {kind}: {told} of {SHARED_NODES} nodes", flush=True)


MEASURES = {"memory": memory, "batching": batching, "double": double}


def main() -> int:
    """Measures what is asked for, each on a control plane of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=" ".join(MEASURES))
    given = parser.parse_args()
    for name in given.measures or MEASURES:
        try:
            with control_plane(find_programs()) as plane:
                MEASURES[name](plane)
        except ProgramsMissingError as error:
            print(f"error: {error}", file=sys.stderr)
            return MISSING
    print(f"load {os.getloadavg()[0]:.1f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
