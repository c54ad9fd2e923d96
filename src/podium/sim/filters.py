"""Applies the filters of kube-scheduler one by one, to tell why nodes refuse a pod.

The core only says whether a node could take a pod (`podium.sim.feasible`). Here every filter is
looked at on its own, for all nodes at once; property tests hold the two together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from podium.model.classes import ABSENT, PODS, PRESENT, SKEW, CountedBy, Rule
from podium.model.cluster import LIMIT
from podium.model.constraints import (
    UNCONSTRAINED,
    UNSCHEDULABLE,
    Constraints,
    Taint,
    VolumeRule,
)
from podium.model.quantity import written_quantity
from podium.model.records import ANY_MODEL, GPU_MILLI, NODE_16
from podium.sim.feasible import Moment
from podium.sim.shapes import NO_WAY

Reason = Literal[
    "cordoned", "taint", "selector", "host-ports", "gpu-model", "gpu", "gpu-share", "gpu-memory",
    "cpu", "memory", "resource", "pods", "volume", "topology-spread", "pod-affinity",
    "pod-anti-affinity",
]  # fmt: skip

MOST_GPUS = NODE_16["gpu_milli_left"].shape[0]
"""A pod that asks for more is shown with so many, and takes its true number of a resource."""

Flags = npt.NDArray[np.bool_]
Whole = npt.NDArray[np.int64]
Filters = Iterator["Filter"]


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """Is one reason for which nodes refuse a pod; nodes stand in rank order."""

    reason: Reason
    text: str  # in the words of kube-scheduler
    fails: Flags  # (num_nodes,)
    is_static: bool = False  # whatever runs or leaves, these nodes refuse
    shortage: Shortage | None = None
    is_of_pod: bool = False  # it is the pod that waits, and no node was looked at


@dataclass(frozen=True, slots=True, eq=False)
class Shortage:
    """Says what nodes have left of something, and how much of it is asked for."""

    free: npt.NDArray[np.signedinteger[Any]]  # (num_nodes,)
    asked: int
    unit: str = ""  # stands behind both numbers
    what: str = "free"

    def told(self, nodes: Flags) -> str:
        """Compares the most that some nodes have left with what is asked for."""
        most = max(0, int(self.free[nodes].max()))
        what = self.what.replace("GPUs", "GPU") if most == 1 else self.what
        asked = "more than any node can have" if self.asked >= LIMIT else self.amount
        return f"{self._written(most)} {what} at most, {asked} asked"

    @property
    def amount(self) -> str:
        """Writes what is asked for."""
        return self._written(self.asked)

    def _written(self, amount: int) -> str:
        is_quantity = self.unit in ("m", "Mi")
        return written_quantity(amount, self.unit) if is_quantity else f"{amount:,}{self.unit}"


def filters_of(moment: Moment, pod: int) -> list[Filter]:
    """Lists the filters that refuse a pod somewhere, in the order of kube-scheduler.

    Resources are one filter there; here they come with the scarcest first.
    """
    volumes = _volumes(moment, pod)
    if any(each.is_of_pod for each in volumes):
        return volumes[:1]
    arrays = moment.state.arrays
    rules = list(_rules(moment, pod))
    found = [
        *_nodes(moment, pod),
        *(rule for rule in rules if rule.reason == "host-ports"),
        *_models(moment, pod),
        *_resources(moment, pod, arrays["nodes"], arrays["resources"]),
        *(rule for rule in rules if rule.reason == "volume"),
        *volumes,
        *(rule for rule in rules if rule.reason not in ("host-ports", "volume")),
    ]
    return [each for each in found if each.fails.any()]


def would_fit_empty(moment: Moment, pod: int, filters: list[Filter]) -> bool:
    """Tells whether a pod fits a node on which nothing runs, given the filters that refuse it."""
    could = np.ones(len(moment.plan.cluster), bool)
    for each in filters:
        if each.is_static:
            could &= ~each.fails
    if not could.any():
        return False
    for each in _resources(moment, pod, *_empty(moment)):
        could &= ~each.fails
    return bool(could.any())


def _empty(moment: Moment) -> tuple[npt.NDArray[Any], Whole]:
    """Gives nodes and other resources before anybody runs."""
    if "empty" not in moment.derived:
        cluster, tables = moment.plan.cluster, moment.plan.arrivals.tables
        order = moment.plan.rank_order
        capacity = np.zeros((1, 0), np.int64) if tables is None else tables.capacity[order]
        moment.derived["empty"] = (cluster.nodes[order], capacity)
    nodes, capacity = moment.derived["empty"]
    return nodes, capacity


def _nodes(moment: Moment, pod: int) -> list[Filter]:
    """Applies what a node's name, labels and taints decide; many shapes of pods ask the same."""
    given = moment.plan.arrivals.constraints
    pods = given[pod] if given else UNCONSTRAINED
    key = (pods.node_labels, pods.node_terms, pods.tolerations)
    if key not in moment.derived:
        moment.derived[key] = [*_taints(moment, pods), *_selectors(moment, pods)]
    found: list[Filter] = moment.derived[key]
    return found


