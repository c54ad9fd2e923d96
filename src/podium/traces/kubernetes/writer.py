"""Writes nodes and pods as manifests that `kubectl` and the hkust simulator read as well."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

from podium.files.text_file import format_suffix, writing
from podium.model.cluster import NodeSpec
from podium.model.records import GPU_MILLI as WHOLE_GPU
from podium.model.workload import PodSpec, Workload
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.constraints_writer import (
    constraint_fields,
    port_fields,
    taint_fields,
    volume_fields,
)
from podium.traces.kubernetes.disruption import budget_object
from podium.traces.kubernetes.domains import LEVEL_LABELS
from podium.traces.trace import Trace

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST_S = 2**37  # the year 6325; calendars end at 9999


def write_manifests(trace: Trace, path: Path) -> None:
    """Writes a trace as YAML documents, or as one JSON List, by the suffix of the path."""
    write_objects(_objects(trace), path)


def write_objects(objects: Iterator[dict[str, Any]], path: Path) -> None:
    """Writes objects as YAML documents, or as one JSON List, by the suffix of the path."""
    with writing(path) as stream:
        if format_suffix(path) == ".json":
            _write_json(objects, stream)
        else:
            _write_yaml(objects, stream)


def _objects(trace: Trace) -> Iterator[dict[str, Any]]:
    if trace.cluster is not None:
        yield from map(node_object, trace.cluster.specs())
    if trace.workload is not None:
        pods = trace.workload.specs()
        is_exact = _is_calendar_exact(pods)
        groups = _groups(trace.workload)
        for pod in pods:
            written = pod_object(pod, is_exact)
            group = groups.get(pod.gang)
            if group is not None:
                written["spec"]["schedulingGroup"] = {"podGroupName": group["metadata"]["name"]}
                written["metadata"]["labels"] = dict(pod.labels)
            yield written
        yield from groups.values()
        yield from map(budget_object, trace.workload.budgets)


def node_object(spec: NodeSpec) -> dict[str, Any]:
    """Gives the Node object of a description."""
    labels = dict(spec.labels)
    resources = {
        "cpu": f"{spec.cpu_milli}m",
        "memory": f"{spec.memory_mib}Mi",
        "pods": str(keys.UNBOUNDED_PODS),
        **{name: str(amount) for name, amount in spec.extended.items()},
    }
    if spec.gpu_count:
        labels[keys.GPU_CARD_MODEL] = spec.gpu_model
        resources[keys.GPU_COUNT] = str(spec.gpu_count)
        resources[keys.GPU_MILLI] = str(spec.gpu_count * WHOLE_GPU)
    if spec.rack:
        labels[LEVEL_LABELS["rack"]] = spec.rack
    for level, domain in (("block", spec.block), ("zone", spec.zone)):
        if domain:
            labels.setdefault(LEVEL_LABELS[level], domain)
    node: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _node_metadata(spec, labels),
        "status": {"allocatable": resources, "capacity": dict(resources)},
    }
    if spec.taints:
        node["spec"] = {"taints": [taint_fields(taint) for taint in spec.taints]}
    return node


def _node_metadata(spec: NodeSpec, labels: dict[str, str]) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": spec.name}
    if labels:
        metadata["labels"] = labels
    annotations = {}
    if spec.gpu_memory_mib:
        annotations[keys.GPU_MEMORY_MIB] = str(spec.gpu_memory_mib)
    if spec.gpu_replicas != 1:
        annotations[keys.GPU_REPLICAS] = str(spec.gpu_replicas)
    return metadata | ({"annotations": annotations} if annotations else {})


def pod_object(spec: PodSpec, is_calendar_exact: bool) -> dict[str, Any]:
    """Gives the Pod object of a description; exact seconds are added where a date rounds them."""
    request = {"cpu": f"{spec.cpu_milli}m", "memory": f"{spec.memory_mib}Mi"}
    request |= {name: str(amount) for name, amount in spec.constraints.extended}
    container: dict[str, Any] = {
        "name": "main",
        "image": "podium/none",
        "resources": {"requests": request, "limits": dict(request)},
    }
    if spec.constraints.host_ports:
        container["ports"] = port_fields(spec.constraints)
    pod_spec: dict[str, Any] = {"containers": [container]}
    if spec.priority:
        pod_spec["priority"] = spec.priority
    if spec.never_preempts:
        pod_spec["preemptionPolicy"] = "Never"
    if spec.node:
        pod_spec["nodeName"] = spec.node
    pod_spec |= constraint_fields(spec.constraints, spec.namespace)
    annotations = _annotations(spec) | _time_annotations(spec, is_calendar_exact)
    labels = dict(spec.labels)
    if spec.gang:
        labels[keys.POD_GROUP] = _own_name(spec.gang, spec.namespace)
    metadata: dict[str, Any] = {"name": _own_name(spec.name, spec.namespace)}
    parts = {"namespace": spec.namespace, "annotations": annotations, "labels": labels}
    metadata |= {name: value for name, value in parts.items() if value}
    if spec.is_terminating:
        # One past its time: how long it still runs, its run time says.
        metadata["deletionTimestamp"] = _date(0)
    written: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec
    }  # fmt: skip
    if spec.is_unready:
        written["status"] = {"conditions": [{"type": "Ready", "status": "False"}]}
    return written


def _own_name(name: str, namespace: str) -> str:
    """Takes off the namespace that told a name apart from others."""
    return name.removeprefix(f"{namespace or 'default'}/") or name


def _groups(workload: Workload) -> dict[str, dict[str, Any]]:
    """Gives a PodGroup for each gang that needs fewer than all of its pods, or one domain."""
    sizes = Counter(workload.pods["gang"].tolist())
    spaces = workload.namespaces or ("",) * len(workload)
    namespaces = dict(zip(workload.pods["gang"].tolist(), spaces, strict=True))
    groups = {}
    for number, rule in enumerate(workload.gang_rules, start=1):
        if rule.domain or rule.minimum != sizes[number]:
            namespace = namespaces[number]
            metadata = {"name": _own_name(rule.name, namespace)}
            spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": rule.minimum}}}
            if rule.domain:
                topology = [{"key": LEVEL_LABELS[rule.domain]}]
                spec["schedulingConstraints"] = {"topology": topology}
            groups[rule.name] = {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": metadata | ({"namespace": namespace} if namespace else {}),
                "spec": spec,
            }
    return groups


def _annotations(spec: PodSpec) -> dict[str, str]:
    written = {}
    if spec.gpu_count:
        written[keys.GPU_COUNT] = str(spec.gpu_count)
        written[keys.GPU_MILLI] = str(spec.gpu_milli)
    if spec.gpu_memory_mib:
        written[keys.GPU_MEMORY_MIB] = str(spec.gpu_memory_mib)
    if spec.node and spec.gpu_slots:
        written[keys.GPU_INDEX] = "-".join(map(str, spec.gpu_slots))
    if spec.gpu_spec:
        written[keys.GPU_CARD_MODEL] = spec.gpu_spec
    if spec.constraints.volumes or spec.constraints.sole_claims:
        written[keys.VOLUMES] = json.dumps(volume_fields(spec.constraints))
    if spec.job_type:
        written[keys.JOB_TYPE] = spec.job_type
    if spec.exit:
        written[keys.EXIT] = spec.exit
    if spec.age_s:
        written[keys.AGE_S] = repr(spec.age_s)
    return written


def _time_annotations(spec: PodSpec, is_calendar_exact: bool) -> dict[str, str]:
    written = {}
    if spec.arrival_s is not None and spec.arrival_s <= _LATEST_S:
        written[keys.CREATION_TIME] = _date(spec.arrival_s)
        end_s = spec.arrival_s + (spec.duration_s or 0.0)
        if spec.duration_s is not None and end_s <= _LATEST_S:
            written[keys.DELETION_TIME] = _date(end_s)
    if not is_calendar_exact:
        if spec.arrival_s is not None:
            written[keys.ARRIVAL_S] = repr(spec.arrival_s)
        if spec.duration_s is not None:
            written[keys.DURATION_S] = repr(spec.duration_s)
    return written


def _is_calendar_exact(pods: list[PodSpec]) -> bool:
    """Tells whether dates in whole seconds, counted from the earliest pod, say it all."""
    arrivals = [pod.arrival_s for pod in pods if pod.arrival_s is not None]
    ends = [(pod.arrival_s or 0.0) + (pod.duration_s or 0.0) for pod in pods]
    durations = [pod.duration_s for pod in pods if pod.duration_s is not None]
    is_whole = all(float(time).is_integer() for time in [*arrivals, *durations])
    has_arrivals = len(arrivals) == len(pods)
    return has_arrivals and is_whole and min(arrivals) == 0 and max(ends) <= _LATEST_S


def _date(seconds: float) -> str:
    moment = _EPOCH + timedelta(seconds=seconds)
    return moment.isoformat(timespec="auto").replace("+00:00", "Z")


def _write_yaml(objects: Iterator[dict[str, Any]], stream: TextIO) -> None:
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    yaml.dump_all(objects, stream, Dumper=dumper, sort_keys=False, explicit_start=True)


def _write_json(objects: Iterator[dict[str, Any]], stream: TextIO) -> None:
    stream.write('{"apiVersion": "v1", "kind": "List", "items": [')
    for index, item in enumerate(objects):
        stream.write(",\n" if index else "\n")
        stream.write(json.dumps(item))
    stream.write("\n]}\n")
