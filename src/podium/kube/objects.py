"""Says which fields of Kubernetes objects Podium reads, and decodes those alone from JSON.

What stands here is all that leaves a cluster: no commands, no environment, no images. Decoding
skips the rest, which is most of an object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import msgspec
from msgspec import Raw, Struct

from podium.files.excerpt import excerpt
from podium.files.json_text import MAX_DEPTH, TOO_DEEP, is_too_deep, may_be_deep, without_depths
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.standing import MIRROR

UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises; the last of them where something is nested too deeply."""

# Deeper than an object may be: one that is cut is still found to be too deep.
_CUT = MAX_DEPTH + 10


class Metadata(TypedDict, total=False):
    """Names an object; of its owners, the controller counts."""

    name: str
    generateName: str
    namespace: str
    uid: str
    resourceVersion: str
    creationTimestamp: str
    deletionTimestamp: str
    labels: Any
    annotations: Any
    ownerReferences: Any


class _Taints(TypedDict, total=False):
    taints: Any
    unschedulable: Any


class _Condition(TypedDict, total=False):
    type: str
    status: str
    reason: str
    lastTransitionTime: Any
    lastHeartbeatTime: Any


class _NodeStatus(TypedDict, total=False):
    capacity: Any
    allocatable: Any
    conditions: list[_Condition]


class _Object(TypedDict, total=False):
    apiVersion: str
    kind: str
    metadata: Metadata


class NodeObject(_Object, total=False):
    """Is a Node: labels, taints, capacity, readiness."""

    spec: _Taints
    status: _NodeStatus


class _Container(TypedDict, total=False):
    name: str
    resources: Any
    ports: Any
    restartPolicy: str


class _Volume(TypedDict, total=False):
    name: str
    persistentVolumeClaim: Any
    ephemeral: Any


class _PodSpec(TypedDict, total=False):
    affinity: Any
    containers: list[_Container]
    hostNetwork: Any
    initContainers: list[_Container]
    nodeName: str
    nodeSelector: Any
    overhead: Any
    preemptionPolicy: str
    priority: Any
    priorityClassName: str
    resourceClaims: Any
    resources: Any
    runtimeClassName: str
    schedulerName: str
    schedulingGates: Any
    schedulingGroup: Any
    tolerations: Any
    topologySpreadConstraints: Any
    volumes: list[_Volume]
    workloadRef: Any


class _Terminated(TypedDict, total=False):
    startedAt: Any
    finishedAt: Any
    exitCode: Any
    reason: str


class _Running(TypedDict, total=False):
    startedAt: Any


class _ContainerState(TypedDict, total=False):
    running: _Running
    terminated: _Terminated


class _ContainerStatus(TypedDict, total=False):
    name: str
    resources: Any
    allocatedResources: Any
    state: _ContainerState


class _PodStatus(TypedDict, total=False):
    allocatedResources: Any
    conditions: list[_Condition]
    containerStatuses: list[_ContainerStatus]
    extendedResourceClaimStatus: Any
    initContainerStatuses: list[_ContainerStatus]
    nominatedNodeName: str
    phase: str
    reason: str
    resourceClaimStatuses: Any
    resources: Any
    startTime: Any


class PodObject(_Object, total=False):
    """Is a Pod: what it asks for, where it may run, where and how long it runs."""

    spec: _PodSpec
    status: _PodStatus


class OtherObject(_Object, total=False):
    """Is any object around nodes and pods."""

    spec: Any
    status: Any
    value: Any
    globalDefault: Any
    preemptionPolicy: Any


class _JobTemplate(TypedDict, total=False):
    completionMode: str
    completions: Any
    parallelism: Any


class JobObject(_Object, total=False):
    """Is a Job: how many of its pods run at once. What they run is not read."""

    spec: _JobTemplate


class _ReplicatedTemplate(TypedDict, total=False):
    spec: _JobTemplate


class _ReplicatedJob(TypedDict, total=False):
    name: str
    replicas: Any
    dependsOn: Any
    template: _ReplicatedTemplate


class _JobSetSpec(TypedDict, total=False):
    startupPolicy: Any
    replicatedJobs: list[_ReplicatedJob]


class JobSetObject(_Object, total=False):
    """Is a JobSet: how many pods its Jobs run at once, and in which order."""

    spec: _JobSetSpec


class _LeaderWorkerTemplate(TypedDict, total=False):
    size: Any


class _LeaderWorkerSetSpec(TypedDict, total=False):
    startupPolicy: Any
    replicas: Any
    leaderWorkerTemplate: _LeaderWorkerTemplate


class LeaderWorkerSetObject(_Object, total=False):
    """Is a LeaderWorkerSet: how many pods make one group."""

    spec: _LeaderWorkerSetSpec


class _StorageSpec(TypedDict, total=False):
    accessModes: Any
    storageClassName: Any
    volumeAttributesClassName: Any
    volumeMode: Any


class _ClaimSpec(_StorageSpec, total=False):
    resources: Any
    selector: Any
    volumeName: Any


class _Phase(TypedDict, total=False):
    phase: str


