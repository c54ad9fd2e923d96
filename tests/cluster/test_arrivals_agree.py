"""Pods that arrive one by one go where a simulation places them, by any policy that ships.

Nobody knows the pods that are still to come: not Podium beside a real kube-scheduler, and not a
simulation whose demand is what was seen. Left out are policies that hold pods, for which a score is
not enough, and those that draw lots among equal nodes.

kube-scheduler asks nobody about a pod that fits one node. Podium hears of it when it is bound, and
here the next pod waits for that.
"""

import json
import random

import pytest

from podium.policies import catalogue, load
from podium.sim.engine import Setup, simulate
from podium.sim.protocols import Rounds
from podium.traces import load_trace
from support.extended import configuration, figure, podium, wait_until
from support.kube_api import unschedulable
from support.kubelike import gpu_node, gpu_pod

PODS = 150
LONG_S = 30
TYPES = {"A100": (8, 14), "V100": (4, 14), "T4": (2, 20), "L4": (1, 16)}
"""GPUs of a node and nodes, by model: 224 GPUs."""

SIZES = {1: 83, 2: 40, 4: 12, 8: 3, 0: 12}
PRODUCT = "nvidia.com/gpu.product"
BY_TABLE = ("fgd", "mlp")
DAILY = (*BY_TABLE, "usable-gpu")
RECENT = "podium_extender_recent_pods"


def shipped():
    """Names the policies whose scores decide alone; those with tables are tried every day."""
    names = [each.name for each in catalogue() if not each.may_hold]
    decisive = [name for name in names if getattr(load(name), "ties", "rank") == "rank"]
    deep = {False: (), True: (pytest.mark.deep,)}
    return [pytest.param(name, id=name, marks=deep[name not in DAILY]) for name in decisive]


def cluster_of_types():
    """Writes 64 nodes of four types, which differ in GPUs, by name: so ties go, here and there."""
    return [
        gpu_node(f"{model.lower()}-{number:02}", gpus, model)
        for model, (gpus, count) in sorted(TYPES.items())
        for number in range(count)
    ]


def arriving_pods(seed):
    """Writes pods of several sizes in any order; one in four names the models it takes."""
    rng = random.Random(seed)
    sizes = [size for size, count in SIZES.items() for _ in range(count)]
    rng.shuffle(sizes)
    return [arriving_pod(rng, f"pod-{number:03}", size) for number, size in enumerate(sizes)]


def arriving_pod(rng, name, gpus):
    spec = {}
    able = [model for model, (most, _) in TYPES.items() if most >= gpus]
    if gpus and rng.random() < 0.25:
        spec["nodeSelector"] = {PRODUCT: rng.choice(able)}
    made = gpu_pod(name, gpus, **spec)
    requests = made["spec"]["containers"][0]["resources"]["requests"]
    requests["cpu"] = rng.choice(("200m", "500m", "1")) if gpus < 8 else "2"
    return made


def simulated(folder, policy, objects, demand="seen"):
    """Says where a simulation places pods; by default it knows only those that came."""
    file = folder / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    trace = load_trace(str(file))
    setup = Setup(ranks="listed", demand=demand)
    result = simulate(trace.cluster, trace.workload, policy, Rounds(max_rounds=1), setup)
    return {
        name: trace.cluster.names[where] if where >= 0 else ""
        for name, where in zip(result.plan.arrivals.names, result.node.tolist(), strict=True)
    }


def arrive(api, process, pod, placed):
    """Lets a pod arrive, and waits until Podium knows where it went; gives the node."""
    api.create(pod)
    wait_until(lambda: is_decided(api.get(pod)))
    node = api.get(pod)["spec"].get("nodeName", "")
    if node:
        wait_until(lambda: figure(process, RECENT) == placed + 1)
    return node


def is_decided(pod):
    """Tells whether kube-scheduler has said where a pod goes, or why nowhere."""
    return bool(pod["spec"].get("nodeName")) or unschedulable(pod) is not None


@pytest.mark.parametrize("policy", shipped())
def test_pods_that_arrive_one_by_one_go_where_a_simulation_places_them(
    plane, api, tmp_path, policy
):
    nodes, pods = cluster_of_types(), arriving_pods(seed=7)
    expected = simulated(tmp_path, policy, [*nodes, *pods])
    api.create_all(nodes)
    settings = {"policy": policy, "ties": "order", "assume_s": LONG_S}
    with (
        podium(plane, tmp_path, **settings) as process,
        plane.scheduler(configuration(process.url)),
    ):
        found = {}
        for each in pods:
            placed = sum(map(bool, found.values()))
            found[each["metadata"]["name"]] = arrive(api, process, each, placed)
    assert 0.8 * PODS < sum(map(bool, expected.values())) < PODS
    others = {name: (at, found[name]) for name, at in expected.items() if found[name] != at}
    assert len(others) <= 0.01 * PODS, others


@pytest.mark.parametrize("policy", BY_TABLE)
def test_a_table_that_knows_the_future_places_other_pods(tmp_path, policy):
    """Shows that the pods above are such that a window matters."""
    objects = [*cluster_of_types(), *arriving_pods(seed=7)]
    seen = simulated(tmp_path, policy, objects)
    known = simulated(tmp_path, policy, objects, demand="trace")
    assert sum(seen[name] != known[name] for name in seen) > 0.1 * PODS
