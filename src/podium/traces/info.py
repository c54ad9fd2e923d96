"""Describes a trace in numbers: counts, demand, classes, shapes and times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.classes import PODS
from podium.model.cluster import Cluster
from podium.model.constraints import UNSCHEDULABLE, Constraints
from podium.model.records import GPU_MILLI
from podium.model.workload import Workload
from podium.traces.demand import asked, offered, peak, pod_classes, shares
from podium.traces.kubernetes.state import LEFT_OUT
from podium.traces.trace import Trace

TOP_SHAPES = 10
_PERCENTILES = (0, 10, 25, 50, 75, 90, 95, 99, 100)


def describe(trace: Trace) -> dict[str, Any]:
    """Gives what `podium traces info` shows, ready for JSON."""
    described: dict[str, Any] = {"name": trace.name, "notes": list(trace.notes)}
    if trace.experiment is not None:
        experiment = trace.experiment
        described["experiment"] = {
            "ratio": experiment.ratio,
            "seed": experiment.seed,
            "is_shuffled": experiment.is_shuffled,
        }
    if trace.cluster is not None:
        described["cluster"] = _cluster(trace.cluster)
    if trace.workload is not None:
        workload = _on_cards(trace.workload, trace.cluster)
        described["workload"] = {**_workload(workload), **_state(trace)}
        if trace.cluster is not None:
            described["demand"] = _demand(workload, trace.cluster)
    return described


def _on_cards(workload: Workload, cluster: Cluster | None) -> Workload:
    """Reads requests as parts of cards where they are in MiB, or cards are several devices."""
    is_plain = cluster is None or not any(kind.is_shared for kind in cluster.gpu_kinds)
    if cluster is None or (workload.gpu_memory_mib is None and is_plain):
        return workload
    return workload.on(cluster)


def _cluster(cluster: Cluster) -> dict[str, Any]:
    columns = ["gpu_model", "gpu_count", "cpu_milli_total", "memory_mib_total"]
    kinds, counts = np.unique(cluster.nodes[columns], return_counts=True)
    types = [
        {
            "gpu_model": cluster.gpu_models[kind["gpu_model"]] if kind["gpu_count"] else "",
            "gpu_count": int(kind["gpu_count"]),
            "cpu_milli": int(kind["cpu_milli_total"]),
            "memory_mib": int(kind["memory_mib_total"]),
            **_sharing(cluster, kind),
            "nodes": int(count),
        }
        for kind, count in zip(kinds, counts, strict=True)
    ]
    return {
        "nodes": len(cluster),
        "gpus": cluster.gpu_total,
        "cpu_milli": cluster.cpu_milli_total,
        "memory_mib": cluster.memory_mib_total,
        "racks": len(cluster.racks),
        **_closed(cluster),
        "node_types": sorted(types, key=lambda kind: (-kind["nodes"], str(kind))),
    }


def _sharing(cluster: Cluster, kind: Any) -> dict[str, Any]:
    """Tells as how many devices one GPU is advertised, in a cluster where some are several."""
    if not cluster.gpu_replicas:
        return {}
    return {"gpu_replicas": cluster.gpu_replicas[kind["gpu_model"]] if kind["gpu_count"] else 1}


def _closed(cluster: Cluster) -> dict[str, Any]:
    """Counts the nodes that do not take every pod, in a cluster that has such."""
    if not cluster.taints:
        return {}
    keys = [{taint.key for taint in taints} for taints in cluster.taints]
    return {
        "tainted_nodes": sum(1 for each in keys if each - {UNSCHEDULABLE}),
        "cordoned_nodes": sum(1 for each in keys if UNSCHEDULABLE in each),
    }


def _state(trace: Trace) -> dict[str, Any]:
    """Tells how the pods of a dump stand, which gangs they form, and what they demand of nodes."""
    workload = trace.workload
    described: dict[str, Any] = {}
    if workload is None:
        return described
    if workload.bound_to or trace.left_out:
        bound = sum(1 for node in workload.bound_to if node)
        states = {"bound": bound, "pending": len(workload) - bound}
        described["states"] = {**states, **dict.fromkeys(LEFT_OUT.values(), 0), **trace.left_out}
    if workload.gang_rules:
        sizes = np.bincount(workload.pods["gang"], minlength=len(workload.gangs) + 1)[1:].tolist()
        described["gang_rules"] = [
            {"name": rule.name, "pods": size, "minimum": rule.minimum, "domain": rule.domain}
            for rule, size in zip(workload.gang_rules, sizes, strict=True)
        ]
    if workload.constraints:
        described["constraints"] = {
            name: sum(1 for each in workload.constraints if is_there(each))
            for name, is_there in _CONSTRAINTS.items()
        }
    return described


_CONSTRAINTS: Mapping[str, Callable[[Constraints], bool]] = {
    "node_selector": lambda pod: bool(pod.node_labels),
    "node_affinity": lambda pod: pod.node_terms is not None,
    "tolerations": lambda pod: bool(pod.tolerations),
    "pod_affinity": lambda pod: bool(pod.affinity),
    "pod_anti_affinity": lambda pod: bool(pod.anti_affinity),
    "topology_spread": lambda pod: bool(pod.spread),
    "host_ports": lambda pod: bool(pod.host_ports),
    "volumes": lambda pod: bool(pod.volumes or pod.sole_claims),
    "extended_resources": lambda pod: bool(set(dict(pod.extended)) - {PODS}),
}
"""What pods may demand of nodes, and how to tell that one does."""


def _workload(workload: Workload) -> dict[str, Any]:
    demand = workload.gpu_weight_milli
    classes = {
        name: {"pods": int(mask.sum()), "gpu_share": _part(demand[mask].sum(), demand.sum())}
        for name, mask in pod_classes(workload.pods).items()
    }
    described = {
        "pods": len(workload),
        "gpus_asked": float(demand.sum() / GPU_MILLI),
        "classes": classes,
        "constrained_pods": sum(1 for spec in workload.gpu_specs if spec),
        "gangs": len(workload.gangs),
        **_shapes(workload),
    }
    if workload.arrival_s is not None:
        gaps = np.diff(np.sort(workload.arrival_s))
        described["arrival_s"] = _quantiles(workload.arrival_s)
        described["inter_arrival_s"] = _quantiles(gaps) if len(gaps) else None
    if workload.duration_s is not None:
        described["duration_s"] = _quantiles(workload.duration_s)
    return described


def _shapes(workload: Workload) -> dict[str, Any]:
    shapes = workload.shapes()
    order = np.argsort(-shapes.weights, kind="stable")[:TOP_SHAPES].tolist()
    columns = ("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")
    top = [
        {
            **{column: int(shapes.pods[index][column]) for column in columns},
            "gpu_spec": shapes.gpu_specs[index],
            "pods": int(shapes.weights[index]),
        }
        for index in order
    ]
    return {"shapes": len(shapes), "top_shapes": top}


def _demand(workload: Workload, cluster: Cluster) -> dict[str, Any]:
    capacity = offered(cluster)
    amounts = asked(workload)
    totals = {key: int(values.sum()) for key, values in amounts.items()}
    described: dict[str, Any] = {"total": shares(totals, capacity)}
    if workload.has_times:
        peaks = {key: peak(workload, values) for key, values in amounts.items()}
        described["peak"] = shares(peaks, capacity)
    return described


def _quantiles(values: npt.NDArray[np.float64]) -> dict[str, float]:
    found = np.percentile(values, _PERCENTILES)
    named = {f"p{p}": float(v) for p, v in zip(_PERCENTILES, found, strict=True)}
    return {**named, "mean": float(values.mean())}


def _part(amount: Any, total: Any) -> float:
    return float(amount / total) if total else 0.0
