"""Writes traces in the format that a file name asks for."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np

from podium.errors import UsageError
from podium.files.draft import drafted
from podium.files.text_file import filling, format_suffix, is_gzip
from podium.model.cluster import Cluster
from podium.model.constraints import UNCONSTRAINED
from podium.model.records import GPU_MILLI
from podium.model.shares import IMPOSSIBLE
from podium.model.workload import Workload
from podium.traces.kubernetes.documents import SUFFIXES
from podium.traces.kubernetes.writer import write_manifests
from podium.traces.notes import counted
from podium.traces.openb.csv_writer import write_nodes, write_pods
from podium.traces.trace import Trace

_WRITTEN = ", written as the part that it is of most GPUs"


def save_trace(trace: Trace, target: Path) -> list[Path]:
    """Writes a trace as CSV, YAML or JSON and gives the files.

    A CSV file holds nodes or pods: a trace with both becomes `NAME-nodes.csv` and
    `NAME-pods.csv`.
    """
    if trace.cluster is None and trace.workload is None:
        hint = "podium traces info shows what was left out"
        raise UsageError("there are neither nodes nor pods to write", where=trace.name, hint=hint)
    suffix = format_suffix(target)
    if suffix in SUFFIXES:
        write_manifests(trace, target)
        return [target]
    if suffix == ".csv":
        return _save_csv(trace, target)
    raise UsageError(
        f'traces are not written as "{suffix}" files',
        where=str(target),
        hint="use a name that ends in .csv, .yaml, .yml or .json, also with .gz",
    )


def losses(trace: Trace, target: Path) -> list[str]:
    """Lists what the format of a file has no place for."""
    if format_suffix(target) != ".csv":
        return []
    cluster, workload = trace.cluster, trace.workload
    counts = {
        "several devices on a GPU": (_sharing(cluster) if cluster else 0, "node"),
        f"GPU memory in MiB{_WRITTEN if cluster else ''}": (_in_mib(workload), "pod"),
        "taints": (sum(map(bool, cluster.taints)) if cluster else 0, "node"),
        "the nodes they run on": (sum(map(bool, workload.bound_to)) if workload else 0, "pod"),
        "constraints": (_constrained(workload) if workload else 0, "pod"),
        "rules of gangs": (_ruled(workload) if workload else 0, "gang"),
        "preemptionPolicy": (sum(workload.never_preempts) if workload else 0, "pod"),
        "PodDisruptionBudgets": (len(workload.budgets) if workload else 0, "object"),
    }
    return [
        f"CSV has no place for {what}: {counted(count, noun)}"
        for what, (count, noun) in counts.items()
        if count
    ]


def _sharing(cluster: Cluster) -> int:
    kinds = [kind.replicas > 1 for kind in cluster.gpu_kinds]
    nodes = cluster.nodes[cluster.nodes["gpu_count"] > 0]
    return sum(kinds[model] for model in nodes["gpu_model"].tolist())


def _in_mib(workload: Workload | None) -> int:
    if workload is None or workload.gpu_memory_mib is None:
        return 0
    return int((workload.gpu_memory_mib > 0).sum())


def _in_parts(workload: Workload, cluster: Cluster | None, target: Path) -> Workload:
    """Writes requests as parts of the GPUs that the cluster has: CSV knows no others."""
    if cluster is None and _in_mib(workload):
        raise UsageError(
            f"CSV has no place for GPU memory in MiB: {counted(_in_mib(workload), 'pod')}",
            where=str(target),
            hint="write .yaml or .json; or convert the pods together with their nodes, whose GPUs "
            "say which part of one it is",
        )
    if cluster is None:
        return workload
    found = workload.on(cluster)
    if found.gpu_shares is None:
        return workload
    pods = workload.pods.copy()
    # What no GPU is large enough for takes the whole of it.
    is_served = (found.gpu_shares[:, :, 0] != IMPOSSIBLE).any(axis=1)
    pods["gpu_count"] = found.pods["gpu_count"]
    pods["gpu_milli"] = np.where(is_served, found.pods["gpu_milli"], GPU_MILLI)
    return replace(workload, pods=pods, gpu_memory_mib=None)


def _constrained(workload: Workload) -> int:
    return sum(constraints != UNCONSTRAINED for constraints in workload.constraints)


def _ruled(workload: Workload) -> int:
    sizes = Counter(workload.pods["gang"].tolist())
    return sum(
        bool(rule.domain) or rule.minimum != sizes[number]
        for number, rule in enumerate(workload.gang_rules, start=1)
    )


def _save_csv(trace: Trace, target: Path) -> list[Path]:
    has_both = trace.cluster is not None and trace.workload is not None
    paths = [_beside(target, part) if has_both else target for part in ("nodes", "pods")]
    written = []
    workload = trace.workload and _in_parts(trace.workload, trace.cluster, target)
    with ExitStack() as stack:  # both lists take their names when both are whole
        if trace.cluster is not None:
            written.append(paths[0])
            with filling(stack.enter_context(drafted(paths[0])), paths[0]) as stream:
                write_nodes(trace.cluster, stream)
        if workload is not None:
            written.append(paths[1])
            with filling(stack.enter_context(drafted(paths[1])), paths[1]) as stream:
                write_pods(workload, stream)
    return written


def _beside(target: Path, part: str) -> Path:
    stem = (target.with_suffix("") if is_gzip(target) else target).stem
    return target.with_name(f"{stem}-{part}{target.name[len(stem) :]}")
