"""Draws small clusters whose pods use volumes: bound ones, open claims, local and zonal storage.

What is drawn is valid: the API server takes all of it. Names and values are few, so that they meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from support.manifests import (
    bound,
    claim,
    claim_volumes,
    node,
    pod,
    storage_class,
    volume,
)
from support.random_worlds import HOST, RACK, ZONE, World

Manifest = dict[str, Any]
Drawn = TypeVar("Drawn")

REGION = "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OPERATORS = ("In", "In", "In", "NotIn", "Exists")
NONE = "kubernetes.io/no-provisioner"


def draw_volume_world(seed: int) -> World:
    """Draws the world of that number; it is the same each time."""
    return _Drawing(np.random.default_rng([20_261, seed])).world()


@dataclass
class _Drawing:
    rng: np.random.Generator
    nodes: list[str] = field(default_factory=list)
    claims: list[Manifest] = field(default_factory=list)

    def happens(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def one(self, choices: Sequence[Drawn]) -> Drawn:
        return choices[int(self.rng.integers(len(choices)))]

    def world(self) -> World:
        nodes = [self.node(f"node-{i}") for i in range(self.number(3, 6))]
        self.nodes = [each["metadata"]["name"] for each in nodes]
        classes = [*self.classes()]
        volumes = [self.volume(f"free-{i}") for i in range(self.number(0, 8))]
        taken = [self.volume(f"taken-{i}") for i in range(3)]
        self.claims = [self.claim(f"c{i}", taken) for i in range(self.number(5, 9))]
        running = [self.running(i) for i in range(self.number(0, 2))]
        pending = [self.pod(f"pending-{i}") for i in range(self.number(3, 6))]
        return World([*nodes, *classes, *volumes, *taken, *self.claims, *running], pending)

    def node(self, name: str) -> Manifest:
        labels = {ZONE: self.one("ab")} if self.happens(0.8) else {}
        labels |= {REGION: "r"} if self.happens(0.5) else {}
        labels |= {OLD_ZONE: self.one("ab")} if self.happens(0.2) else {}
        return node(name, labels | {RACK: self.one(("r1", "r2"))})

    def classes(self) -> Iterator[Manifest]:
        yield storage_class("at-once", mode="Immediate")
        yield storage_class("zonal", **self.topologies())
        yield storage_class("local", NONE)

    def topologies(self) -> dict[str, Any]:
        if self.happens(0.3):
            return {}
        rules = [{"key": ZONE, "values": [self.one("ab")]}]
        rules += [{"key": RACK, "values": ["r1"]}] if self.happens(0.3) else []
        return {"allowedTopologies": [{"matchLabelExpressions": rules}]}

    def volume(self, name: str) -> Manifest:
        labels = {ZONE: self.one(("a", "b", "a__b"))} if self.happens(0.2) else {}
        labels |= {OLD_ZONE: self.one("ab")} if self.happens(0.1) else {}
        labels |= {"disk": self.one(("ssd", "hdd"))} if self.happens(0.5) else {}
        chosen = None if self.happens(0.2) else [self.requirement()]
        spec = {"storageClassName": self.one(("local", "local", "zonal"))}
        made = volume(name, labels, self.number(1, 3), chosen, **spec)
        if self.happens(0.2):
            made["spec"]["accessModes"] = ["ReadWriteOncePod"]
        if self.happens(0.1):
            made["spec"]["volumeMode"] = "Block"
        if self.happens(0.1):
            made["spec"]["claimRef"] = {"namespace": "default", "name": f"c{self.number(0, 4)}"}
        if self.happens(0.1):
            made["status"]["phase"] = "Released"
        return made

    def requirement(self) -> Manifest:
        if self.happens(0.6):
            return {"key": HOST, "operator": "In", "values": [self.one(self.nodes)]}
        rule: Manifest = {"key": self.one((ZONE, RACK)), "operator": self.one(OPERATORS)}
        return rule if rule["operator"] == "Exists" else {**rule, "values": [self.one(("a", "r1"))]}

    def claim(self, name: str, taken: Sequence[Manifest]) -> Manifest:
        mode = "ReadWriteOncePod" if self.happens(0.2) else "ReadWriteOnce"
        if self.happens(0.35):
            volumes = [each["metadata"]["name"] for each in taken]
            found = claim(name, mode=mode, volumeName=self.one((*volumes, *volumes, "gone")))
            if self.happens(0.1):
                found["status"] = {"phase": "Lost"}
            if self.happens(0.1):
                found["metadata"]["annotations"] = {}
            return found
        kinds = ("local",) * 5 + ("zonal",) * 4 + ("at-once", "unheard-of", "")
        spec: dict[str, Any] = {"storageClassName": self.one(kinds)}
        if self.happens(0.15):
            spec["selector"] = {"matchLabels": {"disk": "ssd"}}
        if self.happens(0.05):
            spec["volumeMode"] = "Block"
        found = claim(name, gib=self.number(1, 3), mode=mode, **spec)
        if self.happens(0.05):
            found["metadata"]["annotations"] = {
                "volume.kubernetes.io/selected-node": self.one(self.nodes)
            }
        return found

    def some_claims(self) -> list[str]:
        names = [*(each["metadata"]["name"] for each in self.claims), "missing"]
        count = self.one((1, 1, 2, 2, 3))
        chance = [1.0] * (len(names) - 1) + [0.4]
        weights = np.array(chance) / sum(chance)
        return [str(each) for each in self.rng.choice(names, count, replace=False, p=weights)]

    def running(self, number: int) -> Manifest:
        made = pod(f"bound-{number}", volumes=claim_volumes(self.some_claims()))
        return bound(made, self.one(self.nodes))

    def pod(self, name: str) -> Manifest:
        volumes = claim_volumes(self.some_claims())
        if self.happens(0.04):
            template = claim("x", storageClassName="zonal")["spec"]
            volumes.append({"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": template}}})
        return pod(name, volumes=volumes)
