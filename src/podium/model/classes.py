"""Sorts pods and nodes into classes by their constraints, and writes the rules as tables.

Pods of one class are admitted by the same nodes and count alike for others; nodes of one class
admit the same pods. What changes during a run is counted by group and domain: a group is a
selection of pods together with a topology key, and a domain is one value of that key. So a rule
is a look at one counter, whatever the manifest wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.model.cluster import Cluster
from podium.model.constraints import (
    Constraints,
    HostPort,
    PodSelector,
    PodTerm,
    Spread,
)

ABSENT, PRESENT, SKEW = 0, 1, 2
"""What a rule asks of its counter: zero, more than zero, or not far above the lowest."""

PODS = "pods"
"""The resource of which every pod takes one, where a node lists it."""

CountedBy = Literal["labels", "anti-affinity", "port", "claim"]
"""Why pods count in a group: they are selected, carry a term, or use a port or a volume claim."""

Whole = npt.NDArray[np.int64]
Labels = Mapping[str, str]


class Rule(NamedTuple):
    """Is one condition on the counter of a group in a node's domain."""

    kind: int
    group: int
    own: int = 0  # 1 where the pod itself counts in the group
    max_skew: int = 0
    min_domains: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """Is what pods of one class demand, and where they count."""

    node_filter: int  # a row of `admits`
    needs: tuple[int, ...]  # of each resource
    rules: tuple[Rule, ...]  # those that only the node itself decides come first
    num_local: int  # how many of them
    members: tuple[int, ...]  # groups in which a pod of this class counts


