"""Writes node and pod lists in the CSV format of OpenB; further columns only where needed."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from typing import TextIO

from podium.model.cluster import Cluster, NodeSpec
from podium.model.workload import PodSpec, Workload


def write_nodes(cluster: Cluster, stream: TextIO) -> None:
    """Writes a cluster as a node list."""
    specs = cluster.specs()
    columns = ["sn", "cpu_milli", "memory_mib", "gpu", "model"]
    columns += ["rack"] * any(spec.rack for spec in specs)
    columns += ["labels"] * any(spec.labels for spec in specs)
    _write(stream, columns, map(_node_cells, specs))


def write_pods(workload: Workload, stream: TextIO) -> None:
    """Writes a workload as a pod list."""
    specs = workload.specs()
    columns = ["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec"]
    columns += ["creation_time"] * (workload.arrival_s is not None)
    if workload.duration_s is not None:
        columns.append("deletion_time" if _is_end_exact(specs) else "duration_s")
    columns += ["priority"] * any(spec.priority for spec in specs)
    columns += ["gang"] * any(spec.gang for spec in specs)
    columns += ["job_type"] * any(spec.job_type for spec in specs)
    columns += ["exit"] * any(spec.exit for spec in specs)
    _write(stream, columns, map(_pod_cells, specs))


def _node_cells(spec: NodeSpec) -> dict[str, object]:
    return {
        "sn": spec.name,
        "cpu_milli": spec.cpu_milli,
        "memory_mib": spec.memory_mib,
        "gpu": spec.gpu_count,
        "model": spec.gpu_model,
        "rack": spec.rack,
        "labels": json.dumps(dict(spec.labels)) if spec.labels else "",
    }


def _pod_cells(spec: PodSpec) -> dict[str, object]:
    arrival_s, duration_s = spec.arrival_s or 0.0, spec.duration_s or 0.0
    return {
        "name": spec.name,
        "cpu_milli": spec.cpu_milli,
        "memory_mib": spec.memory_mib,
        "num_gpu": spec.gpu_count,
        "gpu_milli": spec.gpu_milli,
        "gpu_spec": spec.gpu_spec,
        "creation_time": _seconds(arrival_s),
        "deletion_time": _seconds(arrival_s + duration_s),
        "duration_s": _seconds(duration_s),
        "priority": spec.priority,
        "gang": spec.gang,
        "job_type": spec.job_type,
        "exit": spec.exit,
    }


def _seconds(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def _is_end_exact(specs: Sequence[PodSpec]) -> bool:
    """Tells whether deletion minus creation gives every duration back to the last bit."""
    return all(
        spec.arrival_s is not None
        and spec.duration_s is not None
        and (spec.arrival_s + spec.duration_s) - spec.arrival_s == spec.duration_s
        for spec in specs
    )


def _write(stream: TextIO, columns: list[str], rows: Iterable[dict[str, object]]) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[column] for column in columns] for row in rows)
