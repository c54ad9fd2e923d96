"""Reads from a Pod object what it demands of the node it runs on, as kube-scheduler filters.

The sources are the filters of k8s.io/kubernetes v1.36: nodeaffinity, tainttoleration,
interpodaffinity, podtopologyspread and nodeports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from podium.model.constraints import (
    UNCONSTRAINED,
    Constraints,
    Effect,
    HostPort,
    NodeTerm,
    Operator,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
)
from podium.traces.fields import (
    FieldError,
    flag_of,
    list_at,
    mapping_at,
    mappings_at,
    shown,
    text_of,
    texts_at,
    whole_of,
)

NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""A label that the API server puts on every namespace."""

UNKNOWN_NAMESPACES = "affinity by namespaceSelector is not honoured without Namespace objects"

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POD_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_NODE_OPERATORS = (*_POD_OPERATORS, "Gt", "Lt")
_MOST_PORT = 65535
_FIELDS = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")


@dataclass(slots=True)
class Namespaces:
    """Knows the labels of namespaces, so that a namespaceSelector can be resolved."""

    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # of Namespace objects
    seen: set[str] = field(default_factory=set)  # those that pods name

    def selected(self, requirements: Iterable[Requirement]) -> frozenset[str] | None:
        """Lists the namespaces that have the labels; None where they are not known."""
        listed = list(requirements)
        if not self.labels and any(each.key != NAMESPACE_NAME for each in listed):
            return None
        known = {name: {NAMESPACE_NAME: name} for name in self.seen | self.labels.keys()}
        for name, labels in self.labels.items():
            known[name] |= labels
        return frozenset(n for n in known if all(each.is_met(known[n]) for each in listed))