def _selectors(moment: Moment, pods: Constraints) -> Filters:
    if not pods.node_labels and pods.node_terms is None:
        return
    cluster = moment.plan.cluster
    labels = cluster.labels or ({},) * len(cluster)
    order = moment.plan.rank_order.tolist()
    fails = [not pods.selects_node(cluster.names[i], labels[i]) for i in order]
    text = "node(s) didn't match Pod's node affinity/selector"
    yield Filter("selector", text, np.array(fails, bool), is_static=True)


def _volumes(moment: Moment, pod: int) -> list[Filter]:
    """Applies where volumes are; what the pod itself waits for comes first."""
    given = moment.plan.arrivals.constraints
    rules = given[pod].volumes if given else ()
    if rules and rules not in moment.derived:
        found = [_volume(moment, rule) for rule in rules]
        moment.derived[rules] = sorted(found, key=lambda each: not each.is_of_pod)
    return list(moment.derived[rules]) if rules else []


def _volume(moment: Moment, rule: VolumeRule) -> Filter:
    cluster = moment.plan.cluster
    labels = cluster.labels or ({},) * len(cluster)
    order = moment.plan.rank_order.tolist()
    fails = [not rule.is_met(cluster.names[i], labels[i]) for i in order]
    flags = np.array(fails, bool)
    return Filter("volume", rule.text, flags, is_static=True, is_of_pod=rule.is_of_pod)


def _taints(moment: Moment, pods: Constraints) -> Filters:
    given = moment.plan.cluster.taints
    if not given:
        return
    taints = [given[i] for i in moment.plan.rank_order.tolist()]
    of = {each: _untolerated(pods, each) for each in set(taints)}
    first = [of[each] for each in taints]
    named = sorted({each for each in first if each is not None}, key=_cordon_first)
    for taint in named:
        fails = np.array([each == taint for each in first], bool)
        if taint.key == UNSCHEDULABLE:
            yield Filter("cordoned", "node(s) were unschedulable", fails, is_static=True)
        else:
            text = f"node(s) had untolerated taint {{{taint_text(taint)}}}"
            yield Filter("taint", text, fails, is_static=True)


def _untolerated(constraints: Constraints, taints: tuple[Taint, ...]) -> Taint | None:
    """Finds the taint that keeps a pod away, a cordon before any other."""
    kept = [each for each in taints if not constraints.tolerates((each,))]
    return min(kept, key=lambda each: each.key != UNSCHEDULABLE, default=None)


def _cordon_first(taint: Taint) -> tuple[bool, str]:
    return taint.key != UNSCHEDULABLE, taint_text(taint)


def taint_text(taint: Taint) -> str:
    """Writes a taint as kubectl does.

    >>> taint_text(Taint("gpu", "yes")), taint_text(Taint("spot", "", "NoExecute"))
    ('gpu=yes:NoSchedule', 'spot:NoExecute')
    """
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


@dataclass(frozen=True, slots=True, eq=False)
class _Request:
    """Is what a pod asks for in GPUs, and what that is on each node."""

    count: npt.NDArray[np.int32]  # (num_nodes,) GPUs
    milli: npt.NDArray[np.int32]  # (num_nodes,) of each
    records: npt.NDArray[np.int32]  # (num_nodes,) which record of shapes says so, -1 = none
    asked_count: int
    asked_milli: int
    memory_mib: int

    @property
    def is_possible(self) -> Flags:
        """Tells of each node whether some share of its GPUs serves the request."""
        return self.records >= 0


