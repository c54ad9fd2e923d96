"""Finds the pods that must start together, as their objects and their controllers say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podium.model.cluster import LIMIT, NodeSpec
from podium.model.constraints import Constraints, Gang, NodeTerm, Requirement
from podium.traces.fields import mapping_at, mappings_at, text_of, texts_at, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.domains import LEVELS, Level, level_of
from podium.traces.notes import counted, some

_MINIMUM = "spec.minMember"


@dataclass(frozen=True, slots=True)
class Membership:
    """Says to which group a pod belongs, as the pod itself tells."""

    source: str  # whose group it is; finds the object that describes it
    name: str
    minimum: int | None = None
    topology: str = ""  # the label key of the domain that must hold the whole group
    needs_object: bool = False  # without the object it is no gang


@dataclass(frozen=True, slots=True)
class Rule:
    """Says what the object of a group asks for."""

    minimum: int | None = None
    topology: str = ""
    tier: int = 0  # of Volcano's HyperNodes, 1 is the narrowest
    is_gang: bool = True
    has_parts: bool = False  # groups inside the group, each with rules of its own


@dataclass(frozen=True, slots=True)
class Marks:
    """Holds the parts of a Pod object in which groups are named."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]
    owner: str  # name of the controller

    def first(self, *names: str) -> str:
        """Gives the first label or annotation that is there."""
        found = (self.labels.get(name) or self.annotations.get(name) for name in names)
        return next((text for text in found if text), "")


def read_membership(marks: Marks) -> Membership | None:
    """Finds the group of a pod; what says it most plainly counts first."""
    named = (marks.labels, marks.annotations, marks.spec)
    if all(_NAMES.isdisjoint(part) for part in named):
        return None  # as most pods
    for find in _FINDERS:
        found = find(marks)
        if found is not None:
            return found
    return None


def _native(marks: Marks) -> Membership | None:
    group = mapping_at(marks.spec, "schedulingGroup", "spec.schedulingGroup")
    at = "spec.schedulingGroup.podGroupName"
    name = text_of(group.get("podGroupName"), at)
    return Membership("scheduling.k8s.io", name) if name else None


def _workload_ref(marks: Marks) -> Membership | None:
    """Reads `spec.workloadRef`, which Kubernetes 1.35 alone has."""
    reference = mapping_at(marks.spec, "workloadRef", "spec.workloadRef")
    parts = [
        text_of(reference.get(name), f"spec.workloadRef.{name}")
        for name in ("name", "podGroup", "podGroupReplicaKey")
    ]
    name = "/".join(part for part in parts if part)
    return Membership(f"workload {parts[1]}", name) if parts[0] else None


def _labelled(marks: Marks) -> Membership | None:
    """Reads the labels of coscheduling, Kueue, Volcano and KAI, in this order."""
    for source, names in keys.GANG_KEYS.items():
        name = marks.first(*names)
        if name:
            minimum = marks.first(*keys.GANG_MINIMUMS)
            return Membership(
                source=source,
                name=name,
                minimum=whole_of(minimum, keys.GANG_MINIMUMS[0], 1) if minimum else None,
                topology=_topology(marks),
            )
    return None


def _podset(marks: Marks) -> Membership | None:
    """Reads a pod set of Kueue that must share a domain, though nothing names a pod group."""
    if not marks.first(keys.KUEUE_TOPOLOGY):
        return None
    owner = marks.first(keys.KUEUE_WORKLOAD) or marks.owner
    name = "/".join(part for part in (owner, marks.first(keys.KUEUE_PODSET)) if part)
    return Membership("podset", name, topology=_topology(marks)) if name else None


def _leader_worker_set(marks: Marks) -> Membership | None:
    owner, index = (marks.labels.get(f"{keys.LWS}/{part}", "") for part in ("name", "group-index"))
    if not owner or not index:
        return None
    size = marks.first(f"{keys.LWS}/size")
    minimum = whole_of(size, f"metadata.annotations.{keys.LWS}/size", 1) if size else None
    return Membership("LeaderWorkerSet", f"{owner}/{index}", minimum, _topology(marks))


def _job_set(marks: Marks) -> Membership | None:
    name = marks.labels.get(keys.JOB_SET, "")
    return Membership("JobSet", name, topology=_topology(marks)) if name else None


def _indexed_job(marks: Marks) -> Membership | None:
    name = next((marks.labels[key] for key in keys.JOB_NAMES if marks.labels.get(key)), "")
    if not name or not marks.first(keys.JOB_INDEX):
        return None
    return Membership("Job", name, topology=_topology(marks), needs_object=True)


