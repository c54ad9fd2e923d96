"""Reads a Kubernetes Pod object as a pod description: requests, GPUs, models, constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from podium.model.cluster import LIMIT
from podium.model.workload import PodSpec, pod_problem
from podium.traces.fields import (
    FieldError,
    list_at,
    mapping_at,
    mappings_at,
    number_of,
    quantity_of,
    text_of,
    texts_at,
    time_of,
    whole_of,
)
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.constraints import (
    Namespaces,
    Site,
    has_preferences,
    pod_constraints,
    selects_namespaces,
)
from podium.traces.kubernetes.devices import (
    NO_DEVICES,
    DeviceError,
    Inventory,
    PodDevices,
    PodFacts,
    pod_devices,
    pod_facts,
)
from podium.traces.kubernetes.gangs import Marks, Membership, read_membership
from podium.traces.kubernetes.keys import MODEL_LABELS
from podium.traces.kubernetes.standing import Standing, read_standing

_AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class ModelConstraint:
    """Says which models are allowed, and whether other constraints were seen."""

    models: tuple[str, ...]  # in the order written, empty = any
    has_others: bool  # selects nodes by something else than the GPU model


def model_constraint(spec: Mapping[str, Any]) -> ModelConstraint:
    """Reads `nodeSelector` and the required `In` terms of the node affinity."""
    if "nodeSelector" not in spec and "affinity" not in spec:
        return ModelConstraint((), has_others=False)
    selector = texts_at(spec, "nodeSelector", "spec.nodeSelector")
    selected = [{selector[key]: None} for key in MODEL_LABELS if key in selector]
    has_others = len(selected) < len(selector)
    affinity, has_other_terms = _affinity_models(spec)
    if affinity is not None:
        selected.append(affinity)
    return ModelConstraint(_common(selected), has_others or has_other_terms)


def _common(choices: list[dict[str, None]]) -> tuple[str, ...]:
    if not choices:
        return ()
    common = [model for model in choices[0] if all(model in choice for choice in choices)]
    if not common:
        raise FieldError(
            "spec.affinity", "no GPU model satisfies the node selector and the node affinity"
        )
    return tuple(common)


def _affinity_models(spec: Mapping[str, Any]) -> tuple[dict[str, None] | None, bool]:
    affinity = mapping_at(spec, "affinity", "spec.affinity")
    node_affinity = mapping_at(affinity, "nodeAffinity", "spec.affinity.nodeAffinity")
    required = mapping_at(
        node_affinity, "requiredDuringSchedulingIgnoredDuringExecution", _AFFINITY
    )
    terms = mappings_at(required, "nodeSelectorTerms", f"{_AFFINITY}.nodeSelectorTerms")
    allowed: dict[str, None] = {}
    is_any, has_others = not terms, False
    for index, term in enumerate(terms):
        models, has_more = _term_models(term, f"{_AFFINITY}.nodeSelectorTerms[{index}]")
        has_others |= has_more
        # Terms are alternatives: one that leaves the model open leaves it open altogether.
        is_any |= models is None
        allowed.update(models or {})
    return None if is_any else allowed, has_others


def _term_models(term: Mapping[str, Any], field: str) -> tuple[dict[str, None] | None, bool]:
    models: dict[str, None] | None = None
    has_others = bool(mappings_at(term, "matchFields", f"{field}.matchFields"))
    for rule in mappings_at(term, "matchExpressions", f"{field}.matchExpressions"):
        key = text_of(rule.get("key"), f"{field}.key")
        if key not in MODEL_LABELS or text_of(rule.get("operator"), f"{field}.operator") != "In":
            has_others = True
            continue
        values = [text_of(value, field) for value in list_at(rule, "values", f"{field}.values")]
        models = {value: None for value in values if models is None or value in models}
    return models, has_others


Resources = dict[str, Fraction]

_POD_LEVEL = ("cpu", "memory")


def pod_resources(spec: Mapping[str, Any]) -> Resources:
    """Gives the effective request of a pod.

    It is the larger of what runs in the end (containers and sidecars) and of the hungriest
    moment of the start (an init container beside the sidecars started before it), plus the
    overhead. https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers
    """
    running: Resources = {}
    for index, container in enumerate(mappings_at(spec, "containers", "spec.containers")):
        _add(running, _container_request(container, f"spec.containers[{index}]"))
    sidecars, peak = _start(spec)
    _add(running, sidecars)
    asked = running
    for key, amount in peak.items():
        asked[key] = max(running.get(key, amount), amount)
    _override(asked, spec)
    _add(asked, _quantities(mapping_at(spec, "overhead", "spec.overhead"), "spec.overhead"))
    return asked


def _start(spec: Mapping[str, Any]) -> tuple[Resources, Resources]:
    sidecars: Resources = {}
    peak: Resources = {}
    for index, container in enumerate(mappings_at(spec, "initContainers", "spec.initContainers")):
        field = f"spec.initContainers[{index}]"
        moment = dict(sidecars)
        _add(moment, _container_request(container, field))
        if text_of(container.get("restartPolicy"), f"{field}.restartPolicy") == "Always":
            sidecars = moment
        for key, amount in moment.items():
            peak[key] = max(peak.get(key, Fraction(0)), amount)
    return sidecars, peak


def _override(asked: Resources, spec: Mapping[str, Any]) -> None:
    # Requests of the pod itself, since Kubernetes 1.32, stand for those of its containers.
    whole = _container_request(spec, "spec")
    asked.update({key: whole[key] for key in _POD_LEVEL if key in whole})


def _container_request(container: Mapping[str, Any], field: str) -> Resources:
    resources = mapping_at(container, "resources", f"{field}.resources")
    limits = mapping_at(resources, "limits", f"{field}.resources.limits")
    requests = mapping_at(resources, "requests", f"{field}.resources.requests")
    # The API server fills a missing request in from the limit.
    return _quantities(limits, f"{field}.resources.limits") | _quantities(
        requests, f"{field}.resources.requests"
    )


def _quantities(amounts: Mapping[str, Any], field: str) -> Resources:
    return {key: quantity_of(amount, f"{field}.{key}") for key, amount in amounts.items()}


def _add(total: Resources, more: Resources) -> None:
    for key, amount in more.items():
        total[key] = total[key] + amount if key in total else amount


CLASSED = "spec.priorityClassName without spec.priority is read as priority 0"
PREFERENCES = "preferences of nodes are not honoured: preferred affinity, ScheduleAnyway"
VOLUMES = "volumes and the zones they tie a pod to are not honoured"
RUNTIME_CLASS = "the RuntimeClass of spec.runtimeClassName is not honoured"
SLICES = f"{keys.KUEUE_SLICES} is not honoured"

_MIB = 1024**2
_DEFAULT_SCHEDULER = "default-scheduler"
# https://kubernetes.io/docs/tasks/administer-cluster/guaranteed-scheduling-critical-addon-pods/
_BUILT_IN_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}


@dataclass(frozen=True, slots=True)
class PodDraft:
    """Holds a pod whose name, place, times and devices depend on the objects beside it."""

    spec: PodSpec
    facts: PodFacts  # that decide about devices
    devices: PodDevices  # as far as the pod alone tells
    annotated: str  # models that an annotation names
    models: tuple[str, ...]  # that the pod selects by labels of nodes
    created_s: float | None  # since 1970; the earliest pod of all becomes 0
    standing: Standing
    membership: Membership | None
    priority_class: str = ""  # where spec.priority does not say what it stands for
    terms: Mapping[str, Any] | None = None  # the pod's spec, where a term selects namespaces
    remarks: tuple[str, ...] = ()  # what has no place in the description
    placing_remarks: tuple[str, ...] = ()  # the same, for as long as the pod has no node


def pod_draft(
    pod: Mapping[str, Any], namespaces: Namespaces, index: int, inventory: Inventory
) -> PodDraft:
    """Describes a pod, with remarks on what has no place in the description.

    Devices are those that the pod alone tells of: `with_devices` completes them.
    """
    metadata = mapping_at(pod, "metadata", "metadata")
    spec = mapping_at(pod, "spec", "spec")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    labels = texts_at(metadata, "labels", "metadata.labels")
    namespace = text_of(metadata.get("namespace"), "metadata.namespace")
    standing = read_standing(pod, annotations)
    resources = pod_resources(spec)
    models = model_constraint(spec).models
    facts = pod_facts(pod, labels, resources, inventory)
    devices = _supposed(facts)
    constraints = pod_constraints(spec, Site(namespace, labels, namespaces))
    if devices.extended:
        constraints = replace(constraints, extended=devices.extended)
    created_s, arrival_s, duration_s = _times(metadata, annotations)
    described = PodSpec(
        name=_name(metadata, index),
        cpu_milli=_amount(resources, "cpu", Fraction(1, 1000)),
        memory_mib=_amount(resources, "memory", Fraction(_MIB)),
        gpu_count=devices.count,
        gpu_milli=devices.milli,
        gpu_spec=_gpu_spec(annotations.get(keys.GPU_CARD_MODEL, ""), models, devices),
        arrival_s=arrival_s,
        duration_s=duration_s,
        priority=whole_of(spec.get("priority") or 0, "spec.priority", -LIMIT),
        job_type=_first((keys.JOB_TYPE,), labels, annotations),
        namespace=namespace,
        labels=labels,
        constraints=constraints,
    )
    problem = pod_problem(described)
    if problem:
        raise FieldError("", problem)
    return PodDraft(
        spec=described,
        facts=facts,
        devices=devices,
        annotated=annotations.get(keys.GPU_CARD_MODEL, ""),
        models=models,
        created_s=created_s,
        standing=standing,
        membership=read_membership(
            Marks(labels, annotations, spec, standing.owner.partition("/")[2])
        ),
        priority_class=_priority_class(spec),
        terms=spec if selects_namespaces(spec) else None,
        placing_remarks=tuple(_placing_remarks(spec, annotations, standing)),
    )


def with_devices(draft: PodDraft, devices: PodDevices) -> PodSpec:
    """Completes a pod's description once everything is known that decides about its devices."""
    spec = draft.spec
    if devices is draft.devices:
        return spec
    constraints = spec.constraints
    if devices.extended != constraints.extended:
        constraints = replace(constraints, extended=devices.extended)
    described = replace(
        spec,
        gpu_count=devices.count,
        gpu_milli=devices.milli,
        gpu_memory_mib=devices.memory_mib,
        gpu_spec=_gpu_spec(draft.annotated, draft.models, devices),
        gpu_slots=devices.slots,
        constraints=constraints,
    )
    problem = pod_problem(described)
    if problem:
        raise DeviceError("", problem)
    return described