def read_namespace(value: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Reads the name and the labels of a Namespace object."""
    metadata = mapping_at(value, "metadata", "metadata")
    name = text_of(metadata.get("name"), "metadata.name")
    return name, texts_at(metadata, "labels", "metadata.labels")


@dataclass(frozen=True, slots=True)
class Site:
    """Says where the terms of a pod are read: its own labels, and the namespaces around it."""

    namespace: str
    labels: Mapping[str, str]
    namespaces: Namespaces


def pod_constraints(spec: Mapping[str, Any], site: Site) -> Constraints:
    """Reads every hard constraint of a pod's spec; extended resources are not among them."""
    host_ports = tuple(dict.fromkeys(_host_ports(spec)))
    if not host_ports and not any(spec.get(name) for name in _FIELDS):
        return UNCONSTRAINED
    affinity = mapping_at(spec, "affinity", "spec.affinity")
    selector = texts_at(spec, "nodeSelector", "spec.nodeSelector")
    return Constraints(
        node_labels=tuple(sorted(selector.items())),
        node_terms=_node_terms(affinity),
        tolerations=_tolerations(spec),
        affinity=_pod_terms(affinity, "podAffinity", site),
        anti_affinity=_pod_terms(affinity, "podAntiAffinity", site),
        spread=tuple(_spread(spec, site)),
        host_ports=host_ports,
    )


def has_preferences(spec: Mapping[str, Any]) -> bool:
    """Tells whether a pod prefers nodes without insisting on them."""
    if not spec.get("affinity") and not spec.get("topologySpreadConstraints"):
        return False
    affinity = mapping_at(spec, "affinity", "spec.affinity")
    for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity"):
        field_name = f"spec.affinity.{kind}"
        if list_at(mapping_at(affinity, kind, field_name), _PREFERRED, field_name):
            return True
    constraints = mappings_at(spec, "topologySpreadConstraints", "spec.topologySpreadConstraints")
    return any(each.get("whenUnsatisfiable") == "ScheduleAnyway" for each in constraints)


def liked_company(spec: Mapping[str, Any]) -> tuple[PodSelector, ...]:
    """Lists whom a pod would rather be near or apart from, in whatever namespace.

    kube-scheduler scores nodes for those pods, too; what cannot be read may be about anybody.
    """
    if not spec.get("affinity"):
        return ()
    try:
        return tuple(dict.fromkeys(_liked(mapping_at(spec, "affinity", "spec.affinity"))))
    except FieldError:
        return (PodSelector(()),)


def _liked(affinity: Mapping[str, Any]) -> Iterator[PodSelector]:
    for kind in ("podAffinity", "podAntiAffinity"):
        at = f"spec.affinity.{kind}"
        for each in mappings_at(mapping_at(affinity, kind, at), _PREFERRED, at):
            term = mapping_at(each, "podAffinityTerm", at)
            yield PodSelector(label_selector(term, "labelSelector", at))
    # A required one counts for whom it names (hardPodAffinityWeight).
    for at, term in _required_terms(affinity, "podAffinity"):
        yield PodSelector(label_selector(term, "labelSelector", at))


def selects_namespaces(spec: Mapping[str, Any]) -> bool:
    """Tells whether a term must be read again once every Namespace object is known."""
    if not spec.get("affinity"):
        return False
    affinity = mapping_at(spec, "affinity", "spec.affinity")
    return any(
        bool(term.get("namespaceSelector"))
        for kind in ("podAffinity", "podAntiAffinity")
        for _, term in _required_terms(affinity, kind)
    )


def read_taints(parent: Mapping[str, Any], field_name: str) -> tuple[Taint, ...]:
    """Reads the taints of a node."""
    found = []
    for index, taint in enumerate(mappings_at(parent, "taints", field_name)):
        at = f"{field_name}[{index}]"
        effect = text_of(taint.get("effect"), f"{at}.effect")
        key = text_of(taint.get("key"), f"{at}.key")
        if effect not in _EFFECTS:
            raise FieldError(f"{at}.effect", _expected(_EFFECTS, effect))
        found.append(Taint(key, text_of(taint.get("value"), f"{at}.value"), cast("Effect", effect)))
    return tuple(found)


def _tolerations(spec: Mapping[str, Any]) -> tuple[Toleration, ...]:
    found = []
    for index, item in enumerate(mappings_at(spec, "tolerations", "spec.tolerations")):
        at = f"spec.tolerations[{index}]"
        key, operator, value, effect = (
            text_of(item.get(name), f"{at}.{name}")
            for name in ("key", "operator", "value", "effect")
        )
        if operator not in ("", "Equal", "Exists", "Lt", "Gt"):
            raise FieldError(f"{at}.operator", _expected(("Equal", "Exists", "Lt", "Gt"), operator))
        if effect not in ("", *_EFFECTS):
            raise FieldError(f"{at}.effect", _expected(_EFFECTS, effect))
        if not key and operator != "Exists":
            raise FieldError(f"{at}.operator", "Exists is expected where the key is empty")
        found.append(
            Toleration(key, cast("Any", operator or "Equal"), value, cast("Effect", effect))
        )
    return tuple(dict.fromkeys(found))


def _node_terms(affinity: Mapping[str, Any]) -> tuple[NodeTerm, ...] | None:
    at = "spec.affinity.nodeAffinity"
    node_affinity = mapping_at(affinity, "nodeAffinity", at)
    return node_terms_at(node_affinity, _REQUIRED, f"{at}.{_REQUIRED}")


def node_terms_at(
    parent: Mapping[str, Any], name: str, field_name: str
) -> tuple[NodeTerm, ...] | None:
    """Reads a NodeSelector: one of its terms must be met; None where there is no selector."""
    if parent.get(name) is None:
        return None
    required = mapping_at(parent, name, field_name)
    at = f"{field_name}.nodeSelectorTerms"
    return tuple(
        NodeTerm(
            labels=_requirements(term, "matchExpressions", f"{at}[{index}]", _NODE_OPERATORS),
            fields=_requirements(term, "matchFields", f"{at}[{index}]", _NODE_OPERATORS),
        )
        for index, term in enumerate(mappings_at(required, "nodeSelectorTerms", at))
    )


def _requirements(
    parent: Mapping[str, Any], name: str, field_name: str, operators: tuple[str, ...]
) -> tuple[Requirement, ...]:
    at = f"{field_name}.{name}"
    rules = enumerate(mappings_at(parent, name, at))
    return tuple(_requirement(rule, f"{at}[{index}]", operators) for index, rule in rules)


def _requirement(rule: Mapping[str, Any], at: str, operators: tuple[str, ...]) -> Requirement:
    key = text_of(rule.get("key"), f"{at}.key")
    operator = text_of(rule.get("operator"), f"{at}.operator")
    values = list_at(rule, "values", f"{at}.values")
    if operator not in operators:
        raise FieldError(f"{at}.operator", _expected(operators, operator))
    # As labels.NewRequirement of k8s.io/apimachinery asks for them.
    if operator in ("In", "NotIn") and not values:
        raise FieldError(f"{at}.values", f"at least one value is expected for {operator}")
    if operator in ("Exists", "DoesNotExist") and values:
        raise FieldError(f"{at}.values", f"no value is expected for {operator}")
    if operator in ("Gt", "Lt") and len(values) != 1:
        raise FieldError(f"{at}.values", f"one value is expected for {operator}")
    texts = tuple(text_of(value, f"{at}.values") for value in values)
    return Requirement(key, cast("Operator", operator), texts)


def _required_terms(
    affinity: Mapping[str, Any], kind: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    at = f"spec.affinity.{kind}"
    part = mapping_at(affinity, kind, at)
    for index, term in enumerate(mappings_at(part, _REQUIRED, f"{at}.{_REQUIRED}")):
        yield f"{at}.{_REQUIRED}[{index}]", term


def _pod_terms(affinity: Mapping[str, Any], kind: str, site: Site) -> tuple[PodTerm, ...]:
    return tuple(
        PodTerm(_term_selector(term, at, site), _topology_key(term, at))
        for at, term in _required_terms(affinity, kind)
        if not _is_unknown(term, at, site.namespaces)
    )


def _term_selector(term: Mapping[str, Any], at: str, site: Site) -> PodSelector:
    labels, namespaces = _term_labels(term, at, site), _term_namespaces(term, at, site)
    # Where no namespace has the labels that a term asks for, there is no pod to select.
    is_nowhere = namespaces is not None and not namespaces
    return PodSelector(None if is_nowhere else labels, namespaces)


def _topology_key(term: Mapping[str, Any], at: str) -> str:
    key = text_of(term.get("topologyKey"), f"{at}.topologyKey")
    if not key:
        raise FieldError(f"{at}.topologyKey", "the label key of a domain is expected")
    return key


def _term_namespaces(term: Mapping[str, Any], at: str, site: Site) -> frozenset[str] | None:
    """Gives the namespaces of a term; None is every one of them."""
    named = [text_of(each, f"{at}.namespaces") for each in list_at(term, "namespaces", at)]
    if term.get("namespaceSelector") is None:
        return same_namespaces(named or [site.namespace])
    rules = label_selector(term, "namespaceSelector", at)
    if not rules:
        return None
    return same_namespaces([*named, *(site.namespaces.selected(rules) or ())])


def has_unknown_namespaces(spec: Mapping[str, Any], namespaces: Namespaces) -> bool:
    """Tells whether a term selects namespaces whose labels nobody gave."""
    affinity = mapping_at(spec, "affinity", "spec.affinity")
    return any(
        _is_unknown(term, at, namespaces)
        for kind in ("podAffinity", "podAntiAffinity")
        for at, term in _required_terms(affinity, kind)
    )


def _is_unknown(term: Mapping[str, Any], at: str, namespaces: Namespaces) -> bool:
    rules = label_selector(term, "namespaceSelector", at)
    return bool(rules) and namespaces.selected(rules or ()) is None


def same_namespaces(names: Iterable[str]) -> frozenset[str]:
    """Collects namespaces; a pod that names none is in the one called default."""
    found = frozenset(names)
    return found | {"", "default"} if found & {"", "default"} else found


def _term_labels(term: Mapping[str, Any], at: str, site: Site) -> tuple[Requirement, ...] | None:
    """Reads a term's labelSelector with the label keys merged in, as kube-apiserver does."""
    rules = label_selector(term, "labelSelector", at)
    if rules is None:
        return None  # it selects no pod, and there is nothing to merge into
    operators: tuple[tuple[str, Operator], ...]
    operators = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
    merged = [
        Requirement(key, operator, (site.labels[key],))
        for name, operator in operators
        for key in (text_of(each, f"{at}.{name}") for each in list_at(term, name, f"{at}.{name}"))
        if key in site.labels
    ]
    # What the API server has merged already stands there once.
    return tuple(dict.fromkeys((*rules, *merged)))


def label_selector(
    parent: Mapping[str, Any], name: str, field_name: str
) -> tuple[Requirement, ...] | None:
    """Reads a LabelSelector: none selects nothing, an empty one everything."""
    if parent.get(name) is None:
        return None
    at = f"{field_name}.{name}"
    selector = mapping_at(parent, name, at)
    labels = texts_at(selector, "matchLabels", f"{at}.matchLabels")
    exact = (Requirement(key, "In", (value,)) for key, value in sorted(labels.items()))
    return (*exact, *_requirements(selector, "matchExpressions", at, _POD_OPERATORS))


def _spread(spec: Mapping[str, Any], site: Site) -> Iterator[Spread]:
    name = "topologySpreadConstraints"
    for index, item in enumerate(mappings_at(spec, name, f"spec.{name}")):
        at = f"spec.{name}[{index}]"
        action = text_of(item.get("whenUnsatisfiable"), f"{at}.whenUnsatisfiable")
        if action not in ("", "DoNotSchedule", "ScheduleAnyway"):
            expected = _expected(("DoNotSchedule", "ScheduleAnyway"), action)
            raise FieldError(f"{at}.whenUnsatisfiable", expected)
        if action == "ScheduleAnyway":
            continue
        domains = item.get("minDomains")
        yield Spread(
            selector=PodSelector(_term_labels(item, at, site), same_namespaces([site.namespace])),
            topology_key=_topology_key(item, at),
            max_skew=whole_of(item.get("maxSkew", 1), f"{at}.maxSkew", 1),
            min_domains=1 if domains is None else whole_of(domains, f"{at}.minDomains", 1),
            honors_affinity=_honors(item, "nodeAffinityPolicy", at, is_default=True),
            honors_taints=_honors(item, "nodeTaintsPolicy", at, is_default=False),
        )


def _honors(item: Mapping[str, Any], name: str, at: str, *, is_default: bool) -> bool:
    policy = text_of(item.get(name), f"{at}.{name}")
    if policy not in ("", "Honor", "Ignore"):
        raise FieldError(f"{at}.{name}", _expected(("Honor", "Ignore"), policy))
    return policy == "Honor" if policy else is_default


def _host_ports(spec: Mapping[str, Any]) -> Iterator[HostPort]:
    is_host_network = spec.get("hostNetwork") is not None and flag_of(
        spec["hostNetwork"], "spec.hostNetwork"
    )
    for at, container in _port_containers(spec):
        for index, item in enumerate(mappings_at(container, "ports", f"{at}.ports")):
            where = f"{at}.ports[{index}]"
            port = whole_of(item.get("hostPort") or 0, f"{where}.hostPort", 0, _MOST_PORT)
            if not port and is_host_network:
                # The API server fills it in: on the host's network the ports are the host's.
                port = whole_of(
                    item.get("containerPort") or 0, f"{where}.containerPort", 0, _MOST_PORT
                )
            if port:
                protocol = text_of(item.get("protocol"), f"{where}.protocol") or "TCP"
                address = text_of(item.get("hostIP"), f"{where}.hostIP")
                yield HostPort(port, protocol, "" if address == "0.0.0.0" else address)


def _port_containers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Lists the containers whose ports stay in use: the ordinary ones and the sidecars."""
    for index, container in enumerate(mappings_at(spec, "containers", "spec.containers")):
        yield f"spec.containers[{index}]", container
    for index, container in enumerate(mappings_at(spec, "initContainers", "spec.initContainers")):
        if container.get("restartPolicy") == "Always":
            yield f"spec.initContainers[{index}]", container


def _expected(words: tuple[str, ...], found: str) -> str:
    *first, last = words
    return f"{', '.join(first)} or {last} is expected, not {shown(found)}"