def _request(moment: Moment, pod: int) -> _Request:
    arrays, arrivals = moment.state.arrays, moment.plan.arrivals
    shape, models = int(arrays["shape_of"][pod]), arrays["nodes"]["gpu_model"]
    own, size = arrays["shapes"][shape], len(models)
    asked, memory = arrivals.gpu_asked, arrivals.gpu_memory_mib
    count, milli = (own["gpu_count"], own["gpu_milli"]) if asked is None else asked[pod]
    told = (int(count), int(milli), 0 if memory is None else int(memory[pod]))
    if not moment.state.number("has_shares"):
        index = np.full(size, shape, np.int32)
        return _Request(np.full(size, count), np.full(size, milli), index, *told)
    index = np.where(models >= 0, arrays["shares"][shape][models], shape)
    records = arrays["shapes"][np.maximum(index, 0)]
    return _Request(records["gpu_count"], records["gpu_milli"], index, *told)


def _models(moment: Moment, pod: int) -> Filters:
    """Applies what a node's GPUs are, whatever runs on them."""
    nodes, request = moment.state.arrays["nodes"], _request(moment, pod)
    mask = int(moment.plan.arrivals.pods["gpu_models"][pod])
    if mask != ANY_MODEL:
        models = nodes["gpu_model"].astype(np.int64)
        allowed = (models >= 0) & (np.int64(mask) >> np.maximum(models, 0) & 1 == 1)
        fails = (request.count > 0) & request.is_possible & ~allowed
        text = f"node(s) had another GPU model than {moment.plan.arrivals.gpu_specs[pod]}"
        yield Filter("gpu-model", text, fails, is_static=True)
    if not request.is_possible.all():
        there = Shortage(_gpu_memory(moment, nodes), request.memory_mib, "Mi", "on a GPU")
        text = "node(s) had GPUs with too little memory"
        yield Filter("gpu-memory", text, ~request.is_possible, is_static=True, shortage=there)


def _gpu_memory(moment: Moment, nodes: npt.NDArray[Any]) -> Whole:
    known = moment.plan.cluster.gpu_memory_mib or (0,) * len(moment.plan.cluster.gpu_models)
    memory: Whole = np.array([*known, 0], np.int64)[nodes["gpu_model"]]
    return memory


def _resources(
    moment: Moment, pod: int, nodes: npt.NDArray[Any], resources: npt.NDArray[np.int64]
) -> Filters:
    """Compares what a pod asks for with what nodes have left."""
    others = list(_others(moment, pod, resources))
    many = _devices_beyond_record(moment, pod, others)
    # What a node does not list comes first: it says more than that too few GPUs are free.
    unlisted = [each for each in others if each.is_static and each not in many]
    yield from unlisted
    is_told = np.any([each.fails for each in many], axis=0)
    # Sizes of partitions say more than the part of a GPU that they are.
    is_told |= _has_partitions(moment, nodes) & np.any([each.fails for each in others], axis=0)
    for gpus in _gpus(moment, pod, nodes):
        yield replace(gpus, fails=gpus.fails & ~is_told)
    yield from (replace(each, reason="gpu") for each in many)
    asked = moment.plan.arrivals.pods[pod]
    for name, unit in (("cpu_milli", "m"), ("memory_mib", "Mi")):
        left = np.maximum(nodes[f"{name}_left"], 0)
        reason: Reason = "cpu" if name == "cpu_milli" else "memory"
        short = Shortage(left, int(asked[name]), unit)
        yield Filter(reason, f"Insufficient {reason}", left < asked[name], shortage=short)
    yield from (each for each in others if each not in many and each not in unlisted)


def _has_partitions(moment: Moment, nodes: npt.NDArray[Any]) -> Flags:
    kinds = [kind.has_partitions for kind in moment.plan.cluster.gpu_kinds]
    found: Flags = np.array([*kinds, False], bool)[nodes["gpu_model"]]
    return found


def _devices_beyond_record(moment: Moment, pod: int, others: list[Filter]) -> list[Filter]:
    """Finds the resources that say how many GPUs are asked for where a record cannot."""
    request = _request(moment, pod)
    if request.asked_count < MOST_GPUS or request.asked_milli < GPU_MILLI:
        return []
    return [
        each
        for each in others
        if "gpu" in each.text and each.shortage is not None and each.shortage.asked > MOST_GPUS
    ]