def _topology(marks: Marks) -> str:
    return marks.first(keys.KUEUE_TOPOLOGY, keys.KAI_TOPOLOGY)


_FINDERS: tuple[Callable[[Marks], Membership | None], ...] = (
    _native, _workload_ref, _labelled, _podset, _leader_worker_set, _job_set, _indexed_job,
)  # fmt: skip
_NAMES = frozenset(
    {"schedulingGroup", "workloadRef", keys.KUEUE_TOPOLOGY, f"{keys.LWS}/name", keys.JOB_SET,
     *keys.JOB_NAMES, *(name for names in keys.GANG_KEYS.values() for name in names)}
)  # fmt: skip


def _native_rule(spec: Mapping[str, Any]) -> Rule:
    return _policy_rule(spec, "schedulingPolicy")


def _policy_rule(spec: Mapping[str, Any], name: str) -> Rule:
    policy = mapping_at(spec, name, f"spec.{name}")
    limits = mapping_at(spec, "schedulingConstraints", "spec.schedulingConstraints")
    levels = mappings_at(limits, "topology", "spec.schedulingConstraints.topology")
    topology = next((text_of(each.get("key"), "topology.key") for each in levels), "")
    if policy.get("gang") is None:
        return Rule(topology=topology, is_gang=bool(topology))
    gang = mapping_at(policy, "gang", f"spec.{name}.gang")
    return Rule(_minimum(gang, "minCount", f"spec.{name}.gang.minCount"), topology)


def _coscheduling_rule(spec: Mapping[str, Any]) -> Rule:
    return Rule(_minimum(spec, "minMember", _MINIMUM))


def _volcano_rule(spec: Mapping[str, Any]) -> Rule:
    topology = mapping_at(spec, "networkTopology", "spec.networkTopology")
    # The mode is hard where nothing is written.
    is_hard = text_of(topology.get("mode"), "spec.networkTopology.mode") in ("", "hard")
    tier = topology.get("highestTierAllowed") if is_hard else None
    return Rule(
        minimum=_minimum(spec, "minMember", _MINIMUM),
        tier=0 if tier is None else whole_of(tier, "spec.networkTopology.highestTierAllowed", 0),
        has_parts=bool(spec.get("subGroupPolicy")),
    )


def _kai_rule(spec: Mapping[str, Any]) -> Rule:
    topology = mapping_at(spec, "topologyConstraint", "spec.topologyConstraint")
    at = "spec.topologyConstraint.requiredTopologyLevel"
    return Rule(
        minimum=_minimum(spec, "minMember", _MINIMUM),
        topology=text_of(topology.get("requiredTopologyLevel"), at),
        has_parts=bool(spec.get("subGroups")),
    )


def _job_rule(spec: Mapping[str, Any]) -> Rule:
    """Takes an Indexed Job whose pods all run at once for a gang, as WorkloadWithJob does."""
    is_indexed = text_of(spec.get("completionMode"), "spec.completionMode") == "Indexed"
    parallelism = _minimum(spec, "parallelism", "spec.parallelism") or 1
    completions = _minimum(spec, "completions", "spec.completions")
    is_gang = is_indexed and parallelism == completions and parallelism > 1
    return Rule(parallelism, is_gang=is_gang)


def _job_set_rule(spec: Mapping[str, Any]) -> Rule:
    startup = mapping_at(spec, "startupPolicy", "spec.startupPolicy")
    order = text_of(startup.get("startupPolicyOrder"), "spec.startupPolicy.startupPolicyOrder")
    total, is_gang = 0, order != "InOrder"
    for index, item in enumerate(mappings_at(spec, "replicatedJobs", "spec.replicatedJobs")):
        at = f"spec.replicatedJobs[{index}]"
        is_gang = is_gang and not item.get("dependsOn")
        template = mapping_at(item, "template", f"{at}.template")
        job = mapping_at(template, "spec", f"{at}.template.spec")
        pods = _minimum(job, "parallelism", f"{at}.template.spec.parallelism") or 1
        most = _minimum(job, "completions", f"{at}.template.spec.completions")
        pods = pods if most is None else min(pods, most)
        replicas = item.get("replicas")
        total += pods * (1 if replicas is None else whole_of(replicas, f"{at}.replicas"))
    return Rule(min(total, LIMIT) or None, is_gang=is_gang)


def _leader_worker_set_rule(spec: Mapping[str, Any]) -> Rule:
    # Workers that are made once their leader is ready cannot start together with it.
    startup = text_of(spec.get("startupPolicy"), "spec.startupPolicy")
    template = mapping_at(spec, "leaderWorkerTemplate", "spec.leaderWorkerTemplate")
    size = _minimum(template, "size", "spec.leaderWorkerTemplate.size")
    return Rule(size, is_gang=startup != "LeaderReady")


