"""Podium and the real kube-scheduler evict the same pods, in 100 drawn clusters.

There is no kubelet, so that victims stay; whom kube-scheduler chose is seen from their
deletionTimestamp, and the node from `status.nominatedNodeName` of the pod that they make room for.
Among nodes that are equally good kube-scheduler takes any: Podium is asked with each node first.
"""

import json
import time

import numpy as np
import pytest
import yaml

from podium.sim import Rounds, Setup, simulate
from podium.sim.kernel import core, preempter
from podium.traces import load_trace
from support.control_plane import control_plane, find_programs
from support.kube_api import POLL_S, unschedulable
from support.manifests import bound, node, pod

WORLDS = 100
ANSWER_S = 120.0
WORLD = "podium.dev/world"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NEVER = "never"


def priority_class(name, value, policy="PreemptLowerPriority"):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": policy,
    }


CLASSES = [
    *(priority_class(f"p{value}", value) for value in range(5)),
    priority_class(NEVER, 4, "Never"),
]


@pytest.fixture(scope="module")
def plane():
    """Runs a control plane of its own with its scheduler and several priorities."""
    # Compiled first: connections that idle for minutes are closed by the server.
    core()
    preempter()
    with control_plane(find_programs()) as started, started.scheduler():
        started.api.create_all(CLASSES)
        yield started


def draw(seed):
    """Draws nodes, the pods that run there, budgets that protect some of them, and one more pod."""
    rng = np.random.default_rng([37, seed])
    nodes = [node(f"node-{i}", {WORLD: f"world-{seed}"}) for i in range(rng.integers(2, 6))]
    running = []
    for each in nodes:
        free = 4
        while free > 0 and rng.random() < 0.95:
            gpus = int(rng.integers(1, min(3, free) + 1))
            free -= gpus
            running.append(_running(rng, len(running), gpus, each["metadata"]["name"]))
    budgets = [_budget(rng, i, running) for i in range(rng.integers(0, 3))]
    later = np.random.default_rng([38, seed])
    _lose_gpus(later, nodes)
    _disturb(later, running, budgets)
    name = NEVER if rng.random() < 0.05 else f"p{rng.integers(1, 5)}"
    spec = {"nodeSelector": {WORLD: f"world-{seed}"}, "priorityClassName": name}
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "x"}}}
    rule = rng.random()
    if rule < 0.25:
        spec["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    elif rule < 0.45:
        spread = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term}
        spec["topologySpreadConstraints"] = [spread]
    labels = {"app": str(rng.choice(["x", "z"]))}
    asked = {"nvidia.com/gpu": str(rng.integers(1, 5)), "cpu": str(rng.integers(1, 5))}
    return nodes, running, budgets, pod(f"pending-{seed}", labels, asked, **spec)


def _lose_gpus(rng, nodes):
    """Lets nodes list fewer GPUs than they gave to their pods, as a device plugin does."""
    for each in nodes:
        if rng.random() < 0.2:
            left = {"nvidia.com/gpu": str(rng.integers(0, 4))}
            each["status"]["allocatable"] = each["status"]["allocatable"] | left


def _disturb(rng, running, budgets):
    """Lets pods not be ready, and budgets say so: some let pods go, and some cannot be counted."""
    for each in running:
        ready = "False" if rng.random() < 0.25 else "True"
        each["status"]["conditions"] = [{"type": "Ready", "status": ready}]
    for budget in budgets:
        status, kind = budget["status"], rng.random()
        app = budget["spec"]["selector"]["matchLabels"]["app"]
        members = [each for each in running if each["metadata"]["labels"]["app"] == app]
        gone = [each for each in members if rng.random() < 0.2] if kind > 0.6 else []
        healthy = [each for each in members if each not in gone and _is_ready(each)]
        allowed = max(0, len(healthy) - status["desiredHealthy"]) if kind > 0.2 else 0
        names = dict.fromkeys((each["metadata"]["name"] for each in gone), "2026-03-01T10:00:00Z")
        changed = {"currentHealthy": len(healthy), "disruptionsAllowed": allowed}
        budget["status"] = status | changed | ({"disruptedPods": names} if names else {})


def _is_ready(running):
    return running["status"]["conditions"][0]["status"] == "True"