def _others(moment: Moment, pod: int, resources: npt.NDArray[np.int64]) -> Filters:
    tables, classes = moment.plan.arrivals.tables, moment.plan.arrivals.class_of
    if tables is None or classes is None:
        return
    needs = tables.classes[classes[pod]].needs
    own, (_, capacity) = _gpu_resource(moment, pod), _empty(moment)
    rows = zip(tables.resources, needs, resources.T, capacity.T, strict=True)
    for name, need, left, total in rows:
        fails = (left < need) & (need > 0)
        if name == PODS:
            yield Filter("pods", "Too many pods", fails)
            continue
        reason: Reason = "gpu" if name == own else "resource"
        short = Shortage(left, need)
        text = f"Insufficient {name}"
        yield Filter(reason, text, fails & (total == 0), is_static=True, shortage=short)
        yield Filter(reason, text, fails & (total > 0), shortage=short)


def _gpu_resource(moment: Moment, pod: int) -> str:
    """Names the resource by which a pod asks for whole GPUs, where resources bound it."""
    tables, classes = moment.plan.arrivals.tables, moment.plan.arrivals.class_of
    request = _request(moment, pod)
    is_whole = request.asked_milli == GPU_MILLI and not request.memory_mib
    if tables is None or classes is None or not request.asked_count or not is_whole:
        return ""
    needs = zip(tables.resources, tables.classes[classes[pod]].needs, strict=True)
    return next((name for name, need in needs if need and "gpu" in name), "")


def _gpus(moment: Moment, pod: int, nodes: npt.NDArray[Any]) -> Filters:
    request = _request(moment, pod)
    if not request.asked_count:
        return
    free = nodes["gpu_milli_left"]
    fails = _is_short(moment, request.records, nodes) & request.is_possible
    if not fails.any():
        return
    room = free.max(axis=1).astype(np.int64)
    if request.memory_mib:
        by_cores = fails & (request.milli == request.asked_milli)
        short = _on_each(moment, request, nodes, Shortage(room, request.asked_milli, " milli"))
        yield Filter("gpu-share", "Insufficient GPU cores", by_cores, shortage=short)
        fails &= ~by_cores
        memory = room * _gpu_memory(moment, nodes) // GPU_MILLI
        short = _on_each(moment, request, nodes, Shortage(memory, request.memory_mib, "Mi"))
        yield Filter("gpu-memory", "Insufficient GPU memory", fails, shortage=short)
    elif request.asked_milli == GPU_MILLI:
        devices = _devices(moment, nodes, free)
        short = Shortage(devices, request.asked_count, what="free GPUs")
        text = f"Insufficient {_gpu_resource(moment, pod) or 'nvidia.com/gpu'}"
        yield Filter("gpu", text, fails, shortage=short)
    else:
        short = _on_each(moment, request, nodes, Shortage(room, request.asked_milli, " milli"))
        yield Filter("gpu-share", "Insufficient GPU share", fails, shortage=short)


def _on_each(
    moment: Moment, request: _Request, nodes: npt.NDArray[Any], most: Shortage
) -> Shortage | None:
    """Says how much a GPU has left, or how many GPUs have enough where several are asked for."""
    if request.asked_count == 1:
        return replace(most, what="free on a GPU")
    if moment.state.number("has_spreads"):
        return None  # how many GPUs it would be depends on what each has left
    devices = (nodes["gpu_milli_left"] >= request.milli[:, np.newaxis]).sum(axis=1)
    return Shortage(devices, request.asked_count, what=f"GPUs with {most.amount} free")


def _is_short(moment: Moment, records: npt.NDArray[np.int32], nodes: npt.NDArray[Any]) -> Flags:
    """Tells of each node whether too few GPUs have room, over however many a request is spread."""
    arrays, free = moment.state.arrays, nodes["gpu_milli_left"]
    together = free.sum(axis=1, dtype=np.int64)
    short = np.ones(len(free), bool)
    while (records >= 0).any():
        pods = arrays["shapes"][np.maximum(records, 0)]
        fitting = (free >= pods["gpu_milli"][:, np.newaxis]).sum(axis=1)
        is_enough = fitting >= pods["gpu_count"]
        if moment.state.number("has_spreads"):
            has_ways = arrays["spreads"][np.maximum(records, 0)] != NO_WAY
            is_of_all = has_ways & (pods["gpu_count"] == nodes["gpu_count"])
            total = pods["gpu_count"].astype(np.int64) * pods["gpu_milli"]
            is_enough |= is_of_all & (together >= total)
        short &= ~is_enough | (records < 0)
        if not moment.state.number("has_spreads"):
            break
        records = np.where(records >= 0, arrays["spreads"][np.maximum(records, 0)], -1)
    return short