def _minimum(parent: Mapping[str, Any], name: str, field_name: str) -> int | None:
    value = parent.get(name)
    return None if value is None else whole_of(value, field_name)


_RULES: dict[tuple[str, str], tuple[str, Callable[[Mapping[str, Any]], Rule]]] = {
    ("scheduling.k8s.io", "PodGroup"): ("scheduling.k8s.io", _native_rule),
    ("scheduling.x-k8s.io", "PodGroup"): ("coscheduling", _coscheduling_rule),
    ("scheduling.sigs.k8s.io", "PodGroup"): ("coscheduling", _coscheduling_rule),
    ("scheduling.volcano.sh", "PodGroup"): ("volcano", _volcano_rule),
    ("scheduling.run.ai", "PodGroup"): ("kai", _kai_rule),
    ("batch", "Job"): ("Job", _job_rule),
    ("jobset.x-k8s.io", "JobSet"): ("JobSet", _job_set_rule),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): ("LeaderWorkerSet", _leader_worker_set_rule),
}


@dataclass(slots=True)
class Groups:
    """Collects the objects that describe groups of pods."""

    rules: dict[tuple[str, str, str], Rule] = field(default_factory=dict)

    def takes(self, value: Mapping[str, Any]) -> bool:
        """Tells whether an object describes a group."""
        group, kind = group_and_kind(value)
        return (group, kind) in _RULES or (group, kind) == ("scheduling.k8s.io", "Workload")

    def add(self, value: Mapping[str, Any]) -> None:
        """Reads an object that describes a group, or several of them."""
        self.rules.update(rules_of(value))

    def remove(self, value: Mapping[str, Any]) -> None:
        """Forgets what an object said."""
        for key in rules_of(value):
            self.rules.pop(key, None)

    def rule(self, membership: Membership, namespace: str) -> Rule | None:
        """Finds what the object of a pod's group says, None where the object is not there."""
        name = membership.name
        if membership.source.startswith("workload ") or membership.source == "LeaderWorkerSet":
            name = name.partition("/")[0]
        return self.rules.get((membership.source, namespace or "default", name))


def rules_of(value: Mapping[str, Any]) -> dict[tuple[str, str, str], Rule]:
    """Reads the rules of the groups that an object describes, by source, namespace and name."""
    group, kind = group_and_kind(value)
    metadata = mapping_at(value, "metadata", "metadata")
    name = text_of(metadata.get("name"), "metadata.name")
    namespace = text_of(metadata.get("namespace"), "metadata.namespace") or "default"
    spec = mapping_at(value, "spec", "spec")
    if kind == "Workload":
        return {(f"workload {part}", namespace, name): rule for part, rule in _workload_rules(spec)}
    source, read = _RULES[(group, kind)]
    rule = read(spec)
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    required = annotations.get(keys.KAI_TOPOLOGY, "")
    return {(source, namespace, name): replace(rule, topology=rule.topology or required)}


def _workload_rules(spec: Mapping[str, Any]) -> Iterator[tuple[str, Rule]]:
    """Reads the groups inside a Workload of Kubernetes 1.35; later ones have PodGroup objects."""
    for index, part in enumerate(mappings_at(spec, "podGroups", "spec.podGroups")):
        name = text_of(part.get("name"), f"spec.podGroups[{index}].name")
        yield name, _policy_rule(part, "policy")


def group_and_kind(value: Mapping[str, Any]) -> tuple[str, str]:
    """Splits an object's apiVersion and kind into the API group and the kind."""
    version, kind = value.get("apiVersion"), value.get("kind")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    return group, kind if isinstance(kind, str) else ""


@dataclass(frozen=True, slots=True)
class Member:
    """Is one pod of the dump that belongs to a group."""

    membership: Membership
    namespace: str
    is_pending: bool
    is_live: bool
    is_succeeded: bool


@dataclass(frozen=True, slots=True)
class Gangs:
    """Holds the gangs of a dump, and the name of each member's gang."""

    names: tuple[str, ...]  # aligned with the members, empty = the pod starts alone
    rules: tuple[Gang, ...]
    exists: Mapping[str, str]  # by gang: the label key that its nodes must have
    notes: tuple[str, ...]


def resolve_gangs(
    members: Sequence[Member | None], groups: Groups, nodes: Sequence[NodeSpec]
) -> Gangs:
    """Puts pods and objects together; groups whose pods may start one by one are no gangs."""
    return _Resolver(groups, nodes).resolve(members)


