"""Podium and the real kube-scheduler start the same gangs, in 20 drawn clusters.

The pods of a gang are alike, so that it does not matter which node the first of them takes.
"""

import json
import time

import numpy as np
import pytest
import yaml

from podium.sim.engine import simulate
from podium.sim.protocols import Rounds
from podium.traces import load_trace
from support.control_plane import GANGS, control_plane, find_programs
from support.kube_api import POLL_S, unschedulable
from support.manifests import bound, node, pod

WORLDS = 20
ANSWER_S = 120.0
WORLD = "podium.dev/world"
HOST = "kubernetes.io/hostname"


@pytest.fixture(scope="module")
def plane():
    """Runs a control plane of its own, with gangs switched on, and its scheduler."""
    with control_plane(find_programs(), GANGS) as started, started.scheduler():
        yield started


def draw(seed):
    """Draws nodes, pods that run, a PodGroup and its pods."""
    rng = np.random.default_rng([36, seed])
    nodes = [node(f"node-{i}", {WORLD: f"world-{seed}"}) for i in range(rng.integers(1, 5))]
    for each in nodes:
        each["spec"]["unschedulable"] = bool(rng.random() < 0.15)
    taken = [
        bound(pod(f"bound-{i}", requests={"nvidia.com/gpu": str(rng.integers(1, 3))}), f"node-{i}")
        for i in range(len(nodes))
        if rng.random() < 0.5
    ]
    # A controller would have to take the finalizer off one of the same name.
    name, size = f"gang-{seed}", int(rng.integers(2, 7))
    least = int(rng.integers(2, size + 1))
    spec = {"nodeSelector": {WORLD: f"world-{seed}"}, "schedulingGroup": {"podGroupName": name}}
    if rng.random() < 0.3:
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "gang"}}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        spec["affinity"] = {"podAntiAffinity": required}
    requests = {"nvidia.com/gpu": str(rng.integers(1, 4))}
    members = [pod(f"member-{i}", {"app": "gang"}, requests, **spec) for i in range(size)]
    return [*nodes, *taken], group(name, least), members


def group(name, least):
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }


def scheduled(api, seed, cluster, gang, members):
    """Counts the pods of a gang that kube-scheduler binds."""
    api.create_all(cluster)
    api.create(gang)
    # Who is bound to the last node, after all else is there, shows that the scheduler saw it.
    last = f"last-{seed}"
    api.create(node(last))
    api.create(pod(last, nodeSelector={HOST: last}))
    api.wait_until_scheduled(pod(last))
    api.create_all(members)
    deadline = time.monotonic() + ANSWER_S
    while True:
        seen = [api.get(each) for each in members]
        if all(each["spec"].get("nodeName") or unschedulable(each) for each in seen):
            return sum("nodeName" in each["spec"] for each in seen)
        assert time.monotonic() < deadline, "the scheduler said nothing of some pods"
        time.sleep(POLL_S)


def placed(file):
    """Counts the pods that wait and that Podium places."""
    trace = load_trace(str(file))
    result = simulate(trace.cluster, trace.workload, "first-fit", Rounds())
    names = result.plan.arrivals.names
    return sum(
        name.startswith("member") and where >= 0
        for name, where in zip(names, result.node.tolist(), strict=True)
    )


@pytest.mark.parametrize("seed", range(WORLDS))
def test_the_same_gangs_start(plane, tmp_path, seed):
    cluster, gang, members = draw(seed)
    items = [*cluster, gang, *members]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    try:
        found = scheduled(plane.api, seed, cluster, gang, members)
    finally:
        plane.api.clear()
    assert placed(file) == found, yaml.safe_dump_all(items)
