"""Writes what constrains pods and nodes into the header of a saved result, and reads it back.

Only what there is is written: a result without constraints has none of these keys. A file from
elsewhere may hold anything, so that every value is checked, and so is the work that the rules of
all pods on all nodes would make.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from podium.model import Cluster, Workload
from podium.model.cluster import LIMIT
from podium.model.constraints import (
    MOST_TERMS,
    Constraints,
    Effect,
    Gang,
    HostPort,
    NodeTerm,
    Operator,
    PodSelector,
    PodTerm,
    Requirement,
    Spread,
    Taint,
    Toleration,
    VolumeRule,
)
from podium.model.disruption import DisruptionBudget, is_amount
from podium.model.records import GPU_MILLI, MAX_MODELS
from podium.sim.gangs import LEVELS

CLUSTER_KEYS = "gpu_memory_mib gpu_replicas has_partitions taints extended blocks zones"
WORKLOAD_KEYS = "gang_rules namespaces labels constraints bound_to bound_slots is_terminating"
PREEMPTION_KEYS = "age_s never_preempts budgets is_unready"

MOST_CELLS = 100_000_000
"""Of a table of counters by group and node, or of resources by node."""

MOST_CHECKS = 500_000_000
"""Comparisons that the rules of all pods may take; thousands of each on thousands of nodes do."""

_MOST_AMOUNT = 2**62
_MOST_SLOTS = 16
_OPERATORS = ("Equal", "Exists", "Lt", "Gt", "")

Value = TypeVar("Value")


def cluster_extras(cluster: Cluster) -> dict[str, Any]:
    """Describes what nodes have beside their records, where they have it."""
    found = {
        "gpu_memory_mib": list(cluster.gpu_memory_mib),
        "gpu_replicas": list(cluster.gpu_replicas),
        "has_partitions": list(cluster.has_partitions),
        "taints": _indexed(cluster.taints, lambda taints: [astuple(each) for each in taints]),
        "extended": _indexed(cluster.extended, dict),
        "blocks": _indexed(cluster.blocks),
        "zones": _indexed(cluster.zones),
    }
    return {key: value for key, value in found.items() if value}


def read_cluster_extras(given: Mapping[str, Any]) -> dict[str, Any]:
    """Reads them as arguments of a cluster."""
    models = len(given["gpu_models"])
    memory = tuple(_whole(each, 0, LIMIT) for each in given.get("gpu_memory_mib", []))
    replicas = tuple(_whole(each, 1, GPU_MILLI) for each in given.get("gpu_replicas", []))
    partitions = tuple(_flag(each) for each in given.get("has_partitions", []))
    if models > MAX_MODELS or not {len(memory), len(replicas), len(partitions)} <= {0, models}:
        raise ValueError
    nodes = len(given["names"])
    return {
        "gpu_memory_mib": memory,
        "gpu_replicas": replicas,
        "has_partitions": partitions,
        "taints": _read(given.get("taints"), _taints, nodes),
        "extended": _read(given.get("extended"), _amounts, nodes),
        "blocks": _read(given.get("blocks"), _text, nodes),
        "zones": _read(given.get("zones"), _text, nodes),
    }


def workload_extras(workload: Workload) -> dict[str, Any]:
    """Describes what pods demand beside their records, where they demand it."""
    found = {
        "gang_rules": [astuple(rule) for rule in workload.gang_rules],
        "namespaces": _indexed(workload.namespaces),
        "labels": _indexed(workload.labels, dict),
        "constraints": _indexed(workload.constraints, _constraints_of),
        "bound_to": _indexed(workload.bound_to),
        "bound_slots": _indexed(workload.bound_slots),
        "is_terminating": _indexed(workload.is_terminating),
    }
    return {key: value for key, value in found.items() if value}


def preemption_extras(workload: Workload) -> dict[str, Any]:
    """Describes what only preemption asks of pods, where they have it."""
    found = {
        "age_s": [] if workload.age_s is None else workload.age_s.tolist(),
        "never_preempts": _indexed(workload.never_preempts),
        "budgets": [_budget_of(each) for each in workload.budgets],
        "is_unready": _indexed(workload.is_unready),
    }
    return {key: value for key, value in found.items() if value}


def read_workload_extras(given: Mapping[str, Any]) -> dict[str, Any]:
    """Reads them as arguments of a workload."""
    pods = len(given["names"])
    rules = tuple(_gang(each) for each in given.get("gang_rules", []))
    if rules and [rule.name for rule in rules] != given["gangs"]:
        raise ValueError
    return {
        "gang_rules": rules,
        "namespaces": _read(given.get("namespaces"), _text, pods),
        "labels": _read(given.get("labels"), _labels, pods),
        "constraints": _read(given.get("constraints"), _constraints, pods),
        "bound_to": _read(given.get("bound_to"), _text, pods),
        "bound_slots": _read(given.get("bound_slots"), _slots, pods),
        "is_terminating": _read(given.get("is_terminating"), _flag, pods),
        "age_s": _ages(given.get("age_s"), pods),
        "never_preempts": _read(given.get("never_preempts"), _flag, pods),
        "budgets": tuple(_budget(each) for each in given.get("budgets", [])),
        "is_unready": _read(given.get("is_unready"), _flag, pods),
    }


def _budget_of(each: DisruptionBudget) -> list[Any]:
    amounts = (each.min_available, each.max_unavailable, each.desired_healthy)
    written = [each.name, each.namespace, _selector_of(each.selector), *amounts]
    is_later = each.disruptions_allowed is not None or each.disrupted
    return [*written, each.disruptions_allowed, list(each.disrupted)] if is_later else written


def _budget(given: Any) -> DisruptionBudget:
    name, namespace, selector, least, most, desired, *later = given
    allowed, disrupted = later or (None, [])
    return DisruptionBudget(
        _text(name), _selector(selector), _text(namespace), _share(least), _share(most),
        _some(desired), _some(allowed), tuple(_text(each) for each in _list(disrupted)),
    )  # fmt: skip


def _some(given: Any) -> int | None:
    return None if given is None else _whole(given, 0, LIMIT)


def _share(given: Any) -> str:
    if _text(given) and not is_amount(given):
        raise ValueError
    return str(given)


def _ages(given: Any, count: int) -> npt.NDArray[np.float64] | None:
    if given is None:
        return None
    found = np.array([each if type(each) in (int, float) else np.nan for each in _list(given)])
    if len(found) != count or not ((found >= 0) & (found < np.inf)).all():
        raise ValueError
    return found


def check_work(cluster: Cluster, workload: Workload) -> None:
    """Refuses rules that would take longer to write down than those of any run.

    Raises:
        ValueError: there are too many.
    """
    count = len(workload)
    if sum(_size(_budget_of(each)) for each in workload.budgets) * count > MOST_CHECKS:
        raise ValueError
    if not workload.constraints:
        return
    namespaces, labels = workload.namespaces or ("",) * count, workload.labels or ({},) * count
    given = {id(each): each for each in workload.constraints}
    sizes = {key: _size(_constraints_of(each)) for key, each in given.items()}
    owners = {(id(c), n) for c, n in zip(workload.constraints, namespaces, strict=True)}
    groups = sum(_groups(given[key]) for key, _ in owners)
    selected = sum(sizes[key] for key, _ in owners)
    classes = len(set(zip(map(id, workload.constraints), namespaces, map(id, labels), strict=True)))
    resources = 1 + sum(len(each.extended) for each in given.values())
    nodes = len(cluster) + sum(map(len, cluster.taints))
    if max(groups * nodes, resources * nodes, resources * classes) > MOST_CELLS:
        raise ValueError
    if max(sum(sizes.values()) * nodes, selected * classes) > MOST_CHECKS:
        raise ValueError


def _groups(each: Constraints) -> int:
    twice = 2 * len(each.anti_affinity)
    once = (each.affinity, each.spread, each.host_ports, each.sole_claims)
    return twice + sum(map(len, once))


def _size(written: Any) -> int:
    if isinstance(written, list | tuple):
        return 1 + sum(map(_size, written))
    return 1


def _indexed(values: Sequence[Any], write: Callable[[Any], Any] = lambda value: value) -> Any:
    """Lists values that repeat once, and which of them each place has."""
    number: dict[str, int] = {}
    known: dict[int, int] = {}  # many places share one object
    distinct: list[Any] = []
    for value in values:
        if id(value) in known:
            continue
        written = write(value)
        if repr(written) not in number:
            number[repr(written)] = len(distinct)
            distinct.append(written)
        known[id(value)] = number[repr(written)]
    return {"distinct": distinct, "of": [known[id(value)] for value in values]} if values else {}


def _read(given: Any, read: Callable[[Any], Value], count: int) -> tuple[Value, ...]:
    if given is None:
        return ()
    distinct = [read(each) for each in _list(given["distinct"])]
    of = [_whole(each, 0, len(distinct) - 1) for each in _list(given["of"])]
    if len(of) != count or set(given) != {"distinct", "of"}:
        raise ValueError
    return tuple(distinct[each] for each in of)


def _constraints_of(each: Constraints) -> list[Any]:
    return [
        each.node_labels,
        _places_of(each.node_terms),
        [astuple(toleration) for toleration in each.tolerations],
        [_term_of(term) for term in each.affinity],
        [_term_of(term) for term in each.anti_affinity],
        [
            [
                _selector_of(spread.selector), spread.topology_key, spread.max_skew,
                spread.min_domains, spread.honors_affinity, spread.honors_taints,
            ]
            for spread in each.spread
        ],
        [astuple(port) for port in each.host_ports],
        each.extended,
        *_volumes_of(each),
    ]  # fmt: skip


def _volumes_of(each: Constraints) -> list[Any]:
    if not each.volumes and not each.sole_claims:
        return []
    rules = [
        [rule.text, list(map(_places_of, rule.choices)), _claims_of(rule)] for rule in each.volumes
    ]
    return [rules, each.sole_claims]


def _claims_of(rule: VolumeRule) -> list[list[int]]:
    return [list(each) for each in rule.claims if rule.choices]


def _places_of(terms: tuple[NodeTerm, ...] | None) -> list[Any] | None:
    return None if terms is None else [[_needs_of(t.labels), _needs_of(t.fields)] for t in terms]


def _needs_of(requirements: Iterable[Requirement]) -> list[Any]:
    return [[each.key, each.operator, each.values] for each in requirements]


def _selector_of(selector: PodSelector) -> list[Any]:
    wanted, namespaces = selector.requirements, selector.namespaces
    return [
        None if wanted is None else _needs_of(wanted),
        None if namespaces is None else sorted(namespaces),
    ]


def _term_of(term: PodTerm) -> list[Any]:
    return [_selector_of(term.selector), term.topology_key]


def _constraints(given: Any) -> Constraints:
    labels, terms, tolerations, affinity, anti_affinity, spread, ports, extended, *volumes = given
    rules, claims = volumes or ([], [])
    if max(map(len, (affinity, anti_affinity, spread))) > MOST_TERMS:
        raise ValueError
    return Constraints(
        node_labels=_each(labels, lambda each: _pair(each, _text)),
        node_terms=_places(terms),
        tolerations=_each(tolerations, _toleration),
        affinity=_each(affinity, _pod_term),
        anti_affinity=_each(anti_affinity, _pod_term),
        spread=_each(spread, _spread),
        host_ports=_each(ports, _port),
        extended=_each(extended, lambda each: _pair(each, _amount)),
        volumes=_each(rules, _volume_rule),
        sole_claims=_each(claims, _text),
    )


def _volume_rule(given: Any) -> VolumeRule:
    text, choices, claims = given
    most = len(_list(choices)) - 1
    wanted = _each(claims, lambda claim: _each(claim, lambda each: _whole(each, 0, most)))
    return VolumeRule(_text(text), _each(choices, _places), wanted if choices else ((0,),))


def _places(given: Any) -> tuple[NodeTerm, ...] | None:
    return None if given is None else _each(given, _node_term)


def _node_term(given: Any) -> NodeTerm:
    labels, fields = given
    return NodeTerm(_each(labels, _requirement), _each(fields, _requirement))


def _requirement(given: Any) -> Requirement:
    key, operator, values = given
    return Requirement(_text(key), _one_of(operator, get_args(Operator)), _each(values, _text))


def _toleration(given: Any) -> Toleration:
    key, operator, value, effect = given
    return Toleration(
        _text(key), _one_of(operator, _OPERATORS), _text(value), _one_of(effect, get_args(Effect))
    )


def _pod_term(given: Any) -> PodTerm:
    selector, key = given
    return PodTerm(_selector(selector), _text(key))


def _selector(given: Any) -> PodSelector:
    wanted, namespaces = given
    return PodSelector(
        None if wanted is None else _each(wanted, _requirement),
        None if namespaces is None else frozenset(_each(namespaces, _text)),
    )


def _spread(given: Any) -> Spread:
    selector, key, max_skew, min_domains, honors_affinity, honors_taints = given
    return Spread(
        _selector(selector), _text(key), _whole(max_skew, 0, LIMIT), _whole(min_domains, 0, LIMIT),
        _one_of(honors_affinity, (True, False)), _one_of(honors_taints, (True, False)),
    )  # fmt: skip


def _port(given: Any) -> HostPort:
    port, protocol, address = given
    return HostPort(_whole(port, 0, 65535), _text(protocol), _text(address))


def _gang(given: Any) -> Gang:
    name, minimum, domain = given
    return Gang(_text(name), _whole(minimum, 0, LIMIT), _one_of(domain, tuple(LEVELS)))


def _taints(given: Any) -> tuple[Taint, ...]:
    return _each(given, _taint)


def _taint(given: Any) -> Taint:
    key, value, effect = given
    return Taint(_text(key), _text(value), _one_of(effect, get_args(Effect)))


def _labels(given: Any) -> dict[str, str]:
    return {key: _text(value) for key, value in given.items()}


def _amounts(given: Any) -> dict[str, int]:
    return {key: _amount(value) for key, value in given.items()}


def _slots(given: Any) -> tuple[int, ...]:
    return _each(given, lambda each: _whole(each, 0, _MOST_SLOTS - 1))


def _each(given: Any, read: Callable[[Any], Value]) -> tuple[Value, ...]:
    return tuple(read(each) for each in _list(given))


def _pair(given: Any, read: Callable[[Any], Value]) -> tuple[str, Value]:
    key, value = given
    return _text(key), read(value)


def _list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise TypeError
    return given


def _flag(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TypeError
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


def _amount(given: Any) -> int:
    return _whole(given, 0, _MOST_AMOUNT)


def _whole(given: Any, least: int, most: int) -> int:
    if type(given) is not int or not least <= given <= most:
        raise ValueError
    return given


def _one_of(given: Any, known: tuple[Any, ...]) -> Any:
    if type(given) is not type(known[0]) or given not in known:
        raise ValueError
    return given