def _running(rng, number, gpus, where):
    labels = {"app": str(rng.choice(["x", "y", "w"]))}
    asked = {"nvidia.com/gpu": str(gpus), "cpu": str(rng.integers(0, 3))}
    name = f"p{rng.integers(0, 4)}"
    made = bound(pod(f"running-{number}", labels, asked, priorityClassName=name), where)
    minute = (7 * number + int(rng.integers(0, 5))) % 60  # no two start at once
    started = f"2026-03-01T{10 + number % 12:02}:{minute:02}:{number:02}Z"
    return {**made, "status": {"phase": "Running", "startTime": started}}


def _budget(rng, number, running):
    app = str(rng.choice(["x", "y"]))
    healthy = sum(each["metadata"]["labels"]["app"] == app for each in running)
    desired = int(rng.integers(0, healthy + 2))
    status = {
        "desiredHealthy": desired,
        "currentHealthy": healthy,
        "expectedPods": healthy,
        "disruptionsAllowed": max(0, healthy - desired),
    }
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{number}", "namespace": "default"},
        "spec": {"minAvailable": desired, "selector": {"matchLabels": {"app": app}}},
        "status": status,
    }


def chosen_by_podium(folder, nodes, others):
    """Gives every choice that Podium makes when one node after the other wins ties."""
    turns = [[*nodes[first:], *nodes[:first]] for first in range(len(nodes))]
    return {choice(folder, listed, others) for listed in turns}


def choice(folder, nodes, others):
    """Gives the node and the victims that Podium chooses; the first nodes win ties."""
    items = {"apiVersion": "v1", "kind": "List", "items": [*CLASSES, *nodes, *others]}
    file = folder / "dump.json"
    file.write_text(json.dumps(items))
    trace = load_trace(str(file))
    protocol = Rounds(max_rounds=1, preemption=True)
    result = simulate(trace.cluster, trace.workload, "first-fit", protocol, Setup(ranks="listed"))
    names, where = result.plan.arrivals.names, result.node[len(result.plan.bound)]
    victims = frozenset(names[victim] for victim in result.evicted)
    return trace.cluster.names[where] if where >= 0 else "", victims


def chosen_by_kubernetes(api, seed, world, expected):
    """Gives the node and the victims that kube-scheduler chooses."""
    nodes, running, budgets, pending = world
    api.create_all(budgets)
    api.create_all([*nodes, *running])
    # Who is bound to the last node, after all else is there, shows that the scheduler saw it.
    last = f"last-{seed}"
    api.create(node(last))
    api.create(pod(last, nodeSelector={HOST: last}))
    api.wait_until_scheduled(pod(last))
    api.create(pending)
    where = _settled(api, pending)
    deadline = time.monotonic() + ANSWER_S
    while True:
        leaving = frozenset(
            name
            for each in api.pods("default")
            if "deletionTimestamp" in each["metadata"]
            and (name := each["metadata"]["name"]).startswith("running")
        )
        # Victims are deleted one by one, after the node is named.
        if (where, leaving) in expected or time.monotonic() > deadline:
            return where, leaving
        time.sleep(POLL_S)


def _settled(api, pending):
    deadline = time.monotonic() + ANSWER_S
    while True:
        seen = api.get(pending)
        where = seen["spec"].get("nodeName") or seen["status"].get("nominatedNodeName")
        message = unschedulable(seen)
        if where or (message and "preemption:" in message):
            return where or ""
        assert time.monotonic() < deadline, f"the scheduler said nothing: {seen['status']}"
        time.sleep(POLL_S)


@pytest.mark.parametrize("seed", range(WORLDS))
def test_the_same_pods_are_evicted(plane, tmp_path, seed):
    world = draw(seed)
    nodes, running, budgets, pending = world
    expected = chosen_by_podium(tmp_path, nodes, [*running, *budgets, pending])
    try:
        found = chosen_by_kubernetes(plane.api, seed, world, expected)
    finally:
        for each in budgets:
            plane.api.delete(each)
        plane.api.clear()
    told = f"kube-scheduler: {found}\nPodium: {expected}\n"
    assert found in expected, told + yaml.safe_dump_all([*nodes, *running, *budgets, pending])


def test_many_worlds_have_victims_and_budgets(tmp_path):
    worlds = [draw(seed) for seed in range(0, WORLDS, 3)]
    found = [
        (len(choice(tmp_path, nodes, [*running, *budgets, pending])[1]), len(budgets))
        for nodes, running, budgets, pending in worlds
    ]
    assert sum(victims > 0 for victims, _ in found) > len(worlds) // 3
    assert sum(victims > 1 and budgets > 0 for victims, budgets in found) > len(worlds) // 10
