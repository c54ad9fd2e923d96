"""With Podium on, 300 pods keep every constraint, and the same of them run as without it.

One policy stacks pods and one spreads them, at a weight that outvotes every plugin. What must not
happen is prevented by the filters of kube-scheduler, which Podium leaves alone.
"""

import copy
import os

import pytest

from support.control_plane import control_plane, find_programs
from support.extended import configuration, figure, podium, wait_until
from support.kube_api import unschedulable
from support.kubelike import gpu_node, gpu_pod
from support.violations import REQUIRED, violations

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ZONES = ("a", "b", "c")
POOLS = {"general": 21, "ssd": 6, "tainted": 6, "full": 4, "ports": 6}
BEST = 'podium_extender_binds_total{node="best"}'
OTHER = 'podium_extender_binds_total{node="other"}'


# The cluster and its pods.


def nodes():
    """Writes pools of nodes over three zones; one pool is tainted, one merely disliked."""
    made = []
    for pool, count in POOLS.items():
        for i in range(count):
            labels = {"pool": pool, ZONE: ZONES[i % 3]}
            made.append(gpu_node(f"{pool}-{i:02}", 4, labels=labels))
            if pool == "tainted":
                made[-1]["spec"]["taints"] = [taint("NoSchedule")]
            if pool == "general" and i % 7 == 6:
                made[-1]["spec"]["taints"] = [taint("PreferNoSchedule")]
    return made


def taint(effect):
    return {"key": "dedicated", "value": "team", "effect": effect}


def numbered(name, count, gpus=0, labels=None, cpu="20m", **spec):
    """Writes pods that ask for the same: little, unless they are to fit nowhere."""
    made = [gpu_pod(f"{name}-{i:02}", gpus, **copy.deepcopy(spec)) for i in range(count)]
    for each in made:
        each["metadata"]["labels"] = labels or {}
        resources = each["spec"]["containers"][0]["resources"]
        resources["requests"] = resources["limits"] = {
            **resources["requests"], "cpu": cpu, "memory": "64Mi",
        }  # fmt: skip
    return made


def in_pool(name):
    return {"nodeSelector": {"pool": name}}


def near(kind, app, key):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {REQUIRED: [term]}}}


def in_zones(*names):
    rules = [
        {"key": ZONE, "operator": "In", "values": [*names]},
        {"key": "pool", "operator": "NotIn", "values": ["ssd", "full", "ports"]},
    ]
    return {
        "affinity": {
            "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": rules}]}}
        }
    }


def spread(app, key):
    rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [rule | {"labelSelector": {"matchLabels": {"app": app}}}]}


GENERAL = in_pool("general")
TOLERATION = {"key": "dedicated", "operator": "Equal", "value": "team", "effect": "NoSchedule"}
GATES = {"schedulingGates": [{"name": "example.com/quota"}]}


def filling():
    """Writes 16 pods of a low priority that fill a pool, all of which have to go."""
    return numbered("victim", 16, 1, **in_pool("full"), priorityClassName="low")


def pods():
    """Writes 284 pods more: which of them can run does not depend on where the others went."""
    ports = numbered("port", 8, **in_pool("ports"))
    for number, each in enumerate(ports):
        each["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
        each["spec"]["priorityClassName"] = "normal" if number < 6 else "last"
    apart = near("podAntiAffinity", "apart", HOST)
    volumes = numbered("volume", 12, **GENERAL)
    for number, each in enumerate(volumes):
        claim = {"claimName": f"claim-{number % 3}"}
        each["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": claim}]
    return [
        *numbered("selector", 24, 1, **in_pool("ssd")),
        *numbered("zone", 24, 1, **in_zones("a", "b"), tolerations=[]),
        *numbered("together", 12, labels={"app": "together"}, **GENERAL,
                  **near("podAffinity", "together", ZONE)),
        *numbered("follower", 10, **GENERAL, **near("podAffinity", "together", ZONE)),
        *numbered("apart", 21, labels={"app": "apart"}, **GENERAL, **apart,
                  priorityClassName="normal"),
        *numbered("crowded", 3, labels={"app": "apart"}, **GENERAL, **apart,
                  priorityClassName="last"),
        *numbered("tolerant", 20, 1, **in_pool("tainted"), tolerations=[TOLERATION]),
        *numbered("intolerant", 6, **in_pool("tainted")),
        *numbered("spread", 30, labels={"app": "spread"}, **GENERAL, **spread("spread", ZONE)),
        *numbered("hosts", 42, labels={"app": "hosts"}, **GENERAL, **spread("hosts", HOST),
                  priorityClassName="normal"),
        *numbered("urgent", 4, 4, **in_pool("full"), priorityClassName="high"),
        *numbered("large", 6, cpu="64"), *numbered("many", 4, 8),
        *numbered("gated", 10, **GENERAL, **GATES), *numbered("late", 10, **GENERAL, **GATES),
        *numbered("plain", 38, **GENERAL),
        *ports, *volumes,
    ]  # fmt: skip


