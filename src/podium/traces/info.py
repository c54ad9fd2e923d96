"""Describes a trace in numbers: counts, demand, classes, shapes and times."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.cluster import Cluster
from podium.model.records import GPU_MILLI
from podium.model.workload import Workload, gpu_demand
from podium.traces.demand import asked, offered, peak, pod_classes, shares
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
        described["workload"] = _workload(trace.workload)
        if trace.cluster is not None:
            described["demand"] = _demand(trace.workload, trace.cluster)
    return described


def _cluster(cluster: Cluster) -> dict[str, Any]:
    columns = ["gpu_model", "gpu_count", "cpu_milli_total", "memory_mib_total"]
    kinds, counts = np.unique(cluster.nodes[columns], return_counts=True)
    types = [
        {
            "gpu_model": cluster.gpu_models[kind["gpu_model"]] if kind["gpu_count"] else "",
            "gpu_count": int(kind["gpu_count"]),
            "cpu_milli": int(kind["cpu_milli_total"]),
            "memory_mib": int(kind["memory_mib_total"]),
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
        "node_types": sorted(types, key=lambda kind: (-kind["nodes"], str(kind))),
    }


def _workload(workload: Workload) -> dict[str, Any]:
    demand = gpu_demand(workload.pods)
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
