"""Reads which pods the jobs of Kubeflow, Ray and Volcano have, and how many start together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podium.traces.fields import flag_of, mapping_at, mappings_at, text_of, whole_of
from podium.traces.kubernetes.gangs import group_and_kind

MOST_PODS = 100_000
"""No controller is asked for more pods than this."""

_KUBEFLOW = {
    "MPIJob": "mpiReplicaSpecs", "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs", "XGBoostJob": "xgbReplicaSpecs",
}  # fmt: skip
_Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Role:
    """Is a number of like pods of a job."""

    name: str
    replicas: int
    template: Mapping[str, Any]


def is_operated(value: Mapping[str, Any]) -> bool:
    """Tells whether an object is a job of one of these projects."""
    group, kind = group_and_kind(value)
    return (group, kind) in _READERS


def roles_of(value: Mapping[str, Any]) -> list[Role]:
    """Lists the pods of a job by role."""
    return list(_READERS[group_and_kind(value)](mapping_at(value, "spec", "spec")))


def gang_minimum(value: Mapping[str, Any], total: int) -> int | None:
    """Says how many of a job's pods start together, or not at all; None if they start one by one.

    A Ray cluster works with the workers that it has.
    """
    group, kind = group_and_kind(value)
    spec = mapping_at(value, "spec", "spec")
    if group == "ray.io":
        return None
    if kind == "Job":
        return _whole(spec, "minAvailable", "spec.minAvailable", total)
    policy = mapping_at(
        mapping_at(spec, "runPolicy", "spec.runPolicy"), "schedulingPolicy", _POLICY
    )
    elastic = mapping_at(spec, "elasticPolicy", "spec.elasticPolicy")
    # Elastic workers come beside a master, if there is one.
    least = elastic.get("minReplicas")
    usual = total if least is None else min(total, whole_of(least, "minReplicas", 0, MOST_PODS))
    return _whole(policy, "minAvailable", f"{_POLICY}.minAvailable", usual)


def is_suspended(value: Mapping[str, Any]) -> bool:
    """Tells whether an object makes no pods for now, as Kueue lets those wait that it queues."""
    spec = mapping_at(value, "spec", "spec")
    policy = mapping_at(spec, "runPolicy", "spec.runPolicy")
    marks = (spec.get("suspend"), policy.get("suspend"))
    return any(mark is not None and flag_of(mark, "spec.suspend") for mark in marks)


_POLICY = "spec.runPolicy.schedulingPolicy"


def _volcano(spec: _Spec) -> Iterator[Role]:
    for index, task in enumerate(mappings_at(spec, "tasks", "spec.tasks")):
        at = f"spec.tasks[{index}]"
        name = text_of(task.get("name"), f"{at}.name") or f"default{index}"
        template = mapping_at(task, "template", f"{at}.template")
        yield Role(name, _whole(task, "replicas", f"{at}.replicas", 1), template)


def _kubeflow(spec: _Spec, field: str) -> Iterator[Role]:
    for name, role in mapping_at(spec, field, f"spec.{field}").items():
        at = f"spec.{field}.{name}"
        given = mapping_at({name: role}, name, at)
        template = mapping_at(given, "template", f"{at}.template")
        yield Role(name.lower(), _whole(given, "replicas", f"{at}.replicas", 1), template)


def _ray_cluster(spec: _Spec, at: str = "spec") -> Iterator[Role]:
    head = mapping_at(spec, "headGroupSpec", f"{at}.headGroupSpec")
    yield Role("head", 1, mapping_at(head, "template", f"{at}.headGroupSpec.template"))
    for index, group in enumerate(mappings_at(spec, "workerGroupSpecs", f"{at}.workerGroupSpecs")):
        of = f"{at}.workerGroupSpecs[{index}]"
        least = _whole(group, "minReplicas", f"{of}.minReplicas", 0)
        replicas = _whole(group, "replicas", f"{of}.replicas", least)
        hosts = _whole(group, "numOfHosts", f"{of}.numOfHosts", 1)
        name = text_of(group.get("groupName"), f"{of}.groupName") or f"worker{index}"
        template = mapping_at(group, "template", f"{of}.template")
        yield Role(name, max(replicas, least) * hosts, template)


def _ray_job(spec: _Spec) -> Iterator[Role]:
    at = "spec.rayClusterSpec"
    return _ray_cluster(mapping_at(spec, "rayClusterSpec", at), at)


def _kubeflow_of(field: str) -> Callable[[_Spec], Iterator[Role]]:
    return lambda spec: _kubeflow(spec, field)


_READERS: dict[tuple[str, str], Callable[[_Spec], Iterator[Role]]] = {
    ("batch.volcano.sh", "Job"): _volcano,
    ("ray.io", "RayCluster"): _ray_cluster,
    ("ray.io", "RayJob"): _ray_job,
    **{("kubeflow.org", kind): _kubeflow_of(field) for kind, field in _KUBEFLOW.items()},
}


def _whole(spec: _Spec, name: str, field: str, default: int) -> int:
    value = spec.get(name)
    return default if value is None else whole_of(value, field, 0, MOST_PODS)