@dataclass(frozen=True, slots=True, eq=False)
class ConstraintTables:
    """Holds the rules of a cluster for a workload, as arrays."""

    classes: tuple[PodClass, ...]
    admits: npt.NDArray[np.bool_]  # (num_filters, num_nodes)
    resources: tuple[str, ...]
    capacity: Whole  # (num_nodes, num_resources)
    domain_of: npt.NDArray[np.int32]  # (num_groups, num_nodes), -1 = the node has none
    is_counted: npt.NDArray[np.bool_]  # (num_groups, num_nodes): pods there count
    num_domains: npt.NDArray[np.int32]  # (num_groups,)
    num_eligible: npt.NDArray[np.int32]  # (num_groups,) the first so many decide the lowest
    counted_by: tuple[CountedBy, ...]  # (num_groups,)

    def could_take(self, node_filter: int, needs: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Tells of each node whether it admits such pods, and has what else they ask for."""
        is_short = np.less(self.capacity, np.array(needs, np.int64)).any(axis=1)
        found: npt.NDArray[np.bool_] = self.admits[node_filter] & ~is_short
        return found

    @property
    def is_enabling(self) -> npt.NDArray[np.bool_]:
        """Tells of each class whether placing such a pod may make room for another."""
        asked = {rule.group for each in self.classes for rule in each.rules if rule.kind != ABSENT}
        return np.array([bool(asked.intersection(each.members)) for each in self.classes], bool)


def constraint_tables(
    cluster: Cluster,
    constraints: Sequence[Constraints],
    namespaces: Sequence[str],
    labels: Sequence[Labels],
    is_terminating: Sequence[bool] = (),
) -> tuple[ConstraintTables, npt.NDArray[np.int32]]:
    """Writes the tables for the pods of a workload, and gives each pod's class."""
    builder = _Builder(cluster, constraints)
    builder.collect(constraints, namespaces)
    leaving = is_terminating or (False,) * len(constraints)
    class_of = [
        builder.class_of(*each)
        for each in zip(constraints, namespaces, labels, leaving, strict=True)
    ]
    return builder.tables(), np.array(class_of, np.int32)


@dataclass(frozen=True, slots=True)
class _Counted:
    """Is one group: which pods count in it, and by which key and nodes domains are told apart."""

    selectors: tuple[PodSelector, ...]  # all of them select the pod; none: see `owner`
    topology_key: str
    owner: Hashable = None  # pods that carry this very term, port or claim, instead of selectors
    eligible: bytes = b""  # the nodes whose pods count, all where empty

    @property
    def counted_by(self) -> CountedBy:
        """Names why a pod counts."""
        if self.owner is None:
            return "labels"
        if isinstance(self.owner, str):
            return "claim"
        return "port" if isinstance(self.owner, HostPort) else "anti-affinity"

    @property
    def is_spread(self) -> bool:
        """Tells the groups of spread constraints from others."""
        return bool(self.eligible)


@dataclass(slots=True)
class _Builder:
    cluster: Cluster
    given: Sequence[Constraints]
    filters: dict[bytes, int] = field(default_factory=dict)
    filter_rows: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    filter_memo: dict[Hashable, int] = field(default_factory=dict)
    groups: dict[_Counted, int] = field(default_factory=dict)
    classes: dict[Hashable, int] = field(default_factory=dict)
    built: list[PodClass] = field(default_factory=list)
    class_memo: dict[Hashable, int] = field(default_factory=dict)
    label_keys: tuple[str, ...] = ()
    # Groups by a label without which no pod is selected; None: by no such label.
    anchored: dict[tuple[str, str] | None, list[tuple[int, _Counted]]] = field(default_factory=dict)
    port_groups: dict[HostPort, int] = field(default_factory=dict)
    resources: tuple[str, ...] = ()
    domains: list[_Domains] = field(default_factory=list)

    # Groups are known before pods are sorted: a pod counts in groups that others ask for.

    def collect(self, constraints: Sequence[Constraints], namespaces: Sequence[str]) -> None:
        """Finds resources, groups and the labels that matter."""
        # Many pods share one object; its address is told apart faster than its content.
        listed_once = {(id(c), n): (c, n) for c, n in zip(constraints, namespaces, strict=True)}
        distinct = dict.fromkeys(listed_once.values())
        named = {name for each in {c for c, _ in distinct} for name, _ in each.extended}
        if not self.cluster.extended:
            named = set()  # nothing is known of them; a node that lists some has none of the others
        listed = {PODS} if any(PODS in each for each in self.cluster.extended) else set()
        self.resources = tuple(sorted(named | listed))
        for each, namespace in distinct:
            self._groups_of(each, namespace)
        keys = {
            requirement.key
            for group in self.groups
            for selector in group.selectors
            for requirement in selector.requirements or ()
        }
        self.label_keys = tuple(sorted(keys))
        for group, number in self.groups.items():
            for label in _anchors(group):
                self.anchored.setdefault(label, []).append((number, group))

    def _groups_of(self, pod: Constraints, namespace: str) -> None:
        for term in pod.anti_affinity:
            self._group(_Counted((_within(term.selector, namespace),), term.topology_key))
            self._group(self._owned(term, namespace))
        for counted in self._affinity(pod, namespace):
            self._group(counted)
        for spread in pod.spread:
            self._group(self._spread(pod, spread, namespace))
        for port in pod.host_ports:
            self.port_groups.setdefault(port, self._group(_Counted((), "", owner=port)))
        for claim in pod.sole_claims:
            self._group(_Counted((), "", owner=claim))

    def _affinity(self, pod: Constraints, namespace: str) -> list[_Counted]:
        # A pod counts for one term only if it is selected by all of them.
        selectors = tuple(_within(term.selector, namespace) for term in pod.affinity)
        return [_Counted(selectors, term.topology_key) for term in pod.affinity]

    def _owned(self, term: PodTerm, namespace: str) -> _Counted:
        owner = (_within(term.selector, namespace), term.topology_key)
        return _Counted((), term.topology_key, owner=owner)

    def _spread(self, pod: Constraints, spread: Spread, namespace: str) -> _Counted:
        # An empty selector selects the pod itself, but of those that run it counts none
        # (`countPodsMatchSelector` of podtopologyspread).
        selector = PodSelector(spread.selector.requirements or None, frozenset({namespace}))
        return _Counted(
            (selector,), spread.topology_key, eligible=self._eligible(pod, spread).tobytes()
        )

    def _eligible(self, pod: Constraints, spread: Spread) -> npt.NDArray[np.bool_]:
        keys = [each.topology_key for each in pod.spread]
        return self._nodes(
            lambda name, labels, taints: (
                all(key in labels for key in keys)
                and (not spread.honors_affinity or pod.selects_node(name, labels))
                and (not spread.honors_taints or pod.tolerates(taints))
            )
        )

    def _nodes(self, is_met: Callable[[str, Labels, Any], bool]) -> npt.NDArray[np.bool_]:
        cluster = self.cluster
        labels = cluster.labels or ({},) * len(cluster)
        taints = cluster.taints or ((),) * len(cluster)
        return np.fromiter(map(is_met, cluster.names, labels, taints), bool, len(cluster))

    def _group(self, counted: _Counted) -> int:
        if counted not in self.groups:
            self.groups[counted] = len(self.groups)
            self.domains.append(_domains(self.cluster, counted))
        return self.groups[counted]

    def _candidates(self, labels: Labels) -> list[tuple[int, _Counted]]:
        """Lists the groups whose selectors may select a pod with these labels."""
        found = list(self.anchored.get(None, ()))
        for label in labels.items():
            found += self.anchored.get(label, ())
        return sorted(found, key=lambda each: each[0])

    def class_of(
        self, pod: Constraints, namespace: str, labels: Labels, is_terminating: bool
    ) -> int:
        """Sorts one pod into a class."""
        seen = tuple(labels.get(key) for key in self.label_keys)
        key = (id(pod), namespace, seen, is_terminating)
        if key not in self.class_memo:
            self.class_memo[key] = self._class(pod, namespace, labels, is_terminating)
        return self.class_memo[key]

    def _class(self, pod: Constraints, namespace: str, labels: Labels, is_terminating: bool) -> int:
        members = self._members(pod, namespace, labels)
        if is_terminating:  # who leaves is not spread over, but attracts and repels to the end
            spread = {number for group, number in self.groups.items() if group.is_spread}
            members = tuple(number for number in members if number not in spread)
        rules = self._rules(pod, namespace, labels)
        local = [
            rule for rule in rules if rule.kind == ABSENT and self.domains[rule.group].is_local
        ]
        spanning = [rule for rule in rules if rule not in local]
        needs = dict(pod.extended) | {PODS: 1}
        found = (
            self._filter(pod),
            tuple(needs.get(name, 0) for name in self.resources),
            tuple(local + spanning),
            len(local),
            members,
        )
        if found not in self.classes:
            self.classes[found] = len(self.classes)
            self.built.append(PodClass(*found))
        return self.classes[found]

    def _filter(self, pod: Constraints) -> int:
        key = pod.on_nodes
        if key not in self.filter_memo:
            row = self._nodes(
                lambda name, labels, taints: (
                    pod.selects_node(name, labels)
                    and pod.tolerates(taints)
                    and pod.reaches_volumes(name, labels)
                )
            )
            if row.tobytes() not in self.filters:
                self.filters[row.tobytes()] = len(self.filters)
                self.filter_rows.append(row)
            self.filter_memo[key] = self.filters[row.tobytes()]
        return self.filter_memo[key]

    def _members(self, pod: Constraints, namespace: str, labels: Labels) -> tuple[int, ...]:
        found = {self.groups[self._owned(term, namespace)] for term in pod.anti_affinity}
        found |= {self.port_groups[port] for port in pod.host_ports}
        found |= {self.groups[_Counted((), "", owner=claim)] for claim in pod.sole_claims}
        found |= {
            number
            for number, group in self._candidates(labels)
            if group.selectors and all(each.selects(namespace, labels) for each in group.selectors)
        }
        return tuple(sorted(found))

    def _rules(self, pod: Constraints, namespace: str, labels: Labels) -> list[Rule]:
        found: dict[Rule, None] = {}
        for term in pod.anti_affinity:
            counted = _Counted((_within(term.selector, namespace),), term.topology_key)
            found[Rule(ABSENT, self.groups[counted])] = None
        for number, group in self._candidates(labels):
            if isinstance(group.owner, tuple) and group.owner[0].selects(namespace, labels):
                found[Rule(ABSENT, number)] = None
        for port in pod.host_ports:
            for other, number in self.port_groups.items():
                if _clash(port, other):
                    found[Rule(ABSENT, number)] = None
        for claim in pod.sole_claims:
            found[Rule(ABSENT, self.groups[_Counted((), "", owner=claim)])] = None
        found.update(dict.fromkeys(self._attracted(pod, namespace, labels)))
        return list(found)

    def _attracted(self, pod: Constraints, namespace: str, labels: Labels) -> list[Rule]:
        rules = []
        for counted in self._affinity(pod, namespace):
            own = all(each.selects(namespace, labels) for each in counted.selectors)
            rules.append(Rule(PRESENT, self.groups[counted], int(own)))
        for spread in pod.spread:
            counted = self._spread(pod, spread, namespace)
            own = PodSelector(spread.selector.requirements).selects(namespace, labels)
            rules.append(
                Rule(SKEW, self.groups[counted], int(own), spread.max_skew, spread.min_domains)
            )
        return rules

    def tables(self) -> ConstraintTables:
        """Writes everything down."""
        count, groups = len(self.cluster), list(self.groups)
        listed = self.cluster.extended or ({},) * count
        # A node that does not list "pods" does not bound them; what else it lacks, it has none of.
        capacity = [
            [each.get(name, 1 << 40 if name == PODS else 0) for name in self.resources]
            for each in listed
        ]
        return ConstraintTables(
            classes=tuple(self.built),
            admits=np.array(self.filter_rows, bool).reshape(-1, count),
            resources=self.resources,
            capacity=np.array(capacity, np.int64).reshape(count, -1),
            domain_of=np.array([d.of for d in self.domains], np.int32).reshape(-1, count),
            is_counted=np.array(
                [np.frombuffer(g.eligible, bool) if g.eligible else np.ones(count, bool)
                 for g in groups], bool,
            ).reshape(-1, count),
            num_domains=np.array([d.total for d in self.domains], np.int32),
            num_eligible=np.array([d.eligible for d in self.domains], np.int32),
            counted_by=tuple(group.counted_by for group in groups),
        )  # fmt: skip


class _Domains(NamedTuple):
    """Numbers the values of a topology key; those with nodes that count come first."""

    of: npt.NDArray[np.int32]  # (num_nodes,)
    total: int
    eligible: int
    is_local: bool  # no domain has two nodes


def _domains(cluster: Cluster, counted: _Counted) -> _Domains:
    count = len(cluster)
    if isinstance(counted.owner, HostPort):
        return _Domains(np.arange(count, dtype=np.int32), count, count, True)
    if isinstance(counted.owner, str):  # a claim is in use wherever the pod is
        return _Domains(np.zeros(count, np.int32), 1, 1, count == 1)
    labels = cluster.labels or ({},) * count
    values = [each.get(counted.topology_key) for each in labels]
    is_eligible = (
        np.frombuffer(counted.eligible, bool) if counted.eligible else np.ones(count, bool)
    )
    first = [value for value, counts in zip(values, is_eligible, strict=True) if counts]
    number: dict[str | None, int] = {}
    for value in [*first, *values]:
        if value is not None:
            number.setdefault(value, len(number))
    of = np.array(
        [number.get(value, -1) if value is not None else -1 for value in values], np.int32
    )
    eligible = len({value for value in first if value is not None})
    sizes = np.bincount(of[of >= 0], minlength=1)
    return _Domains(of, len(number), eligible, bool(sizes.max(initial=0) <= 1))


def _anchors(group: _Counted) -> list[tuple[str, str] | None]:
    """Lists labels of which a pod has one if the group selects it; None where none is needed."""
    if isinstance(group.owner, HostPort | str):
        return []
    selectors = (group.owner[0],) if isinstance(group.owner, tuple) else group.selectors
    for selector in selectors:
        for each in selector.requirements or ():
            if each.operator == "In":
                return [(each.key, value) for value in dict.fromkeys(each.values)]
    return [None]


def _within(selector: PodSelector, namespace: str) -> PodSelector:
    """Fills in the pod's own namespace where a term names none."""
    if selector.namespaces == frozenset():
        return PodSelector(selector.requirements, frozenset({namespace}))
    return selector


def _clash(one: HostPort, other: HostPort) -> bool:
    if (one.port, one.protocol) != (other.port, other.protocol):
        return False
    wild = ("", "0.0.0.0")
    return one.address in wild or other.address in wild or one.address == other.address