def _devices(moment: Moment, nodes: npt.NDArray[Any], free: npt.NDArray[Any]) -> Whole:
    """Counts the free devices of each node: GPUs, or the parts that they are advertised as."""
    replicas = moment.plan.cluster.gpu_replicas or (1,) * len(moment.plan.cluster.gpu_models)
    size = GPU_MILLI // np.array([*replicas, 1], np.int64)[nodes["gpu_model"]]
    on_each: Whole = (np.maximum(free, 0) // size[:, np.newaxis]).sum(axis=1)
    # Which shared GPUs they are on is not known.
    together = np.maximum(free.sum(axis=1, dtype=np.int64), 0) // size
    return np.where(size < GPU_MILLI, together, on_each)


_RULES: dict[int, tuple[Reason, str]] = {
    SKEW: ("topology-spread", "node(s) didn't match pod topology spread constraints"),
    PRESENT: ("pod-affinity", "node(s) didn't match pod affinity rules"),
    ABSENT: ("pod-anti-affinity", "node(s) didn't match pod anti-affinity rules"),
}
_PORTS = "node(s) didn't have free ports for the requested pod ports"
_REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
_IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already "
    "in-use by another pod"
)
_ABSENT: dict[CountedBy, tuple[Reason, str]] = {
    "labels": _RULES[ABSENT],
    "anti-affinity": ("pod-anti-affinity", _REPELLED),
    "port": ("host-ports", _PORTS),
    "claim": ("volume", _IN_USE),
}


def _rules(moment: Moment, pod: int) -> Filters:
    """Applies what pods decide that run on a node, or on others."""
    tables, classes = moment.plan.arrivals.tables, moment.plan.arrivals.class_of
    if tables is None or classes is None:
        return
    rules = tables.classes[classes[pod]].rules
    is_first = _is_first(moment, rules)
    for rule in sorted(rules, key=lambda rule: -rule.kind):
        reason, text = _RULES[rule.kind]
        domain = moment.state.arrays["domain_of"][rule.group]
        count = _counts(moment, rule.group)
        if rule.kind == ABSENT:
            reason, text = _ABSENT[tables.counted_by[rule.group]]
            yield Filter(reason, text, count > 0)
            continue
        yield Filter(reason, f"{text} (missing required label)", domain < 0, is_static=True)
        if rule.kind == SKEW:
            yield Filter(reason, text, (domain >= 0) & (count > _highest_before(moment, rule)))
        else:
            yield Filter(reason, text, (domain >= 0) & (count < (0 if is_first else 1)))


def _counts(moment: Moment, group: int) -> Whole:
    """Gives how many pods count in the domain of each node."""
    arrays = moment.state.arrays
    domain = arrays["domain_of"][group]
    found = np.zeros(len(domain), np.int64)
    has_domain = domain >= 0
    found[has_domain] = arrays["counts"][arrays["count_start"][group] + domain[has_domain]]
    return found


def _is_first(moment: Moment, rules: tuple[Rule, ...]) -> bool:
    """Tells whether a pod may be the first of those that its own affinity asks for."""
    present = [rule for rule in rules if rule.kind == PRESENT]
    totals = moment.state.arrays["totals"]
    return all(rule.own for rule in present) and not sum(int(totals[r.group]) for r in present)


def _highest_before(moment: Moment, rule: Rule) -> int:
    """Gives the highest count of a domain at which one more pod keeps to the skew."""
    arrays = moment.state.arrays
    start, eligible = (int(arrays[name][rule.group]) for name in ("count_start", "num_eligible"))
    counted = arrays["counts"][start : start + eligible]
    lowest = int(counted.min()) if eligible else 2**31 - 1
    if eligible < rule.min_domains:
        lowest = 0
    return lowest + rule.max_skew - rule.own
