"""Describes what a pod demands of the node it runs on, in the words of the Kubernetes API.

These are values as a manifest writes them. `podium.model.classes` turns them into tables that
the simulator looks up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute", ""]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

MOST_TERMS = 128
"""Terms of one kind that a pod may have: what they cost grows with their square."""

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
"""The key of the taint that a cordoned node has."""


@dataclass(frozen=True, slots=True)
class Taint:
    """Keeps pods off a node unless they tolerate it."""

    key: str
    value: str = ""
    effect: Effect = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """Lets a pod run on a node with taints; an empty key with Exists tolerates all of them."""

    key: str = ""
    operator: Literal["Equal", "Exists", "Lt", "Gt", ""] = "Equal"
    value: str = ""
    effect: Effect = ""  # empty: every effect

    def tolerates(self, taint: Taint) -> bool:
        """Decides as the scheduler does (`ToleratesTaint` of k8s.io/component-helpers)."""
        if self.effect not in ("", taint.effect) or self.key not in ("", taint.key):
            return False
        if self.operator in ("Lt", "Gt"):
            return _compared(taint.value, self.operator, self.value)
        return self.operator == "Exists" or self.value == taint.value


@dataclass(frozen=True, slots=True)
class Requirement:
    """Compares one label, or one field of a node, with values."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def is_met(self, labels: Mapping[str, str]) -> bool:
        """Decides as `labels.Requirement.Matches` of k8s.io/apimachinery does."""
        if self.operator in ("Exists", "DoesNotExist"):
            return (self.key in labels) == (self.operator == "Exists")
        if self.operator == "NotIn":
            return labels.get(self.key) not in self.values
        if self.key not in labels:
            return False
        if self.operator == "In":
            return labels[self.key] in self.values
        return _compared(labels[self.key], self.operator, self.values[0] if self.values else "")


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Is one alternative of a node affinity: all of its requirements must be met."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()  # metadata.name is the only field there is

    def is_met(self, name: str, labels: Mapping[str, str]) -> bool:
        """Decides for one node; a term without requirements is met by none."""
        if not self.labels and not self.fields:
            return False
        return all(each.is_met(labels) for each in self.labels) and all(
            each.is_met({"metadata.name": name}) for each in self.fields
        )


@dataclass(frozen=True, slots=True)
class PodSelector:
    """Picks pods by their labels and namespaces."""

    requirements: tuple[Requirement, ...] | None  # None: no pod, empty: every pod
    namespaces: frozenset[str] | None = None  # None: every namespace

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Decides for one pod."""
        if self.requirements is None:
            return False
        if self.namespaces is not None and namespace not in self.namespaces:
            return False
        return all(each.is_met(labels) for each in self.requirements)


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Is one required term of a pod affinity or anti-affinity."""

    selector: PodSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class Spread:
    """Is one hard topology spread constraint (`whenUnsatisfiable: DoNotSchedule`)."""

    selector: PodSelector
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    honors_affinity: bool = True  # nodeAffinityPolicy
    honors_taints: bool = False  # nodeTaintsPolicy


@dataclass(frozen=True, slots=True)
class HostPort:
    """Is a port of the node itself; an empty address is every address."""

    port: int
    protocol: str = "TCP"
    address: str = ""


@dataclass(frozen=True, slots=True)
class VolumeRule:
    """Says where volumes let a pod run: on nodes where each claim gets a volume of its own.

    A choice is where one volume is, or could be made: one of its terms must be met. Each claim
    takes the first of its choices that admits the node and that no claim before it has taken.
    """

    text: str  # what kube-scheduler says of other nodes, or of the pod where none can be right
    choices: tuple[tuple[NodeTerm, ...] | None, ...] = ()  # None: on any node
    claims: tuple[tuple[int, ...], ...] = ((0,),)  # of each claim, indices into the choices

    def is_met(self, name: str, labels: Mapping[str, str]) -> bool:
        """Decides for one node."""
        taken: set[int] = set()
        for claim in self.claims if self.choices else ((),):
            free = (i for i in claim if i not in taken and self._admits(i, name, labels))
            choice = next(free, None)
            if choice is None:
                return False
            taken.add(choice)
        return True

    def _admits(self, choice: int, name: str, labels: Mapping[str, str]) -> bool:
        terms = self.choices[choice]
        return terms is None or any(term.is_met(name, labels) for term in terms)

    @property
    def is_of_pod(self) -> bool:
        """Tells whether the pod waits for something else than a node."""
        return not self.choices and not self.text.startswith("node(s)")


@dataclass(frozen=True, slots=True)
class Constraints:
    """Holds everything beside CPU, memory and GPUs that decides where a pod may run."""

    node_labels: tuple[tuple[str, str], ...] = ()  # spec.nodeSelector
    node_terms: tuple[NodeTerm, ...] | None = None  # required node affinity: one of them
    tolerations: tuple[Toleration, ...] = ()
    affinity: tuple[PodTerm, ...] = ()
    anti_affinity: tuple[PodTerm, ...] = ()
    spread: tuple[Spread, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    extended: tuple[tuple[str, int], ...] = ()  # other resources, such as rdma/hca, and amounts
    volumes: tuple[VolumeRule, ...] = ()
    sole_claims: tuple[str, ...] = ()  # volume claims that no two pods use at once

    @property
    def on_nodes(self) -> tuple[object, ...]:
        """Gives what a node's name, labels and taints decide; of equal ones the same."""
        return (self.node_labels, self.node_terms, self.tolerations, self.volumes)

    def selects_node(self, name: str, labels: Mapping[str, str]) -> bool:
        """Tells whether node selector and required node affinity admit a node."""
        if any(labels.get(key) != value for key, value in self.node_labels):
            return False
        if self.node_terms is None:
            return True
        return any(term.is_met(name, labels) for term in self.node_terms)

    def reaches_volumes(self, name: str, labels: Mapping[str, str]) -> bool:
        """Tells whether all volumes can be used on a node."""
        return all(rule.is_met(name, labels) for rule in self.volumes)

    def tolerates(self, taints: tuple[Taint, ...]) -> bool:
        """Tells whether all taints that keep pods away are tolerated."""
        return all(
            any(toleration.tolerates(taint) for toleration in self.tolerations)
            for taint in taints
            if taint.effect in ("NoSchedule", "NoExecute")
        )


UNCONSTRAINED = Constraints()


@dataclass(frozen=True, slots=True)
class Gang:
    """Is a group of pods that start together, or not at all."""

    name: str
    minimum: int  # pods that must fit at once
    domain: Literal["", "rack", "block", "zone"] = ""  # all in one of these, where not empty


def _compared(left: str, operator: str, right: str) -> bool:
    if not (_is_whole(left) and _is_whole(right)):
        return False
    return int(left) > int(right) if operator == "Gt" else int(left) < int(right)


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-").removeprefix("+")
    return digits.isascii() and digits.isdigit() and len(digits) < 20
