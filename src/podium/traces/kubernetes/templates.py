"""Makes the pods that a controller would make: of Jobs, JobSets, Deployments and the like."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from podium.traces.fields import FieldError, mapping_at, mappings_at, text_of, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.documents import Document
from podium.traces.kubernetes.gangs import group_and_kind
from podium.traces.kubernetes.operators import MOST_PODS, gang_minimum, is_operated, roles_of
from podium.traces.kubernetes.volumes import MADE_FROM

CLAIM_TEMPLATES = "spec.volumeClaimTemplates"

_VERSIONS = {
    "Job": "batch/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
}
_GROUPS = {
    "CronJob": "batch", "Deployment": "apps", "Job": "batch", "JobSet": "jobset.x-k8s.io",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io", "ReplicaSet": "apps",
    "ReplicationController": "", "StatefulSet": "apps",
}  # fmt: skip
"""API groups of the controllers whose pods are known: other projects have Jobs, too."""

_WITHOUT_PODS = frozenset(
    {"ClusterRole", "ClusterRoleBinding", "ConfigMap", "EndpointSlice", "Endpoints", "Event",
     "HorizontalPodAutoscaler", "Ingress", "IngressClass", "Lease", "LimitRange", "NetworkPolicy",
     "PersistentVolume", "PersistentVolumeClaim", "PodDisruptionBudget", "ResourceQuota", "Role",
     "RoleBinding", "RuntimeClass", "Secret", "Service", "ServiceAccount", "StorageClass"}
)  # fmt: skip


def has_template(document: Document) -> bool:
    """Tells whether an object is a controller whose pods are known."""
    if "apiVersion" not in document.value:
        return document.kind in _GROUPS
    if is_operated(document.value):
        return True
    return _GROUPS.get(document.kind) == group_and_kind(document.value)[0]


def completions_of(document: Document, default: int) -> int:
    """Tells how many pods have to succeed in all; but for a Job, nothing says so."""
    if document.kind != "Job" or is_operated(document.value):
        return default
    return _whole(mapping_at(document.value, "spec", "spec"), "completions", MOST_PODS)


def may_make_pods(document: Document) -> bool:
    """Tells whether pods may come of an object: of any but Kubernetes' own that have none."""
    return document.kind not in _WITHOUT_PODS


def expanded(document: Document) -> list[Document]:
    """Gives an object, and the pods that its controller would make of it.

    A Job gets as many as run at once, and a CronJob those of one run.
    """
    if not has_template(document):
        return [document]
    if document.kind == "CronJob":
        spec = mapping_at(document.value, "spec", "spec")
        job = mapping_at(spec, "jobTemplate", "spec.jobTemplate")
        named = {**_metadata(job), **_metadata(document.value)}
        return expanded(Document({**job, "kind": "Job", "metadata": named}, document.line))
    named_one = _named(document)
    if is_operated(document.value):
        return _operated(named_one)
    pods = _MAKERS.get(document.kind, _replicas)(named_one)
    return [named_one, *(Document(pod, document.line) for pod in pods)]


def _operated(job: Document) -> list[Document]:
    """Gives the pods of a job of another project, and the PodGroup by which they are a gang."""
    own, roles = _metadata(job.value), roles_of(job.value)
    total = sum(role.replicas for role in roles)
    _limit(total, "spec")
    minimum = gang_minimum(job.value, total)
    marks = {} if minimum is None else {keys.GANG_KEYS["volcano"][0]: str(own["name"])}
    pods = [
        Document(_pod(job, role.template, f"{role.name}-{index}", {}, marks), job.line)
        for role in roles
        for index in range(role.replicas)
    ]
    if minimum is None:
        return pods
    named = {key: own[key] for key in ("name", "namespace") if key in own}
    version = "scheduling.volcano.sh/v1beta1"
    group = {"apiVersion": version, "kind": "PodGroup", "metadata": named,
             "spec": {"minMember": minimum}}  # fmt: skip
    return [Document(group, job.line), *pods]


def _named(document: Document) -> Document:
    """Completes name and version, by which the object of a gang is found."""
    own = _metadata(document.value)
    prefix = text_of(own.get("generateName"), "metadata.generateName").rstrip("-")
    name = text_of(own.get("name"), "metadata.name") or prefix
    version = document.value.get("apiVersion") or _VERSIONS.get(document.kind)
    metadata = {**own, "name": name}
    return Document({**document.value, "apiVersion": version, "metadata": metadata}, document.line)


def _replicas(document: Document) -> Iterator[dict[str, Any]]:
    spec = mapping_at(document.value, "spec", "spec")
    template = mapping_at(spec, "template", "spec.template")
    for index in range(_whole(spec, "replicas", 1)):
        yield _pod(document, template, f"{index}")