def class_priority(name: str, classes: Mapping[str, int]) -> int | None:
    """Finds the priority of a PriorityClass, None where nothing tells it."""
    return classes.get(name, _BUILT_IN_CLASSES.get(name))


def _supposed(facts: PodFacts) -> PodDevices:
    """Describes the devices of nearly all pods at once; of others later, when more is known."""
    devices = pod_devices(facts) if facts.is_plain else NO_DEVICES
    return NO_DEVICES if devices.memory_mib else devices


def _gpu_spec(annotated: str, models: tuple[str, ...], devices: PodDevices) -> str:
    return annotated or ("|".join(models or devices.models) if devices.count else "")


def _name(metadata: Mapping[str, Any], index: int) -> str:
    name = text_of(metadata.get("name"), "metadata.name")
    prefix = text_of(metadata.get("generateName"), "metadata.generateName")
    if not name and not prefix:
        raise FieldError("metadata.name", "the pod has no name")
    return name or f"{prefix}{index}"


def _amount(resources: Mapping[str, Fraction], key: str, unit: Fraction) -> int:
    # Rounded up: a request is never understated.
    amount = math.ceil(resources.get(key, Fraction(0)) / unit)
    if amount > LIMIT:
        raise FieldError(f"spec.containers, {key}", "is more than a pod can ask for")
    return amount


