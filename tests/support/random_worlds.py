"""Draws small clusters with pods that use every hard constraint kube-scheduler knows.

What is drawn is valid: the API server takes all of it. Keys and values are few, so that they meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from support.manifests import bound, node, pod

Manifest = dict[str, Any]
Drawn = TypeVar("Drawn")

ZONE, HOST, RACK = "topology.kubernetes.io/zone", "kubernetes.io/hostname", "rack"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODE_LABELS = {
    ZONE: ("a", "b", "c"),
    RACK: ("r1", "r2", "r3"),
    "disk": ("ssd", "hdd"),
    "generation": ("1", "3", "5", "9", "late"),
    "nvidia.com/gpu.product": ("A100", "T4"),
}
POD_LABELS = {"app": ("web", "db", "cache"), "track": ("stable", "canary"), "hash": ("x1", "x2")}
TAINTS = {"dedicated": ("ml", "web", ""), "level": ("3", "7"), "flaky": ("",)}
EFFECTS = ("NoSchedule", "NoSchedule", "PreferNoSchedule", "NoExecute")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
# A pod that waits never selects namespaces by what they lack: kube-scheduler v1.36 takes such a
# selector for all of them, see test_feasibility_agrees.py.
SURE_OPERATORS = ("In", "Exists")
NAMESPACES = ("default", "ml", "ops")
TEAMS = ("ml", "ops", None)
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
# Admission refuses an overhead that no RuntimeClass has.
RUNTIME_CLASS: Manifest = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "boxed"},
    "handler": "boxed",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "128Mi"}},
}


@dataclass(frozen=True)
class World:
    """Is a cluster with namespaces, nodes and bound pods, and the pods that wait."""

    cluster: list[Manifest]
    pending: list[Manifest]


def draw_world(seed: int) -> World:
    """Draws the world of that number; it is the same each time."""
    return _Drawing(np.random.default_rng([20_260, seed])).world()


class _Drawing:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    # What everything is drawn with.

    def happens(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def one(self, choices: Sequence[Drawn]) -> Drawn:
        return choices[int(self.rng.integers(len(choices)))]

    def some(self, choices: Sequence[Drawn], most: int) -> list[Drawn]:
        """Draws one or more different ones, in the order of drawing."""
        count = self.number(1, min(most, len(choices)))
        return [choices[int(i)] for i in self.rng.permutation(len(choices))[:count]]

    def maybe(self, chance: float, name: str, draw: Callable[[], object]) -> dict[str, Any]:
        """Draws a field that may be absent."""
        return {name: draw()} if self.happens(chance) else {}

    def labels(self, of: dict[str, tuple[str, ...]], chance: float) -> dict[str, str]:
        return {key: self.one(values) for key, values in of.items() if self.happens(chance)}

    # The cluster.

    def world(self) -> World:
        nodes = [self.node(f"node-{i}") for i in range(self.number(3, 8))]
        names = [each["metadata"]["name"] for each in nodes]
        running = [self.bound_pod(i, names) for i in range(self.number(0, 20))]
        pending = [self.pod(f"pending-{i}", 0.17) for i in range(self.number(3, 6))]
        return World([*map(self.namespace, NAMESPACES), *nodes, *running], pending)

    def namespace(self, name: str) -> Manifest:
        team = self.one(TEAMS)
        labels = {"team": team} if team else {}
        metadata = {"name": name, "labels": labels}
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}

    def node(self, name: str) -> Manifest:
        made = node(name, self.labels(NODE_LABELS, 0.7))
        if self.happens(0.15):
            del made["metadata"]["labels"][HOST]
        taints = list(self.taints()) if self.happens(0.25) else []
        if self.happens(0.08):
            # The node lifecycle controller taints whatever is cordoned.
            made["spec"]["unschedulable"] = True
            taints.append({"key": UNSCHEDULABLE, "effect": "NoSchedule"})
        if taints:
            made["spec"]["taints"] = taints
        amounts = self.node_resources()
        made["status"] = {"capacity": amounts, "allocatable": amounts}
        if self.happens(0.1):
            made["status"]["allocatable"] = self.reserved(amounts)
        return made

    def node_resources(self) -> dict[str, str]:
        return {
            "cpu": self.one(("2", "7500m", "8", "16")),
            "memory": self.one(("4Gi", "16Gi", "32Gi")),
            "pods": self.one(("110",) * 9 + ("4", "2", "0")),
            **self.maybe(0.7, "nvidia.com/gpu", lambda: self.one(("0", "2", "4", "8"))),
            **self.maybe(0.4, "rdma/hca", lambda: self.one(("1", "2"))),
            **self.maybe(0.8, "ephemeral-storage", lambda: self.one(("10Gi", "40Gi"))),
            **self.maybe(0.6, "hugepages-2Mi", lambda: self.one(("64Mi", "256Mi"))),
        }

    def reserved(self, amounts: dict[str, str]) -> dict[str, str]:
        """Offers less than there is: some resources not at all."""
        kept = {"cpu", "memory", "pods"}
        return {name: each for name, each in amounts.items() if name in kept or self.happens(0.5)}

    def taints(self) -> Iterator[Manifest]:
        for key in self.some(tuple(TAINTS), 2):
            value = self.one(TAINTS[key])
            for effect in {self.one(EFFECTS) for _ in range(self.number(1, 2))}:
                yield {"key": key, **({"value": value} if value else {}), "effect": effect}

    def bound_pod(self, number: int, nodes: Sequence[str]) -> Manifest:
        made = bound(self.pod(f"bound-{number}", 0.06), self.one(nodes))
        made["status"]["phase"] = self.one(("Running",) * 6 + ("Pending", "Succeeded", "Failed"))
        if self.happens(0.1):
            made["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
        if self.happens(0.1):
            made["status"]["containerStatuses"] = [self.resized(made)]
        return made

    def resized(self, made: Manifest) -> Manifest:
        """Writes the status of a container that has, for now, other resources than it asks for."""
        container = made["spec"]["containers"][0]
        has = {"cpu": self.one(("100m", "2")), "memory": self.one(("64Mi", "3Gi"))}
        state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
        return {
            "name": container["name"], "image": "none", "imageID": "none", "ready": True,
            "restartCount": 0, "state": state, "resources": {"requests": has},
            **self.maybe(0.5, "allocatedResources", lambda: has),
        }  # fmt: skip

    # A pod.

    def pod(self, name: str, chance: float) -> Manifest:
        """Draws a pod; each kind of constraint comes with that chance."""
        labels = self.labels(POD_LABELS, 0.6)
        operators = OPERATORS if name.startswith("bound") else SURE_OPERATORS
        made = pod(name, labels, namespace=self.one(("default", *NAMESPACES)))
        made["spec"] = {
            **self.containers(chance),
            **self.maybe(chance, "nodeSelector", self.node_selector),
            **self.maybe(2 * chance, "tolerations", self.tolerations),
            **self.maybe(chance, "topologySpreadConstraints", lambda: self.spreads(labels)),
        }
        affinity = {
            **self.maybe(chance, "nodeAffinity", self.node_affinity),
            **self.maybe(chance, "podAffinity", lambda: self.pod_terms(labels, operators)),
            **self.maybe(
                1.5 * chance, "podAntiAffinity", lambda: self.pod_terms(labels, operators)
            ),
        }
        if affinity:
            made["spec"]["affinity"] = affinity
        return made

    def containers(self, chance: float) -> Manifest:
        containers = [self.container(f"main-{i}") for i in range(self.number(1, 2))]
        starting = []
        if self.happens(chance):
            starting = [self.container(f"init-{i}") for i in range(self.number(1, 3))]
            for each in starting:
                each |= self.maybe(0.4, "restartPolicy", lambda: "Always")
        spec: Manifest = {"containers": containers, "initContainers": starting}
        if self.happens(chance):
            self.open_ports(spec)
        if self.happens(chance / 2):
            spec["resources"] = self.pod_level([*containers, *starting])
        if self.happens(chance / 2):
            spec["runtimeClassName"] = RUNTIME_CLASS["metadata"]["name"]
            spec["overhead"] = RUNTIME_CLASS["overhead"]["podFixed"]
        return spec

    def container(self, name: str) -> Manifest:
        plain = {
            **self.maybe(0.6, "cpu", lambda: self.one(("0", "100m", "500m", "1", "2500m"))),
            **self.maybe(0.6, "memory", lambda: self.one(("128Mi", "512Mi", "1Gi", "2.5Gi"))),
            **self.maybe(0.1, "ephemeral-storage", lambda: self.one(("1Gi", "6Gi", "15G"))),
        }
        # Of these, what is asked for is what there is at most.
        exact = {
            **self.maybe(0.15, "nvidia.com/gpu", lambda: self.one(("0", "1", "2"))),
            **self.maybe(0.05, "rdma/hca", lambda: self.one(("1", "2"))),
        }
        if plain.keys() & {"cpu", "memory"} and self.happens(0.05):
            exact["hugepages-2Mi"] = self.one(("32Mi", "64Mi", "128Mi"))
        parts: dict[str, Any] = {"limits": dict(exact), "requests": {}}
        if self.happens(0.5):
            parts["requests"] |= exact
        for resource, amount in plain.items():
            parts[self.one(("requests", "requests", "limits"))][resource] = amount
        return {"name": name, "image": "none", "resources": parts}

    def pod_level(self, containers: Sequence[Manifest]) -> Manifest:
        """Draws resources of the pod as a whole; they are no less than its containers'."""
        asked = {each: f"{total}m" for each, total in _totals(containers).items()}
        some = self.some(tuple(asked), 2)
        limits = {each: asked[each] for each in some if self.happens(0.6)}
        requests = {each: asked[each] for each in some if each not in limits or self.happens(0.3)}
        return {"requests": requests, "limits": limits}

    def open_ports(self, spec: Manifest) -> None:
        is_on_host = self.happens(0.2)
        if is_on_host:
            spec["hostNetwork"] = True
        for at, container in enumerate((*spec["containers"], *spec["initContainers"])):
            port = self.one((80, 443)) + 1000 * at
            named = {"containerPort": port} if is_on_host else {"containerPort": 8080 + at}
            host = {} if is_on_host and self.happens(0.5) else {"hostPort": port}
            container["ports"] = [{
                **named, **host,
                **self.maybe(0.4, "protocol", lambda: self.one(("TCP", "UDP"))),
                **self.maybe(
                    0.4, "hostIP", lambda: self.one(("127.0.0.1", "10.0.0.1", "0.0.0.0", "::")),
                ),
            }]  # fmt: skip

    # Which nodes.

    def node_selector(self) -> dict[str, str]:
        key = self.one(tuple(NODE_LABELS))
        return {key: self.one(NODE_LABELS[key])}

    def node_affinity(self) -> Manifest:
        terms = [self.node_term() for _ in range(self.number(1, 3))]
        return {REQUIRED: {"nodeSelectorTerms": terms}}

    def node_term(self) -> Manifest:
        if self.happens(0.07):
            return {}
        field = {
            "key": "metadata.name",
            "operator": self.one(("In", "NotIn")),
            "values": [f"node-{self.number(0, 7)}"],
        }
        fields = self.maybe(0.2, "matchFields", lambda: [field])
        if fields and self.happens(0.5):
            return fields
        rules = [self.node_rule() for _ in range(self.number(1, 2))]
        return {"matchExpressions": rules, **fields}

    def node_rule(self) -> Manifest:
        if self.happens(0.3):
            operator = self.one(("Gt", "Lt"))
            value = self.one(("1", "3", "4", "0", "late", "99999999999999999999"))
            return {"key": "generation", "operator": operator, "values": [value]}
        return self.rule({HOST: ("node-0", "node-1", "node-2"), **NODE_LABELS})

    def rule(
        self, of: dict[str, tuple[str, ...]], operators: Sequence[str] = OPERATORS
    ) -> Manifest:
        key = self.one(tuple(of))
        operator = self.one(operators)
        if operator in ("Exists", "DoesNotExist"):
            return {"key": key, "operator": operator}
        return {"key": key, "operator": operator, "values": self.some(of[key], 2)}

    def tolerations(self) -> list[Manifest]:
        return [self.toleration() for _ in range(self.number(1, 3))]

    def toleration(self) -> Manifest:
        effect = self.maybe(0.5, "effect", lambda: self.one(EFFECTS))
        if self.happens(0.15):
            return {"operator": "Exists", **effect}
        if self.happens(0.15):
            compared = {"operator": self.one(("Gt", "Lt")), "value": self.one(("2", "5", "8"))}
            return {"key": self.one(("level", "dedicated")), **compared, **effect}
        key = self.one((*TAINTS, UNSCHEDULABLE))
        operator = self.one(("Exists", "Equal", "Equal", None))
        if operator == "Exists":
            return {"key": key, "operator": operator, **effect}
        value = {"value": self.one(TAINTS.get(key, ("",)))}
        return {"key": key, **({"operator": operator} if operator else {}), **value, **effect}

    # Which other pods.

    def pod_terms(self, labels: dict[str, str], operators: Sequence[str]) -> Manifest:
        return {REQUIRED: [self.pod_term(labels, operators) for _ in range(self.number(1, 2))]}

    def pod_term(self, labels: dict[str, str], operators: Sequence[str]) -> Manifest:
        return {
            **self.selected(labels, ("matchLabelKeys", "mismatchLabelKeys")),
            "topologyKey": self.one((ZONE, HOST, HOST, RACK)),
            **self.maybe(0.2, "namespaces", lambda: self.some(NAMESPACES, 2)),
            **self.maybe(0.25, "namespaceSelector", lambda: self.namespace_selector(operators)),
        }

    def namespace_selector(self, operators: Sequence[str]) -> Manifest:
        if self.happens(0.3):
            return {}
        if self.happens(0.3):
            return {"matchLabels": {"kubernetes.io/metadata.name": self.one(NAMESPACES)}}
        return {"matchExpressions": [self.rule({"team": ("ml", "ops")}, operators)]}

    def selected(self, labels: dict[str, str], merged: Sequence[str]) -> Manifest:
        """Draws a selector and the label keys that are merged into it."""
        if self.happens(0.05):
            return {}
        selector: Manifest = {}
        if self.happens(0.6):
            key = self.one(tuple(POD_LABELS))
            selector["matchLabels"] = {key: labels.get(key) or self.one(POD_LABELS[key])}
        if self.happens(0.3):
            selector["matchExpressions"] = [self.rule(POD_LABELS)]
        used = {*selector.get("matchLabels", ())}
        used |= {each["key"] for each in selector.get("matchExpressions", ())}
        free = [key for key in POD_LABELS if key not in used]
        keys = {}
        if free and self.happens(0.25):
            keys = {self.one(merged): self.some(free, 2)}
        return {"labelSelector": selector, **keys}

    def spreads(self, labels: dict[str, str]) -> list[Manifest]:
        return [self.spread(key, labels) for key in self.some((ZONE, HOST, RACK), 2)]

    def spread(self, key: str, labels: dict[str, str]) -> Manifest:
        policies = ("Honor", "Ignore")
        is_hard = self.happens(0.85)
        return {
            "topologyKey": key,
            "maxSkew": self.one((1, 1, 2)),
            "whenUnsatisfiable": "DoNotSchedule" if is_hard else "ScheduleAnyway",
            **self.selected(labels, ("matchLabelKeys",)),
            **self.maybe(0.3, "nodeAffinityPolicy", lambda: self.one(policies)),
            **self.maybe(0.3, "nodeTaintsPolicy", lambda: self.one(policies)),
            **self.maybe(0.3 if is_hard else 0, "minDomains", lambda: self.number(1, 4)),
        }


MILLI = {"m": 1, "": 1000, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}


def _totals(containers: Sequence[Manifest]) -> dict[str, int]:
    """Sums the CPU and memory of all containers, in thousandths; it is never nothing."""
    totals = {"cpu": 250, "memory": MILLI["Mi"] * 64}
    for container in containers:
        for part in container["resources"].values():
            for resource in totals.keys() & part.keys():
                text = part[resource]
                number = text.rstrip("GMim")
                totals[resource] += round(float(number) * MILLI[text[len(number) :]])
    return totals