def _stateful_set_pods(owner: Document) -> Iterator[dict[str, Any]]:
    """Gives each pod its own claims, with what they are made from where they are not there yet."""
    spec = mapping_at(owner.value, "spec", "spec")
    templates = {}
    for index, each in enumerate(mappings_at(spec, "volumeClaimTemplates", CLAIM_TEMPLATES)):
        at = f"{CLAIM_TEMPLATES}[{index}].metadata"
        templates[text_of(mapping_at(each, "metadata", at).get("name"), f"{at}.name")] = each
    for pod in _replicas(owner):
        named = pod["metadata"]["name"]
        own = [
            {
                "name": name,
                "persistentVolumeClaim": {"claimName": f"{name}-{named}", MADE_FROM: each},
            }
            for name, each in templates.items()
        ]
        given = mappings_at(pod["spec"], "volumes", "spec.template.spec.volumes")
        others = [volume for volume in given if volume.get("name") not in templates]
        yield {**pod, "spec": {**pod["spec"], "volumes": [*others, *own]}} if own else pod


def _job_pods(job: Document) -> Iterator[dict[str, Any]]:
    spec = mapping_at(job.value, "spec", "spec")
    template = mapping_at(spec, "template", "spec.template")
    is_indexed = text_of(spec.get("completionMode"), "spec.completionMode") == "Indexed"
    labels = {keys.JOB_NAMES[0]: _metadata(job.value)["name"]}
    for index in range(_parallel(spec)):
        # By the label a Job's pods are known, and by the index those that start together.
        annotations = {keys.JOB_INDEX: str(index)} if is_indexed else {}
        yield _pod(job, template, f"{index}", labels, annotations)


def _job_set_pods(job_set: Document) -> Iterator[dict[str, Any]]:
    spec = mapping_at(job_set.value, "spec", "spec")
    total = 0
    for index, item in enumerate(mappings_at(spec, "replicatedJobs", "spec.replicatedJobs")):
        at = f"spec.replicatedJobs[{index}]"
        name = text_of(item.get("name"), f"{at}.name")
        job = mapping_at(mapping_at(item, "template", f"{at}.template"), "spec", f"{at}.spec")
        template = mapping_at(job, "template", f"{at}.template.spec.template")
        replicas, parallel = _whole(item, "replicas", 1), _parallel(job)
        total += replicas * parallel
        _limit(total, "spec.replicatedJobs")
        labels = {keys.JOB_SET: _metadata(job_set.value)["name"]}
        for replica in range(replicas):
            for pod in range(parallel):
                yield _pod(job_set, template, f"{name}-{replica}-{pod}", labels)


def _leader_worker_set_pods(owner: Document) -> Iterator[dict[str, Any]]:
    spec = mapping_at(owner.value, "spec", "spec")
    at = "spec.leaderWorkerTemplate"
    both = mapping_at(spec, "leaderWorkerTemplate", at)
    worker = mapping_at(both, "workerTemplate", f"{at}.workerTemplate")
    leader = mapping_at(both, "leaderTemplate", f"{at}.leaderTemplate") or worker
    replicas, size = _whole(spec, "replicas", 1), _whole(both, "size", 1)
    _limit(replicas * size, "spec.replicas")
    for group in range(replicas):
        labels = {
            f"{keys.LWS}/name": _metadata(owner.value)["name"],
            f"{keys.LWS}/group-index": str(group),
        }
        for index in range(size):
            suffix = f"{group}-{index}" if index else f"{group}"
            sizes = {f"{keys.LWS}/size": str(size)}
            yield _pod(owner, worker if index else leader, suffix, labels, sizes)


_MAKERS: dict[str, Callable[[Document], Iterator[dict[str, Any]]]] = {
    "Job": _job_pods,
    "JobSet": _job_set_pods,
    "LeaderWorkerSet": _leader_worker_set_pods,
    "StatefulSet": _stateful_set_pods,
}


def _limit(count: int, field: str) -> None:
    if count > MOST_PODS:
        raise FieldError(field, f"{count} pods are more than {MOST_PODS}")


def _metadata(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_at(value, "metadata", "metadata")


def _parallel(spec: Mapping[str, Any]) -> int:
    completions = _whole(spec, "completions", MOST_PODS)
    return min(_whole(spec, "parallelism", 1), completions)


def _whole(spec: Mapping[str, Any], name: str, default: int) -> int:
    value = spec.get(name)
    return default if value is None else whole_of(value, f"spec.{name}", 0, MOST_PODS)


def _pod(
    owner: Document,
    template: Mapping[str, Any],
    suffix: str,
    labels: Mapping[str, str] = {},
    annotations: Mapping[str, str] = {},
) -> dict[str, Any]:
    """Writes one pod, named, owned and labelled as its controller would."""
    own = _metadata(owner.value)
    controller = {"kind": owner.kind, "name": own["name"], "controller": True}
    given = mapping_at(template, "metadata", "spec.template.metadata")
    name = f"{own['name']}-{suffix}"
    metadata = {**given, "name": name, "ownerReferences": [controller]}
    for key, marks in (("labels", labels), ("annotations", annotations)):
        if marks:
            metadata[key] = {**mapping_at(given, key, f"spec.template.metadata.{key}"), **marks}
    if "namespace" in own:
        metadata["namespace"] = own["namespace"]
    spec = mapping_at(template, "spec", "spec.template.spec")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