class ClaimObject(_Object, total=False):
    """Is a PersistentVolumeClaim: what it asks for, and what it is bound to."""

    spec: _ClaimSpec
    status: _Phase


class _VolumeSpec(_StorageSpec, total=False):
    capacity: Any
    claimRef: Any
    nodeAffinity: Any


class VolumeObject(_Object, total=False):
    """Is a PersistentVolume: where it can be used. Where its data lie is not read."""

    spec: _VolumeSpec
    status: _Phase


class StorageClassObject(_Object, total=False):
    """Is a StorageClass: when and where it makes volumes."""

    allowedTopologies: Any
    provisioner: str
    volumeBindingMode: str


_DECODERS: Mapping[str, msgspec.json.Decoder[Any]] = {
    "Node": msgspec.json.Decoder(NodeObject),
    "Pod": msgspec.json.Decoder(PodObject),
    "Job.batch": msgspec.json.Decoder(JobObject),
    "JobSet.jobset.x-k8s.io": msgspec.json.Decoder(JobSetObject),
    "LeaderWorkerSet.leaderworkerset.x-k8s.io": msgspec.json.Decoder(LeaderWorkerSetObject),
    "PersistentVolume": msgspec.json.Decoder(VolumeObject),
    "PersistentVolumeClaim": msgspec.json.Decoder(ClaimObject),
    "StorageClass.storage.k8s.io": msgspec.json.Decoder(StorageClassObject),
}
_OTHER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(OtherObject)


_MARKING_DOMAINS = (
    "alibabacloud.com", "aliyun.com", "amd.com", "batch.kubernetes.io", "hami.io", "intel.com",
    "kai.scheduler", "koordinator.sh", "kueue.x-k8s.io", "nvidia.com", "podium", "run.ai",
    "scheduling.k8s.io", "scheduling.x-k8s.io", "sigs.k8s.io", "volcano.sh",
)  # fmt: skip
_MARKS = frozenset(
    {keys.GPUSHARE_INDEX, keys.KAI_DEVICES, keys.KAI_FRACTION, keys.KAI_GROUP, keys.KAI_MEMORY,
     keys.JOB_TYPE, *keys.GANG_KEYS["kai"], MIRROR, *keys.VOLUME_MARKS}
)  # fmt: skip


def is_mark(key: str) -> bool:
    """Tells annotations that say something about devices and groups from all others.

    Others may hold anything: `kubectl apply` keeps whole manifests in one.
    """
    domain = key.partition("/")[0]
    return key in _MARKS or any(
        domain == each or domain.endswith(f".{each}") for each in _MARKING_DOMAINS
    )


def without_strange_marks(value: dict[str, Any]) -> dict[str, Any]:
    """Leaves out the annotations of an object that Podium does not read."""
    metadata = value.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not annotations:
        return value
    kept = {key: text for key, text in annotations.items() if is_mark(key)}
    return {**value, "metadata": {**metadata, "annotations": kept}}


def decode(kind: str, raw: bytes | Raw) -> dict[str, Any]:
    """Decodes what Podium reads of an object.

    Raises:
        msgspec.DecodeError: it is no JSON, an object of another shape, or nested too deeply.
    """
    value: dict[str, Any] = _DECODERS.get(kind, _OTHER).decode(raw)
    if may_be_deep(bytes(raw)) and is_too_deep(value):
        raise msgspec.ValidationError(TOO_DEEP)
    return value


class Event(Struct):
    """Is one line of a watch."""

    type: str
    object: Raw


class Status(Struct):
    """Is what the API server says of a failure."""

    message: str = ""
    reason: str = ""
    code: int = 0


class _Version(Struct, rename="camel"):
    resource_version: str = ""


class Versioned(Struct):
    """Is any object, of which the version alone matters."""

    metadata: _Version


class _Name(Struct):
    name: str = ""
    namespace: str = ""


class _Named(Struct):
    metadata: _Name


class _ListMetadata(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Listed(Struct):
    """Is one page of a list."""

    metadata: _ListMetadata
    items: list[Raw] | None = None


event_decoder = msgspec.json.Decoder(Event)
status_decoder = msgspec.json.Decoder(Status)
version_decoder = msgspec.json.Decoder(Versioned)
list_decoder = msgspec.json.Decoder(Listed)
_name_decoder = msgspec.json.Decoder(_Named)


def decode_around(decoder: msgspec.json.Decoder[Any], raw: bytes | Raw) -> Any:
    """Decodes what stands around objects, whatever they are: a page of a list, an event.

    Raises:
        msgspec.DecodeError: it is something else.
    """
    try:
        return decoder.decode(raw)
    except RecursionError:
        # Skipping an object recurses, too. Without its depths the others can be read.
        return decoder.decode(without_depths(bytes(raw), _CUT))


def name_of(raw: bytes | Raw) -> str:
    """Names an object that cannot be read, as far as it says who it is."""
    try:
        found = _name_decoder.decode(raw).metadata
    except UNREADABLE:
        return "one without a name"
    return excerpt("/".join(filter(None, (found.namespace, found.name))), quote="")
