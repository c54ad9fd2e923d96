"""Makes the pods that a controller would make: of Jobs, Deployments and the like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.traces.fields import mapping_at, text_of, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.documents import Document

MOST_PODS = 100_000
"""No controller is asked for more pods than this."""

_CONTROLLERS = frozenset(
    {"CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)


def has_template(document: Document) -> bool:
    """Tells whether an object is a controller whose pods are known."""
    return document.kind in _CONTROLLERS


def made_pods(document: Document) -> list[Document]:
    """Makes the pods of a controller, none of any other object.

    A Job gets as many as run at once, and a CronJob those of one run.
    """
    if not has_template(document):
        return []
    if document.kind == "CronJob":
        spec = mapping_at(document.value, "spec", "spec")
        job = mapping_at(spec, "jobTemplate", "spec.jobTemplate")
        named = {**_metadata(job), **_metadata(document.value)}
        return made_pods(Document({**job, "kind": "Job", "metadata": named}, document.line))
    spec = mapping_at(document.value, "spec", "spec")
    template = mapping_at(spec, "template", "spec.template")
    count = _parallel(spec) if document.kind == "Job" else _whole(spec, "replicas", 1)
    return [Document(_pod(document, template, index), document.line) for index in range(count)]


def _metadata(value: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_at(value, "metadata", "metadata")


def _parallel(spec: Mapping[str, Any]) -> int:
    completions = _whole(spec, "completions", MOST_PODS)
    return min(_whole(spec, "parallelism", 1), completions)


def _whole(spec: Mapping[str, Any], name: str, default: int) -> int:
    value = spec.get(name)
    return default if value is None else whole_of(value, f"spec.{name}", 0, MOST_PODS)


def _is_indexed(job: Document) -> bool:
    spec = mapping_at(job.value, "spec", "spec")
    return text_of(spec.get("completionMode"), "spec.completionMode") == "Indexed"


def _pod(document: Document, template: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Writes one pod, named and owned as its controller would."""
    own = _metadata(document.value)
    prefix = text_of(own.get("generateName"), "metadata.generateName").rstrip("-")
    name = text_of(own.get("name"), "metadata.name") or prefix
    owner = {"kind": document.kind, "name": name, "controller": True}
    given = mapping_at(template, "metadata", "spec.template.metadata")
    metadata = {**given, "name": f"{name}-{index}", "ownerReferences": [owner]}
    if document.kind == "Job":
        # By these two a Job's pods are known, and by the second those that start together.
        marks = {"labels": {keys.JOB_NAMES[0]: name}, "annotations": {keys.JOB_INDEX: str(index)}}
        for key in marks if _is_indexed(document) else ("labels",):
            own_marks = mapping_at(given, key, f"spec.template.metadata.{key}")
            metadata[key] = {**own_marks, **marks[key]}
    if "namespace" in own:
        metadata["namespace"] = own["namespace"]
    spec = mapping_at(template, "spec", "spec.template.spec")
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
