"""On 100 nodes kube-scheduler places the pods of OpenB as the simulator says, and gains as much.

`pytest tests/cluster/test_extender_at_size.py -s` prints the tables of docs/extender.md. Pods are
scheduled in the order of their numbers, by priorities: the simulator takes them in that order.
"""

import copy
import json
import random
import sys
import time
from collections import Counter
from fractions import Fraction
from math import ceil

import pytest

from podium.sim.engine import Setup, simulate
from podium.sim.protocols import Rounds
from podium.traces import load_trace
from support.binary import PODIUM, run
from support.extended import configuration, difference, figure, podium, wait_until
from support.kube_api import unschedulable

NODES, SEED = 100, 2
PODS, MANY = 600, 900
"""600 pods ask for 85 % of the GPUs, 900 for 128 %: these fill the cluster."""

SETTLED_S = 600.0
LONG_S = 60
"""A machine that is busy with other things may take long to bind a pod."""

COUNT, MILLI = "alibabacloud.com/gpu-count", "alibabacloud.com/gpu-milli"
INDEX = "alibabacloud.com/gpu-index"
DEVICE, REPLICAS = "nvidia.com/gpu", 2
COUNTED = {"filterVerb": "filter", "bindVerb": "bind", "ignorable": False}
BINDS = [f'podium_extender_binds_total{{node="{node}"}}' for node in ("best", "other")]
INDIFFERENT = '''"""Prefers no node."""


def score(pod, node):
    """Scores all nodes alike."""
    return 0
'''


# The pods of OpenB, as they are written in a cluster.


def priority_class(number):
    """Writes a class by which pods are scheduled in the order of their numbers."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": f"place-{number:04}"},
        "value": 10_000 - number,
        "preemptionPolicy": "Never",
    }


CLASSES = [priority_class(number) for number in range(MANY)]


@pytest.fixture(scope="module", autouse=True)
def classes(plane):
    """Makes classes of priorities for so many pods."""
    plane.api.create_all(CLASSES)
    yield
    for each in CLASSES:
        plane.api.delete(each)


@pytest.fixture(scope="module")
def openb(tmp_path_factory):
    """Draws nodes and pods from the embedded profile, with shares of GPUs as annotations."""
    file = tmp_path_factory.mktemp("openb") / "openb.json"
    sizes = [f"--nodes={NODES}", f"--pods={MANY}", f"--seed={SEED}"]
    assert run([*PODIUM, "traces", "generate", file, *sizes], file.parent).returncode == 0
    items = json.loads(file.read_text())["items"]
    nodes = [each for each in items if each["kind"] == "Node"]
    pods = [each for each in items if each["kind"] == "Pod"]
    for number, each in enumerate(pods):
        each["spec"]["priorityClassName"] = f"place-{number:04}"
        kept = {name: each["metadata"]["annotations"].get(name) for name in (COUNT, MILLI)}
        each["metadata"]["annotations"] = {key: text for key, text in kept.items() if text}
    return nodes, pods


def as_devices(nodes, pods):
    """Writes the same as halves of GPUs that a device plugin lists, and kube-scheduler counts."""
    nodes, pods = copy.deepcopy(nodes), copy.deepcopy(pods)
    for each in nodes:
        gpus = int(each["status"]["allocatable"].get(COUNT, "0"))
        labels = {"gpu.product": "T4-SHARED", "gpu.count": str(gpus), "gpu.replicas": str(REPLICAS)}
        each["metadata"]["labels"] = {f"nvidia.com/{key}": text for key, text in labels.items()}
        for part in ("allocatable", "capacity"):
            kept = {key: text for key, text in each["status"][part].items() if key[:3] != "ali"}
            each["status"][part] = kept | {DEVICE: str(gpus * REPLICAS)}
    for each in pods:
        noted = each["metadata"].pop("annotations")
        each["metadata"]["annotations"] = {}
        if noted:
            devices = int(noted[COUNT]) * ceil(Fraction(int(noted[MILLI]) * REPLICAS, 1000))
            for part in each["spec"]["containers"][0]["resources"].values():
                part[DEVICE] = str(devices)
    return nodes, pods


def gpus_of(pod):
    """Gives the GPUs that a pod asks for, in one way or the other."""
    noted = pod["metadata"].get("annotations", {})
    devices = pod["spec"]["containers"][0]["resources"].get("requests", {}).get(DEVICE, "0")
    shared = int(noted.get(COUNT, "0")) * Fraction(int(noted.get(MILLI, "0")), 1000)
    return shared + Fraction(int(devices), REPLICAS)


def allocation(places, nodes, pods):
    """Gives the percentage of the cluster's GPUs that placed pods hold."""
    has = sum(
        Fraction(status.get(COUNT, "0")) + Fraction(int(status.get(DEVICE, "0")), REPLICAS)
        for status in (each["status"]["allocatable"] for each in nodes)
    )
    held = sum(gpus_of(each) for each in pods if each["metadata"]["name"] in places)
    return float(100 * held / has)


def overbooked(pods):
    """Names the GPUs of which more is given out than there is, as annotations tell."""
    used = Counter()
    for each in pods:
        noted = each["metadata"].get("annotations", {})
        if each["spec"].get("nodeName") and COUNT in noted:
            slots = noted[INDEX].split("-")
            assert len(slots) == int(noted[COUNT])
            used.update({(each["spec"]["nodeName"], slot): int(noted[MILLI]) for slot in slots})
    return {gpu: milli for gpu, milli in used.items() if milli > 1000}


# Where pods go, in a simulation and in a cluster.


