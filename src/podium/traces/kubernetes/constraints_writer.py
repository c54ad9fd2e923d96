"""Writes constraints back as the fields of a Pod's spec that they were read from."""

from __future__ import annotations

from typing import Any

from podium.model.constraints import (
    Constraints,
    NodeTerm,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
)
from podium.traces.kubernetes.constraints import same_namespaces

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def constraint_fields(constraints: Constraints, namespace: str) -> dict[str, Any]:
    """Gives the fields of a pod's spec; host ports belong to a container."""
    fields = {
        "nodeSelector": dict(constraints.node_labels),
        "affinity": _affinity(constraints, namespace),
        "tolerations": [_toleration(each) for each in constraints.tolerations],
        "topologySpreadConstraints": [_spread(each) for each in constraints.spread],
    }
    return {name: value for name, value in fields.items() if value}


def port_fields(constraints: Constraints) -> list[dict[str, Any]]:
    """Gives the ports of a container that takes the pod's host ports."""
    return [
        {"containerPort": each.port, "hostPort": each.port, "protocol": each.protocol}
        | ({"hostIP": each.address} if each.address else {})
        for each in constraints.host_ports
    ]


def taint_fields(taint: Taint) -> dict[str, str]:
    """Gives a taint of a node."""
    return _filled({"key": taint.key, "value": taint.value, "effect": taint.effect})


def volume_fields(constraints: Constraints) -> dict[str, Any]:
    """Gives what the annotation of volumes holds: each place as a NodeSelector, null is any."""
    rules = [
        {
            "text": rule.text,
            "places": [None if each is None else _selector(each) for each in rule.choices],
            "claims": [list(each) for each in rule.claims if rule.choices],
        }
        for rule in constraints.volumes
    ]
    return {"rules": rules, "soleClaims": list(constraints.sole_claims)}


def _selector(terms: tuple[NodeTerm, ...]) -> dict[str, Any]:
    return {"nodeSelectorTerms": [_node_term(term) for term in terms]}


def _affinity(constraints: Constraints, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if constraints.node_terms is not None:
        found["nodeAffinity"] = {_REQUIRED: _selector(constraints.node_terms)}
    for name, pod_terms in (
        ("podAffinity", constraints.affinity),
        ("podAntiAffinity", constraints.anti_affinity),
    ):
        if pod_terms:
            found[name] = {_REQUIRED: [_pod_term(term, namespace) for term in pod_terms]}
    return found


def _node_term(term: NodeTerm) -> dict[str, Any]:
    parts = {"matchExpressions": term.labels, "matchFields": term.fields}
    return {name: [_rule(each) for each in rules] for name, rules in parts.items() if rules}


def _rule(requirement: Requirement) -> dict[str, Any]:
    rule: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    return rule | ({"values": list(requirement.values)} if requirement.values else {})


def _pod_term(term: PodTerm, namespace: str) -> dict[str, Any]:
    fields = {"topologyKey": term.topology_key} | selector_fields(term.selector)
    namespaces = term.selector.namespaces
    if namespaces is None:
        return fields | {"namespaceSelector": {}}
    if namespaces == same_namespaces([namespace]):
        return fields  # its own, which needs no words
    return fields | {"namespaces": sorted(namespaces - {""})}


def selector_fields(selector: PodSelector, name: str = "labelSelector") -> dict[str, Any]:
    """Gives the LabelSelector of pods under its name; nothing for one that selects no pod."""
    if selector.requirements is None:
        return {}
    rules = [_rule(each) for each in selector.requirements]
    return {name: {"matchExpressions": rules} if rules else {}}


def _spread(spread: Spread) -> dict[str, Any]:
    return {
        "maxSkew": spread.max_skew,
        "minDomains": spread.min_domains,
        "topologyKey": spread.topology_key,
        "whenUnsatisfiable": "DoNotSchedule",
        "nodeAffinityPolicy": "Honor" if spread.honors_affinity else "Ignore",
        "nodeTaintsPolicy": "Honor" if spread.honors_taints else "Ignore",
        **selector_fields(spread.selector),
    }


def _toleration(toleration: Toleration) -> dict[str, str]:
    return _filled(
        {
            "key": toleration.key,
            "operator": toleration.operator,
            "value": toleration.value,
            "effect": toleration.effect,
        }
    )


def _filled(fields: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in fields.items() if value}
