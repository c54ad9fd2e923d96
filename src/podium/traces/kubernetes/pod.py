"""Reads a Kubernetes Pod object as a pod description: requests, GPUs, models, constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from podium.model.cluster import LIMIT
from podium.model.constraints import Constraints, PodSelector
from podium.model.workload import PodSpec, pod_problem
from podium.traces.fields import (
    FieldError,
    list_at,
    mapping_at,
    mappings_at,
    number_of,
    text_of,
    texts_at,
    time_of,
    whole_of,
)
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.constraints import (
    UNKNOWN_NAMESPACES,
    Namespaces,
    Site,
    has_preferences,
    has_unknown_namespaces,
    liked_company,
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
from podium.traces.kubernetes.priorities import (
    BUILT_IN_CLASSES,
    DEFAULT_CLASS,
    PriorityClass,
    never_preempts,
    of_class,
    priority_class_of,
)
from podium.traces.kubernetes.requests import pod_resources
from podium.traces.kubernetes.standing import Standing, read_standing
from podium.traces.kubernetes.volumes import ClaimUse, claim_uses, written_rules
from podium.traces.notes import CENSORED, is_censored

_AFFINITY = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"


def selected_models(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Names the GPU models that node selector and required `In` terms allow, in the order written.

    None where every model is allowed, and where parts contradict each other: the constraints on
    labels then leave no node.
    """
    if "nodeSelector" not in spec and "affinity" not in spec:
        return ()
    selector = texts_at(spec, "nodeSelector", "spec.nodeSelector")
    choices = [{selector[key]: None} for key in MODEL_LABELS if key in selector]
    affinity = _affinity_models(spec)
    if affinity is not None:
        choices.append(affinity)
    first = choices[0] if choices else {}
    return tuple(model for model in first if all(model in choice for choice in choices))


def _affinity_models(spec: Mapping[str, Any]) -> dict[str, None] | None:
    affinity = mapping_at(spec, "affinity", "spec.affinity")
    node_affinity = mapping_at(affinity, "nodeAffinity", "spec.affinity.nodeAffinity")
    required = mapping_at(
        node_affinity, "requiredDuringSchedulingIgnoredDuringExecution", _AFFINITY
    )
    terms = mappings_at(required, "nodeSelectorTerms", f"{_AFFINITY}.nodeSelectorTerms")
    allowed: dict[str, None] = {}
    is_any = not terms
    for index, term in enumerate(terms):
        models = _term_models(term, f"{_AFFINITY}.nodeSelectorTerms[{index}]")
        # Terms are alternatives: one that leaves the model open leaves it open altogether.
        is_any |= models is None
        allowed.update(models or {})
    return None if is_any else allowed


def _term_models(term: Mapping[str, Any], field: str) -> dict[str, None] | None:
    models: dict[str, None] | None = None
    for rule in mappings_at(term, "matchExpressions", f"{field}.matchExpressions"):
        key = text_of(rule.get("key"), f"{field}.key")
        if key not in MODEL_LABELS or text_of(rule.get("operator"), f"{field}.operator") != "In":
            continue
        values = [text_of(value, field) for value in list_at(rule, "values", f"{field}.values")]
        models = {value: None for value in values if models is None or value in models}
    return models


CLASSED = "spec.priorityClassName without spec.priority is read as priority 0"
PREFERENCES = "preferences of nodes are not honoured: preferred affinity, ScheduleAnyway"
VOLUMES = "volumes and the zones they tie a pod to are not honoured"
RUNTIME_CLASS = "the RuntimeClass of spec.runtimeClassName is not honoured"
TOO_LARGE = "asks for more CPU or memory than any node can have"
SLICES = f"{keys.KUEUE_SLICES} is not honoured"

_MIB = 1024**2
_DEFAULT_SCHEDULER = "default-scheduler"


MOST_PARTS = 1000
"""Containers of a pod, or terms and expressions of its affinity; people write a few dozen."""

_PARTS = {
    "spec": (
        "containers", "initContainers", "nodeSelector", "overhead", "resourceClaims",
        "tolerations", "topologySpreadConstraints", "volumes",
    ),
    "status": ("conditions", "containerStatuses", "initContainerStatuses"),
}  # fmt: skip
_HOLDERS = {
    "spec": ("ports", "containers", "initContainers"),
    "status": ("allocatedResources", "containerStatuses", "initContainerStatuses"),
}
"""What those hold beside resources that hold some, and where they are listed."""


class UnmodelledError(FieldError):
    """A pod is too large to be modelled; it is left out, the rest of the file is not."""


def _check_size(pod: Mapping[str, Any]) -> None:
    """Refuses pods that would take seconds to read: anybody may write them."""
    for at, names in _PARTS.items():
        part = mapping_at(pod, at, at)
        for name in names:
            if _size(part.get(name)) > MOST_PARTS:
                raise UnmodelledError(f"{at}.{name}", f"more than {MOST_PARTS:,} are not modelled")
        more, *lists = _HOLDERS[at]
        listed = [each for name in lists for each in mappings_at(part, name, f"{at}.{name}")]
        if sum(_amounts(each, more) for each in listed) > MOST_PARTS:
            text = f"more than {MOST_PARTS:,} resources and ports are not modelled"
            raise UnmodelledError(f"{at}.{lists[0]}", text)
    affinity = mapping_at(pod, "spec", "spec").get("affinity")
    if affinity:
        _check_affinity(affinity)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, Mapping | list) else 0