def _priority_class(spec: Mapping[str, Any]) -> str:
    if spec.get("priority") is not None:
        return ""
    return text_of(spec.get("priorityClassName"), "spec.priorityClassName")


def _times(
    metadata: Mapping[str, Any], annotations: Mapping[str, str]
) -> tuple[float | None, float | None, float | None]:
    arrival_s = _seconds(annotations, keys.ARRIVAL_S)
    duration_s = _seconds(annotations, keys.DURATION_S)
    created_s = None
    if annotations.get(keys.CREATION_TIME):
        created_s = time_of(annotations[keys.CREATION_TIME], keys.CREATION_TIME)
    elif metadata.get("creationTimestamp") is not None:
        created_s = time_of(metadata["creationTimestamp"], "metadata.creationTimestamp")
    if duration_s is None and created_s is not None and annotations.get(keys.DELETION_TIME):
        duration_s = time_of(annotations[keys.DELETION_TIME], keys.DELETION_TIME) - created_s
        if duration_s < 0:
            raise FieldError(keys.DELETION_TIME, "the pod is deleted before it is created")
    return created_s, arrival_s, duration_s


def _seconds(annotations: Mapping[str, str], key: str) -> float | None:
    text = annotations.get(key)
    return None if text is None else number_of(text, f"metadata.annotations.{key}")


def _first(names: tuple[str, ...], labels: Mapping[str, str], marks: Mapping[str, str]) -> str:
    return next((found[key] for key in names for found in (labels, marks) if found.get(key)), "")


def _placing_remarks(
    spec: Mapping[str, Any], annotations: Mapping[str, str], standing: Standing
) -> Iterator[str]:
    if has_preferences(spec):
        yield PREFERENCES
    volumes = mappings_at(spec, "volumes", "spec.volumes")
    if any("persistentVolumeClaim" in volume or "ephemeral" in volume for volume in volumes):
        yield VOLUMES
    # Admission has merged the nodes of a RuntimeClass into the pods that an API server knows.
    if spec.get("runtimeClassName") and not standing.is_live:
        yield RUNTIME_CLASS
    if annotations.get(keys.KUEUE_SLICES):
        yield SLICES
    scheduler = text_of(spec.get("schedulerName"), "spec.schedulerName")
    if scheduler not in ("", _DEFAULT_SCHEDULER):
        yield f"spec.schedulerName {scheduler} is not honoured, one policy places all pods"
