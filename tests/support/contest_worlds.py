"""Draws clusters in which pods that wait compete for volumes, and for room to attach them.

Each pod names its node and no two volumes are of one size, so that a scheduler has nothing to
choose: what one pod takes decides what is left for the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from support.manifests import claim, claim_volumes, node, pod, storage_class, volume
from support.random_worlds import HOST

Manifest = dict[str, Any]
DRIVER = "csi.example.com"
ROOMY = "room.example.com"
DRIVERS = {"made": DRIVER, "roomy": ROOMY}
"""Make the volumes of classes."""

TRACKING = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIDriver",
    "metadata": {"name": ROOMY},
    "spec": {"storageCapacity": True},
}
"""Says how much storage it has left; the same in all worlds."""


def names_of(seed: int) -> list[str]:
    """Names the nodes of a world; no two worlds share one."""
    return [f"{letter}{seed}" for letter in "abc"]


def draw_contest_world(seed: int) -> tuple[list[Manifest], list[Manifest]]:
    """Draws a cluster, and the pods that wait in it, the first to be served first."""
    rng = np.random.default_rng([20_262, seed])
    names = names_of(seed)
    nodes = [node(name) for name in names]
    classes = [
        storage_class("local", "kubernetes.io/no-provisioner"),
        *(storage_class(name, driver) for name, driver in DRIVERS.items()),
    ]
    sizes = rng.permutation(np.arange(1, 9)).tolist()[: rng.integers(2, 7)]
    volumes = [_volume(rng, names, f"v{i}", size) for i, size in enumerate(sizes)]
    attached = [_attached(i) for i in range(4)]
    limits = [csi_node(name, int(rng.integers(0, 4))) for name in names]
    claims = [_claim(rng, f"c{i}") for i in range(8)]
    made = [claim(f"e{i}", gib=i + 1, storageClassName=("made", "roomy")[i % 2]) for i in range(4)]
    claims += made
    claims += [claim(f"d{i}", volumeName=f"d{i}", mode="ReadWriteMany") for i in range(4)]
    pending = [
        _pod(rng, names, f"p{i}", [each["metadata"]["name"] for each in claims]) for i in range(7)
    ]
    room = [_capacity(name, int(rng.integers(1, 6))) for name in names]
    return [*limits, *room, *nodes, *classes, *volumes, *attached, *claims], pending


def probe(seed: int) -> tuple[list[Manifest], Manifest]:
    """Writes a pod that finds a node once a scheduler has seen all that was made before."""
    name = f"probe-{seed}"
    on = [{"key": HOST, "operator": "In", "values": [name]}]
    classed = {"storageClassName": name}
    asking = pod(name, volumes=claim_volumes([name]), nodeSelector={HOST: name})
    made = [storage_class(name, "kubernetes.io/no-provisioner"), node(name)]
    return [*made, volume(name, affinity=on, **classed), claim(name, **classed)], asking


def csi_node(name: str, count: int) -> Manifest:
    """Says to how many volumes a node can be attached."""
    driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": count}}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def _capacity(node_name: str, gib: int) -> Manifest:
    """Says how large a volume can be on a node."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSIStorageCapacity",
        "metadata": {"name": node_name, "namespace": "default"},
        "storageClassName": "roomy",
        "nodeTopology": {"matchLabels": {HOST: node_name}},
        "capacity": f"{gib}Gi",
    }


def _volume(rng: np.random.Generator, names: list[str], name: str, gib: int) -> Manifest:
    places = [str(each) for each in rng.choice(names, rng.integers(1, 4), replace=False)]
    on = [{"key": HOST, "operator": "In", "values": places}]
    labels = {"disk": "ssd"} if rng.random() < 0.4 else {}
    made = volume(name, labels, gib, on, storageClassName="local")
    if rng.random() < 0.3:
        made["spec"]["accessModes"] = ["ReadWriteOnce", "ReadWriteMany"]
    return made


def _attached(number: int) -> Manifest:
    made = volume(f"d{number}", accessModes=["ReadWriteMany"])
    del made["spec"]["hostPath"]
    made["spec"]["csi"] = {"driver": DRIVER, "volumeHandle": f"disk-{number}"}
    made["spec"]["claimRef"] = {"namespace": "default", "name": f"d{number}"}
    return {**made, "status": {"phase": "Bound"}}


def _claim(rng: np.random.Generator, name: str) -> Manifest:
    spec: dict[str, Any] = {"storageClassName": "local"}
    if rng.random() < 0.2:
        spec["selector"] = {"matchLabels": {"disk": "ssd"}}
    mode = "ReadWriteMany" if rng.random() < 0.15 else "ReadWriteOnce"
    return claim(name, gib=int(rng.integers(1, 5)), mode=mode, **spec)


def _pod(rng: np.random.Generator, names: list[str], name: str, claims: list[str]) -> Manifest:
    chosen = rng.choice(claims, rng.choice((1, 1, 2)), replace=False)
    at = {HOST: str(rng.choice(names))}
    return pod(name, volumes=claim_volumes([str(each) for each in chosen]), nodeSelector=at)