def whole(gangs: Gangs) -> Gangs:
    """Lets gangs start with the pods that are there: members that ran may be gone by now."""
    sizes = Counter(gangs.names)
    rules = tuple(
        replace(each, minimum=min(each.minimum, sizes[each.name])) for each in gangs.rules
    )
    return replace(gangs, rules=rules)


class _Resolver:
    """Works out the gangs of one dump."""

    def __init__(self, groups: Groups, nodes: Sequence[NodeSpec]) -> None:
        self.groups = groups
        self.nodes = nodes
        self.levels: dict[str, Level | None] = {}
        self.remarks: dict[str, list[str]] = defaultdict(list)  # by text: the gangs
        self.rules: list[Gang] = []
        self.exists: dict[str, str] = {}

    def resolve(self, members: Sequence[Member | None]) -> Gangs:
        by_group: dict[tuple[str, str], list[Member]] = defaultdict(list)
        for member in members:
            if member is not None:
                by_group[_group(member)].append(member)
        spaces = Counter(name for _, name in by_group)
        names = {
            group: f"{group[0]}/{group[1]}" if spaces[group[1]] > 1 else group[1]
            for group in by_group
        }
        kept = {group: self._gang(names[group], found) for group, found in by_group.items()}
        return Gangs(
            names=tuple(
                names[_group(each)] if each is not None and kept[_group(each)] else ""
                for each in members
            ),
            rules=tuple(self.rules),
            exists=self.exists,
            notes=tuple(f"{text}: {some(gangs)}" for text, gangs in self.remarks.items()),
        )

    def _gang(self, name: str, members: list[Member]) -> bool:
        """Adds a gang; tells whether it is one."""
        membership = members[0].membership
        rule = self.groups.rule(membership, members[0].namespace)
        if rule is None and membership.needs_object:
            if any(member.is_pending for member in members):
                self.remarks["Indexed Jobs whose Job is not in the file start pod by pod"] += [name]
            return False
        rule = rule or Rule()
        present = sum(not member.is_succeeded for member in members)
        succeeded = len(members) - present
        wanted = rule.minimum if membership.minimum is None else membership.minimum
        minimum = present if wanted is None else max(1, wanted - succeeded)
        domain = self._domain(name, rule, membership.topology)
        if not present or not rule.is_gang or (wanted is not None and wanted <= 1 and not domain):
            return False
        self._remark(name, members, rule, minimum - present, has_minimum=wanted is not None)
        self.rules.append(Gang(name, minimum, domain or ""))
        return True

    def _remark(
        self, name: str, members: list[Member], rule: Rule, lacking: int, *, has_minimum: bool
    ) -> None:
        if rule.has_parts:
            self.remarks["groups inside a group are not honoured"] += [name]
        if not any(member.is_pending for member in members):
            return
        if lacking > 0:
            self.remarks["gangs that wait for pods which are not there"] += [
                f"{name} ({counted(lacking, 'pod')})"
            ]
        source = members[0].membership.source
        if not has_minimum and source in keys.GANG_KEYS and any(m.is_live for m in members):
            self.remarks["gangs whose PodGroup is not in the file need all their pods"] += [name]

    def _domain(self, name: str, rule: Rule, required: str) -> Level | None:
        key = rule.topology or required
        if rule.tier:
            level = LEVELS[rule.tier - 1] if rule.tier <= len(LEVELS) else None
            if level is not None and any(getattr(node, level) for node in self.nodes):
                return level
            self.remarks[f"tier {rule.tier} of the network topology is not honoured"] += [name]
        if not key or not self.nodes:
            return None
        if key not in self.levels:
            self.levels[key] = level_of(key, self.nodes)
        level = self.levels[key]
        if level is None:
            text = f"the required topology {key} is not honoured, no rack, block or zone is like it"
            self.remarks[text] += [name]
        elif any(getattr(node, level) and key not in node.labels for node in self.nodes):
            self.exists[name] = key  # nodes outside of every domain are out anyway
        return level


def _group(member: Member) -> tuple[str, str]:
    return member.namespace or "default", member.membership.name


def on_labelled_nodes(constraints: Constraints, key: str) -> Constraints:
    """Adds that a node must have a label, whatever its value."""
    exists = Requirement(key, "Exists")
    if constraints.node_terms is None:
        return replace(constraints, node_terms=(NodeTerm((exists,)),))
    terms = tuple(
        replace(term, labels=tuple(dict.fromkeys((*term.labels, exists))))
        for term in constraints.node_terms
        if term.labels or term.fields  # one without requirements admits no node
    )
    return replace(constraints, node_terms=terms)