def simulated(folder, policy, nodes, pods):
    """Says where Podium's simulator places pods; ties go by the name of nodes there, too."""
    file = folder / "dump.json"
    items = [*CLASSES, *nodes, *pods]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    trace = load_trace(str(file))
    setup = Setup(ranks="listed", demand="seen")
    result = simulate(trace.cluster, trace.workload, policy, Rounds(max_rounds=1), setup)
    names, at = result.plan.arrivals.names, result.node.tolist()
    return {
        name: trace.cluster.names[where]
        for name, where in zip(names, at, strict=True)
        if where >= 0
    }


def is_decided(pod):
    """Tells whether kube-scheduler has said where a pod goes, or why nowhere."""
    return bool(pod["spec"].get("nodeName")) or unschedulable(pod) is not None


def settled(api, pods):
    """Waits until kube-scheduler has decided about all pods; gives the nodes of those bound."""
    deadline = time.monotonic() + SETTLED_S
    while True:
        seen = {each["metadata"]["name"]: each for each in api.pods()}
        open_ = [name for name, each in seen.items() if not is_decided(each)]
        if len(seen) == len(pods) and not open_:
            return {
                name: each["spec"]["nodeName"]
                for name, each in seen.items()
                if each["spec"].get("nodeName")
            }
        assert time.monotonic() < deadline, f"{len(open_)} of {len(pods)} pods are undecided"
        time.sleep(0.5)


def placed(plane, folder, policy, world, verbs):
    """Lets kube-scheduler place pods with Podium as its extender."""
    nodes, pods = world
    plane.api.create_all(nodes)
    plane.api.create_all(pods)
    given = {"policy": policy, "assume_s": LONG_S, "filter": bool(verbs), "bind": bool(verbs)}
    given["ties"] = "order"
    with (
        podium(plane, folder, **given) as process,
        plane.scheduler(configuration(process.url, **verbs)),
    ):
        return settled(plane.api, pods)


def placed_by_default(plane, folder, world):
    """Lets kube-scheduler place pods as it likes, while Podium only counts parts of GPUs.

    Podium does not know where other plugins send a pod until the watch shows it. So pods come one
    by one.
    """
    nodes, pods = world
    policy = folder / "indifferent.py"
    policy.write_text(INDIFFERENT)
    plane.api.create_all(nodes)
    given = {"filter": True, "bind": True, "ties": "equal", "assume_s": 0.01}
    with (
        podium(plane, folder, policy=policy, **given) as process,
        plane.scheduler(configuration(process.url, **COUNTED)),
    ):
        bound = 0
        for each in pods:
            plane.api.create(each)
            wait_until(lambda: is_decided(plane.api.get(each)))  # noqa: B023
            bound += "nodeName" in plane.api.get(each)["spec"]
            wait_until(lambda: sum(figure(process, line) for line in BINDS) >= bound)  # noqa: B023
        return settled(plane.api, pods)


def placed_alone(plane, _, world):
    """Lets kube-scheduler place pods without Podium."""
    nodes, pods = world
    plane.api.create_all(nodes)
    plane.api.create_all(pods)
    with plane.scheduler({"percentageOfNodesToScore": 100}):
        return settled(plane.api, pods)


@pytest.mark.parametrize("policy", ["first-fit", "fgd", "fed-gpu"])
def test_pods_of_openb_go_where_the_simulator_sends_them(plane, api, openb, tmp_path, policy):  # noqa: ARG001
    world = openb[0], openb[1][:PODS]
    expected = simulated(tmp_path, policy, *world)
    found = placed(plane, tmp_path, policy, world, COUNTED)
    elsewhere = difference(expected, found)
    tell(f"{policy}: {PODS - len(elsewhere)} of {PODS} pods are where the simulator puts them")
    assert len(elsewhere) <= 0.01 * PODS, elsewhere


@pytest.mark.parametrize("form", ["annotations", "devices"])
def test_a_filled_cluster_gains_what_the_simulator_promises(plane, api, openb, tmp_path, form):
    """With annotations Podium counts and binds; devices are counted by kube-scheduler itself."""
    world = openb if form == "annotations" else as_devices(*openb)
    promised = {
        "fed-gpu": [allocation(simulated(tmp_path, "fed-gpu", *world), *world)],
        "kube-default": [
            allocation(simulated(tmp_path, "kube-default", nodes, world[1]), *world)
            for nodes in orders(world[0])
        ],
    }
    verbs = COUNTED if form == "annotations" else {}
    found = {"fed-gpu": allocation(placed(plane, tmp_path, "fed-gpu", world, verbs), *world)}
    assert overbooked(api.pods()) == {}
    api.clear()
    by_default = placed_by_default if form == "annotations" else placed_alone
    found["kube-default"] = allocation(by_default(plane, tmp_path, world), *world)
    assert overbooked(api.pods()) == {}
    for policy, simulations in promised.items():
        least, most = min(simulations), max(simulations)
        tell(f"{form} | {policy} | {least:.2f} to {most:.2f} | {found[policy]:.2f}")
    gain = found["fed-gpu"] - found["kube-default"]
    gains = [promised["fed-gpu"][0] - each for each in promised["kube-default"]]
    assert min(gains) - 1.0 <= gain <= max(gains) + 1.0, (promised, found)


def orders(nodes):
    """Lists nodes in several orders: among equal ones kube-scheduler by default takes any."""
    return [nodes, *(random.Random(seed).sample(nodes, len(nodes)) for seed in range(1, 5))]


def tell(line):
    """Writes a line where somebody looks on."""
    sys.stdout.write(f"\n{line}\n")
