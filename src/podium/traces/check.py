"""Looks for what would spoil a simulation: pods that fit nowhere, missing times, bad rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.model.cluster import Cluster
from podium.model.constraints import UNCONSTRAINED
from podium.model.records import GPU_MILLI
from podium.model.shares import IMPOSSIBLE
from podium.model.workload import Workload, models_of
from podium.traces.demand import asked, offered, peak
from podium.traces.notes import counted, some
from podium.traces.rejects import LEFT_OUT
from podium.traces.trace import Trace

_UNITS = {"gpu": "GPU", "cpu": "CPU", "memory": "memory"}
_SHUT = "node selector, node affinity and taints leave"
_TAINTED = (
    "all have taints, and the trace states no tolerations: give pods as manifests that do, or "
    "nodes without these taints"
)
_KIND = ["cpu_milli_total", "memory_mib_total", "gpu_count", "gpu_model"]
_FEW_GPUS = "it asks for GPUs that no node has"
_TOGETHER = "no single node has all of it together"


def findings(trace: Trace) -> list[str]:
    """Lists what is wrong with a loaded trace."""
    found = [note for note in trace.notes if note.startswith(LEFT_OUT)]
    if trace.workload is not None:
        found += _name_findings(trace.workload)
        found += _time_findings(trace.workload)
        if trace.cluster is not None:
            found += _model_findings(trace.workload, trace.cluster)
            found += _fit_findings(trace.workload, trace.cluster)
            found += _admission_findings(trace.workload, trace.cluster)
            found += _demand_findings(trace.workload, trace.cluster)
    return found


def remarks(trace: Trace) -> list[str]:
    """Lists what is not wrong, but not taken as it is written either."""
    return [note for note in trace.notes if not note.startswith(LEFT_OUT)]


def _name_findings(workload: Workload) -> Iterator[str]:
    twins = [name for name, count in Counter(workload.full_names).items() if count > 1]
    if twins:
        yield f"{counted(len(twins), 'name')} shared by several pods: {some(twins)}"


def _time_findings(workload: Workload) -> Iterator[str]:
    arrival_s, duration_s = workload.arrival_s, workload.duration_s
    full_names = workload.full_names
    if arrival_s is None:
        yield "pods have no arrival times: a replay is not possible"
    elif bool(np.any(np.diff(arrival_s) < 0)):
        late = int(np.argmax(np.diff(arrival_s) < 0)) + 1
        yield f"arrivals are not in order: {full_names[late]} is the first that is too late"
    if duration_s is None:
        yield "pods have no durations: a replay is not possible"
    elif bool(np.any(duration_s == 0)):
        names = [full_names[i] for i in np.flatnonzero(duration_s == 0)]
        yield f"{counted(len(names), 'pod')} with a duration of 0 s: {some(names)}"


def _model_findings(workload: Workload, cluster: Cluster) -> Iterator[str]:
    strangers: Counter[str] = Counter()
    for spec, count in Counter(workload.gpu_specs).items():
        for model in set(models_of(spec)) - set(cluster.gpu_models):
            strangers[model] += count
    for model, count in sorted(strangers.items()):
        yield f"the cluster lacks the GPU model {model}, named by {counted(count, 'pod')}"


def _fit_findings(workload: Workload, cluster: Cluster) -> Iterator[str]:
    """Tries every shape on every kind of empty node that admits it."""
    aligned, on_cluster = workload.aligned(cluster.gpu_models), workload.on(cluster)
    full_names = workload.full_names
    for admitting, alike in _alike(aligned, on_cluster):
        index, weight = alike[0], len(alike)
        nodes = cluster.nodes[_admits(on_cluster, admitting)]
        if not len(nodes):
            continue  # told by `_admission_findings`
        kinds = np.unique(nodes[_KIND])
        gpus = _gpus_on(kinds, on_cluster, index)
        reason = _misfit(aligned.pods[index], aligned.gpu_specs[index], kinds, gpus)
        if reason == _FEW_GPUS:
            reason = _few_gpus(aligned, cluster, nodes, index)
        if reason:
            name = full_names[index]
            others = f" and {counted(weight - 1, 'pod')} like it" if weight > 1 else ""
            left = "" if len(nodes) == len(cluster) else (
                f" that admits it ({_SHUT} {len(nodes)} of {len(cluster)})"
            )  # fmt: skip
            yield f"{name}{others} cannot fit any empty node{left}: {reason}"


def _alike(aligned: Workload, on_cluster: Workload) -> list[tuple[int, list[int]]]:
    """Groups pods of one shape that take the same share of every GPU, by what admits them."""
    shares = on_cluster.gpu_shares
    groups: dict[tuple[int, int, bytes], list[int]] = {}
    keys = zip(aligned.shape_of().tolist(), _filters(on_cluster), strict=True)
    for index, (shape, admitting) in enumerate(keys):
        taken = b"" if shares is None else shares[index].tobytes()
        groups.setdefault((admitting, shape, taken), []).append(index)
    return [(admitting, found) for (admitting, *_), found in groups.items()]


def _filters(on_cluster: Workload) -> list[int]:
    """Numbers what admits each pod to nodes; -1 for pods that run already."""
    tables, class_of = on_cluster.tables, on_cluster.class_of
    if tables is None or class_of is None:
        return [-1] * len(on_cluster)
    rows = [tables.classes[number].node_filter for number in class_of.tolist()]
    bound_to = on_cluster.bound_to or ("",) * len(rows)
    return [-1 if node else row for node, row in zip(bound_to, rows, strict=True)]


def _admits(on_cluster: Workload, admitting: int) -> npt.NDArray[np.bool_] | slice:
    if on_cluster.tables is None or admitting < 0:
        return slice(None)
    row: npt.NDArray[np.bool_] = on_cluster.tables.admits[admitting]
    return row


def _gpus_on(kinds: npt.NDArray[Any], on_cluster: Workload, index: int) -> npt.NDArray[np.int64]:
    """Counts the GPUs that a pod takes on each kind of node: two devices may be of one card."""
    count = int(on_cluster.pods["gpu_count"][index])
    if on_cluster.gpu_shares is None or not count:
        return np.full(len(kinds), count, np.int64)
    counts = on_cluster.gpu_shares[index, :, 0].astype(np.int64)
    is_impossible = (counts == IMPOSSIBLE)[kinds["gpu_model"]] | (kinds["gpu_model"] < 0)
    return np.where(is_impossible, np.iinfo(np.int64).max, counts[kinds["gpu_model"]])


def _few_gpus(aligned: Workload, cluster: Cluster, nodes: npt.NDArray[Any], index: int) -> str:
    asked = int(aligned.pods_as_written()["gpu_count"][index])
    if aligned.gpu_memory_mib is not None and aligned.gpu_memory_mib[index]:
        memory = f"{aligned.gpu_memory_mib[index]} MiB of GPU memory"
        return f"it asks for {counted(asked, 'GPU')} with {memory}, no node has that"
    replicas = np.array([kind.replicas for kind in cluster.gpu_kinds] or [1])
    most = (nodes["gpu_count"] * replicas[nodes["gpu_model"]]).max()
    return (
        f"it asks for {counted(asked, 'GPU')}, no node has {f'more than {most}' if most else 'any'}"
    )


def _admission_findings(workload: Workload, cluster: Cluster) -> Iterator[str]:
    """Looks for pods that no node admits, however empty it is."""
    on_cluster = workload.on(cluster)
    given = workload.constraints or (UNCONSTRAINED,) * len(workload)
    shut: dict[Hashable, list[str]] = {}
    rows = zip(workload.full_names, _filters(on_cluster), given, strict=True)
    for name, admitting, constraints in rows:
        if not len(cluster.nodes[_admits(on_cluster, admitting)]):
            shut.setdefault(constraints.on_nodes, []).append(name)
    for names in shut.values():
        others = f" and {counted(len(names) - 1, 'pod')} like it" if len(names) > 1 else ""
        reason = f"{_SHUT} none" if workload.constraints else _TAINTED
        yield f"{names[0]}{others} may run on no node: {reason}"


def _misfit(pod: Any, gpu_spec: str, kinds: npt.NDArray[Any], gpus: npt.NDArray[np.int64]) -> str:
    """Says why a pod fits none of the nodes, or nothing if it fits one."""
    has_cpu = kinds["cpu_milli_total"] >= pod["cpu_milli"]
    has_memory = kinds["memory_mib_total"] >= pod["memory_mib"]
    has_gpus = kinds["gpu_count"] >= gpus
    has_model = np.ones(len(kinds), bool)
    if pod["gpu_count"] and gpu_spec:
        bits = np.where(kinds["gpu_model"] >= 0, kinds["gpu_model"], 63).astype(np.int64)
        has_model = (int(pod["gpu_models"]) >> bits) & 1 == 1
    if bool(np.any(has_cpu & has_memory & has_gpus & has_model)):
        return ""
    if not has_cpu.any():
        most = kinds["cpu_milli_total"].max()
        return f"it asks for {pod['cpu_milli']} milli-CPU, the largest node has {most}"
    if not has_memory.any():
        most = kinds["memory_mib_total"].max()
        return f"it asks for {pod['memory_mib']} MiB of memory, the largest node has {most}"
    if not has_gpus.any():
        return _FEW_GPUS
    if not has_model.any():
        return f"no node has the GPU model {gpu_spec.replace('|', ' or ')}"
    return _TOGETHER


def _demand_findings(workload: Workload, cluster: Cluster) -> Iterator[str]:
    capacity = offered(cluster)
    when = "at its busiest" if workload.has_times else "in all"
    for key, amounts in asked(workload.on(cluster)).items():
        most = peak(workload, amounts)
        if most > capacity[key]:
            share = f"{100 * most / capacity[key]:.0f} % of" if capacity[key] else "more than"
            unit = 1 / GPU_MILLI if key == "gpu" else 1
            yield (
                f"{when} the pods ask for {share} the cluster's {_UNITS[key]} "
                f"({_plain(most * unit)} of {_plain(capacity[key] * unit)}): some must wait"
            )


def _plain(amount: float) -> str:
    """Writes a large number without an exponent."""
    return f"{amount:,.0f}" if amount >= 10**6 else f"{amount:g}"