def _amounts(holder: Mapping[str, Any], more: str) -> int:
    """Counts the resources and ports of a container, or the resources of its status."""
    resources = holder.get("resources")
    asked = resources.values() if isinstance(resources, Mapping) else ()
    return sum(map(_size, (*asked, holder.get(more))))


def _check_affinity(affinity: Any) -> None:
    level: list[Any] = [affinity] if isinstance(affinity, Mapping) else []
    count = 0
    while level:
        count += sum(isinstance(each, Mapping) for each in level)
        if count > MOST_PARTS:
            text = f"more than {MOST_PARTS:,} terms and expressions are not modelled"
            raise UnmodelledError("spec.affinity", text)
        parts = [each.values() if isinstance(each, Mapping) else each for each in level]
        level = [each for part in parts for each in part if isinstance(each, Mapping | list)]


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
    has_priority: bool = True  # its spec names one, or a class: the default class is not for it
    company: tuple[PodSelector, ...] = ()  # whom it would rather be near or apart from
    claims: tuple[ClaimUse, ...] = ()  # behind its volumes


def pod_draft(
    pod: Mapping[str, Any], namespaces: Namespaces, index: int, inventory: Inventory,
    known: dict[Constraints, Constraints],
) -> PodDraft:  # fmt: skip
    """Describes a pod, with remarks on what has no place in the description.

    Devices are those that the pod alone tells of: `with_devices` completes them. Pods with equal
    constraints hold one and the same value of those known.
    """
    metadata = mapping_at(pod, "metadata", "metadata")
    spec = mapping_at(pod, "spec", "spec")
    _check_size(pod)
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    labels = texts_at(metadata, "labels", "metadata.labels")
    namespace = text_of(metadata.get("namespace"), "metadata.namespace")
    standing = read_standing(pod, annotations)
    resources = pod_resources(spec, mapping_at(pod, "status", "status"))
    models = selected_models(spec)
    facts = pod_facts(pod, labels, resources, inventory)
    devices = _supposed(facts)
    constraints = pod_constraints(spec, Site(namespace, labels, namespaces))
    if devices.extended:
        constraints = replace(constraints, extended=devices.extended)
    if annotations.get(keys.VOLUMES):
        volumes, sole_claims = written_rules(annotations[keys.VOLUMES])
        constraints = replace(constraints, volumes=volumes, sole_claims=sole_claims)
    constraints = known.setdefault(constraints, constraints)
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
        age_s=_seconds(annotations, keys.AGE_S) or 0.0,
        never_preempts=never_preempts(spec, "spec.preemptionPolicy"),
        exit=annotations.get(keys.EXIT, ""),
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
        priority_class=priority_class_of(spec),
        terms=spec if selects_namespaces(spec) else None,
        remarks=tuple(_remarks(described)),
        placing_remarks=tuple(_placing_remarks(spec, annotations, standing)),
        has_priority=spec.get("priority") is not None or bool(priority_class_of(spec)),
        company=liked_company(spec),
        claims=claim_uses(spec, described.name),
    )


def _remarks(spec: PodSpec) -> Iterator[str]:
    if is_censored(spec):
        yield CENSORED
    # An API server takes any amount, as of an `m` that somebody forgot.
    if LIMIT in (spec.cpu_milli, spec.memory_mib):
        yield TOO_LARGE


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


def settled(
    draft: PodDraft, namespaces: Namespaces, classes: Mapping[str, PriorityClass]
) -> PodDraft:
    """Completes a pod once the objects around it are known: devices, priorities, namespaces.

    Raises:
        FieldError: they leave nothing that a pod can be.
    """
    devices = pod_devices(draft.facts)
    is_settled = devices is draft.devices and not devices.remarks
    is_classed = bool(draft.priority_class) or (not draft.has_priority and DEFAULT_CLASS in classes)
    if is_settled and not is_classed and draft.terms is None:
        return draft
    spec, remarks = with_devices(draft, devices), [*draft.remarks, *devices.remarks]
    if is_classed:
        known = classes.get(draft.priority_class, BUILT_IN_CLASSES.get(draft.priority_class))
        remarks += [] if known else [CLASSED]
        spec = of_class(spec, known or PriorityClass())
    if draft.terms is not None:
        site = Site(spec.namespace, spec.labels, namespaces)
        constraints = pod_constraints(draft.terms, site)
        old = spec.constraints
        constraints = replace(
            constraints, extended=old.extended, volumes=old.volumes, sole_claims=old.sole_claims
        )
        spec = replace(spec, constraints=constraints)
        if has_unknown_namespaces(draft.terms, namespaces):
            remarks.append(UNKNOWN_NAMESPACES)
    if spec is draft.spec and len(remarks) == len(draft.remarks):
        return draft
    return replace(draft, spec=spec, remarks=tuple(remarks))


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
    return min(math.ceil(resources.get(key, Fraction(0)) / unit), LIMIT)


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