EXPECTED_WAITING = {
    "crowded": 3, "intolerant": 6, "large": 6, "many": 4, "gated": 10, "port": 2,
}  # fmt: skip


def priority_class(name, value):
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        "preemptionPolicy": "PreemptLowerPriority" if name == "high" else "Never",
    }


CLASSES = [
    priority_class(name, value)
    for name, value in {"high": 100, "normal": 10, "last": -10, "low": -20}.items()
]


def volume(number):
    """Writes a volume of one zone and the claim that it is bound to."""
    name, claim = f"volume-{number}", f"claim-{number}"
    rules = [{"key": ZONE, "operator": "In", "values": [ZONES[number]]}]
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    spec = {
        **shared,
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "example.com", "volumeHandle": name},
        "claimRef": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": claim},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": rules}]}},
    }
    asked = {**shared, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": name}
    notes = {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec},
        {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": "default", "annotations": notes},
            "spec": asked, "status": {"phase": "Bound"},
        },
    ]  # fmt: skip


VOLUME_ZONES = {f"claim-{number}": ZONES[number] for number in range(3)}


# What came of it.


@pytest.fixture(scope="module")
def plane():
    """Runs a control plane of its own: without a controller, claims cannot be deleted again."""
    programs = find_programs()
    if not os.access(programs / "kwok", os.X_OK):
        pytest.skip(f"{programs} lacks kwok: `tools/build_control_plane.sh` builds it")
    with control_plane(programs) as started:
        started.api.create_all(CLASSES)
        started.api.create_all([each for number in range(3) for each in volume(number)])
        yield started


def settled(plane, extenders):
    """Lets kube-scheduler place all pods; gives them as they are in the end."""
    api, listed = plane.api, pods()
    with plane.kwok():
        api.create_all(nodes())
        api.create_all(filling())
        with plane.scheduler(extenders):
            wait_until(lambda: sum("nodeName" in each["spec"] for each in api.pods()) == 16)
        api.create_all(listed)
        with plane.scheduler(extenders):
            wait_until(lambda: len(undecided(api)) == 20)  # those that are gated
            for each in listed:
                if each["metadata"]["name"].startswith("late"):
                    api.patch(each, {"spec": {"schedulingGates": None}})
            wait_until(lambda: len(undecided(api)) == 10)
            return api.pods()


def undecided(api):
    """Names the pods of which kube-scheduler has not said where they go, or why nowhere.

    Who waits for victims to go is not decided.
    """
    return [
        each["metadata"]["name"]
        for each in api.pods()
        if not each["spec"].get("nodeName")
        and (each["metadata"]["name"].startswith("urgent") or is_unheard(each))
    ]


def is_unheard(pod):
    told = unschedulable(pod) or ""
    # A pod whose gates are gone says so until kube-scheduler has looked at it.
    is_gated = pod["spec"].get("schedulingGates") or told.startswith("SchedulingGated")
    return bool(is_gated) or not told


def running(found):
    return {each["metadata"]["name"] for each in found if each["spec"].get("nodeName")}


def waiting(found):
    names = [each["metadata"]["name"] for each in found if not each["spec"].get("nodeName")]
    kinds = [name.rpartition("-")[0] for name in names]
    return {kind: kinds.count(kind) for kind in kinds}


@pytest.fixture(scope="module")
def alone(plane):
    """Gives all pods as kube-scheduler places them without Podium."""
    found = settled(plane, {"percentageOfNodesToScore": 100})
    plane.api.clear()
    return found


def test_300_pods_are_made():
    assert len(filling()) + len(pods()) == 300


def test_pods_without_podium(alone):
    """What is compared with is right itself."""
    assert violations(alone, nodes(), VOLUME_ZONES) == []
    assert waiting(alone) == EXPECTED_WAITING


@pytest.mark.parametrize("policy", ["best-fit", "worst-fit"])
def test_constraints_hold_and_the_same_pods_run(plane, alone, tmp_path, policy):
    with podium(plane, tmp_path, policy=policy, assume_s=30) as process:
        found = settled(plane, configuration(process.url))
        bound = figure(process, BEST) + figure(process, OTHER)
        best = figure(process, BEST)
    plane.api.clear()
    assert violations(found, nodes(), VOLUME_ZONES) == []
    assert waiting(found) == EXPECTED_WAITING
    assert running(found) == running(alone)
    # Podium was asked and followed: it is not the same because nobody listened.
    assert best > 0.9 * bound > 200
    places = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in found}
    before = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in alone}
    assert sum(places[name] != before[name] for name in running(found)) > 50
