"""Reads the objects that say what storage there is: claims, volumes, classes, CSI drivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from podium.model.constraints import NodeTerm, Requirement
from podium.traces.fields import (
    flag_of,
    list_at,
    mapping_at,
    mappings_at,
    quantity_of,
    text_of,
    texts_at,
    whole_of,
)
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.constraints import label_selector, node_terms_at

_STATIC = ("", "kubernetes.io/no-provisioner")
_MIGRATED = {
    "awsElasticBlockStore": ("aws-ebs", "volumeID", "ebs.csi.aws.com"),
    "azureDisk": ("azure-disk", "diskURI", "disk.csi.azure.com"),
    "cinder": ("cinder", "volumeID", "cinder.csi.openstack.org"),
    "gcePersistentDisk": ("gce-pd", "pdName", "pd.csi.storage.gke.io"),
    "vsphereVolume": ("vsphere-volume", "volumePath", "csi.vsphere.vmware.com"),
}
"""Volumes of old that a CSI driver serves: their provisioner, what names them, and the driver."""
_DRIVERS = {f"kubernetes.io/{name}": driver for name, _, driver in _MIGRATED.values()}

_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_OLD_ZONES = {
    "failure-domain.beta.kubernetes.io/zone": _ZONES[0],
    "failure-domain.beta.kubernetes.io/region": _ZONES[1],
}

Places = tuple[NodeTerm, ...] | None
Object = Mapping[str, Any]
Attached = tuple[str, str]
"""Names a volume that a CSI driver attaches to nodes: the driver, and its handle there."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Is a PersistentVolumeClaim, or one that is yet to be created."""

    name: str
    namespace: str
    uid: str  # empty: it is yet to be created
    storage_class: str
    volume: str
    is_bound: bool
    is_lost: bool
    is_deleted: bool
    selected_node: str
    amount: Fraction
    modes: frozenset[str]
    volume_mode: str
    attributes: str
    selector: tuple[Requirement, ...] | None


@dataclass(frozen=True, slots=True)
class Volume:
    """Is a PersistentVolume."""

    storage_class: str
    claim: tuple[str, str, str] | None  # namespace, name and UID
    is_available: bool
    is_deleted: bool
    amount: Fraction
    modes: frozenset[str]
    volume_mode: str
    attributes: str
    labels: Mapping[str, str]
    places: Places
    attached: Attached | None  # None: no CSI driver attaches it
    is_migrated: bool  # is not written as a volume of that driver

    def is_for(self, claim: Claim) -> bool:
        """Tells whether the volume is kept for a claim."""
        own = (claim.namespace, claim.name)
        return self.claim in ((*own, ""), (*own, claim.uid))

    @property
    def _kind(self) -> tuple[str, str, str]:
        return self.storage_class, self.volume_mode, self.attributes

    def serves(self, claim: Claim) -> bool:
        """Tells whether a claim could be bound to it (`FindMatchingVolume`)."""
        if self._kind != (claim.storage_class, claim.volume_mode, claim.attributes):
            return False
        if self.is_deleted or self.amount < claim.amount:
            return False
        if self.claim is not None:
            return self.is_for(claim)
        return (
            self.is_available
            and claim.modes <= self.modes
            and all(each.is_met(self.labels) for each in claim.selector or ())
        )

    def is_on(self, name: str, labels: Mapping[str, str]) -> bool:
        """Tells whether a node can use it."""
        return self.places is None or any(each.is_met(name, labels) for each in self.places)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """Is a StorageClass."""

    waits: bool  # volumeBindingMode: WaitForFirstConsumer
    is_default: bool
    provisioner: str
    driver: str  # of CSI: the provisioner, or what serves volumes of it today
    places: Places

    @property
    def is_static(self) -> bool:
        """Tells whether nobody makes volumes for claims."""
        return self.provisioner in _STATIC


@dataclass(frozen=True, slots=True)
class Capacity:
    """Is a CSIStorageCapacity: how large a volume can be made on some nodes."""

    storage_class: str
    most: Fraction
    places: tuple[Requirement, ...] | None  # None: nowhere, empty: anywhere


def read_claim(value: Object, namespace: str, name: str) -> Claim:
    """Reads a claim, or the template of one."""
    metadata = mapping_at(value, "metadata", "metadata")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    spec = mapping_at(value, "spec", "spec")
    phase = text_of(mapping_at(value, "status", "status").get("phase"), "status.phase")
    volume = text_of(spec.get("volumeName"), "spec.volumeName")
    resources = mapping_at(spec, "resources", "spec.resources")
    return Claim(
        name=name,
        namespace=namespace,
        uid=text_of(metadata.get("uid"), "metadata.uid"),
        storage_class=annotations.get(keys.STORAGE_CLASS) or _text(spec, "storageClassName"),
        volume=volume,
        is_bound=bool(volume) and (keys.BIND_COMPLETED in annotations or phase == "Bound"),
        is_lost=phase == "Lost",
        is_deleted=metadata.get("deletionTimestamp") is not None,
        selected_node=annotations.get(keys.SELECTED_NODE, ""),
        amount=_storage(resources, "requests", "spec.resources.requests"),
        modes=_modes(spec),
        volume_mode=_text(spec, "volumeMode") or "Filesystem",
        attributes=_text(spec, "volumeAttributesClassName"),
        selector=label_selector(spec, "selector", "spec"),
    )


def read_volume(value: Object) -> Volume:
    """Reads a PersistentVolume."""
    metadata = mapping_at(value, "metadata", "metadata")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    spec = mapping_at(value, "spec", "spec")
    owner = mapping_at(spec, "claimRef", "spec.claimRef")
    affinity = mapping_at(spec, "nodeAffinity", "spec.nodeAffinity")
    phase = text_of(mapping_at(value, "status", "status").get("phase"), "status.phase")
    names = (namespace_of(owner), _text(owner, "name"), _text(owner, "uid"))
    return Volume(
        storage_class=annotations.get(keys.STORAGE_CLASS) or _text(spec, "storageClassName"),
        claim=names if owner else None,
        is_available=phase == "Available",
        is_deleted=metadata.get("deletionTimestamp") is not None,
        amount=_storage(spec, "capacity", "spec.capacity"),
        modes=_modes(spec),
        volume_mode=_text(spec, "volumeMode") or "Filesystem",
        attributes=_text(spec, "volumeAttributesClassName"),
        labels=texts_at(metadata, "labels", "metadata.labels"),
        places=node_terms_at(affinity, "required", "spec.nodeAffinity.required"),
        attached=_attached(spec),
        is_migrated="csi" not in spec,
    )


def _attached(spec: Object) -> Attached | None:
    if spec.get("csi") is not None:
        source = mapping_at(spec, "csi", "spec.csi")
        return _text(source, "driver"), _text(source, "volumeHandle")
    for name, (_, key, driver) in _MIGRATED.items():
        if spec.get(name) is not None:
            return driver, _text(mapping_at(spec, name, f"spec.{name}"), key)
    return None


def read_class(value: Object) -> StorageClass:
    """Reads a StorageClass."""
    metadata = mapping_at(value, "metadata", "metadata")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    topologies = mappings_at(value, "allowedTopologies", "allowedTopologies")
    provisioner = _text(value, "provisioner")
    terms = (_topology(each, f"allowedTopologies[{i}]") for i, each in enumerate(topologies))
    return StorageClass(
        waits=_text(value, "volumeBindingMode") == "WaitForFirstConsumer",
        is_default=annotations.get(keys.DEFAULT_STORAGE_CLASS) == "true",
        provisioner=provisioner,
        driver=_DRIVERS.get(provisioner, provisioner),
        places=tuple(terms) if topologies else None,
    )


def read_capacity(value: Object) -> Capacity:
    """Reads a CSIStorageCapacity."""
    name = "maximumVolumeSize" if value.get("maximumVolumeSize") is not None else "capacity"
    amount = value.get(name)
    return Capacity(
        storage_class=text_of(value.get("storageClassName"), "storageClassName"),
        most=Fraction(-1) if amount is None else quantity_of(amount, name),
        places=label_selector(value, "nodeTopology", "nodeTopology"),
    )


def read_limits(value: Object) -> dict[str, int]:
    """Reads from a CSINode how many volumes each driver attaches, where that is limited."""
    at, limits = "spec.drivers", {}
    for index, driver in enumerate(mappings_at(mapping_at(value, "spec", "spec"), "drivers", at)):
        room = mapping_at(driver, "allocatable", f"{at}[{index}].allocatable")
        if room.get("count") is not None:
            limits[_text(driver, "name")] = whole_of(room["count"], f"{at}[{index}].count")
    return limits


def read_attachment(value: Object) -> tuple[str, str, str]:
    """Reads from a VolumeAttachment the node, the driver and the PersistentVolume."""
    spec = mapping_at(value, "spec", "spec")
    source = mapping_at(spec, "source", "spec.source")
    names = (_text(spec, "nodeName"), _text(spec, "attacher"))
    return (*names, _text(source, "persistentVolumeName"))


def tracks_capacity(value: Object) -> bool:
    """Tells of a CSIDriver whether it makes volumes only where it says that there is room."""
    flag = mapping_at(value, "spec", "spec").get("storageCapacity")
    return flag is not None and flag_of(flag, "spec.storageCapacity")


def _topology(term: Object, at: str) -> NodeTerm:
    found = []
    for rule in mappings_at(term, "matchLabelExpressions", f"{at}.matchLabelExpressions"):
        values = (text_of(each, f"{at}.values") for each in list_at(rule, "values", at))
        found.append(Requirement(_text(rule, "key"), "In", tuple(values)))
    return NodeTerm(tuple(found))


def zones_of(labels: Mapping[str, str]) -> Iterator[tuple[NodeTerm, ...]]:
    """Gives the nodes in the zone or region of a volume; a node with neither may be anywhere."""
    keys = (*_ZONES, *_OLD_ZONES)
    nowhere = NodeTerm(tuple(Requirement(key, "DoesNotExist") for key in keys))
    for key in keys:
        if key not in labels:
            continue
        values = tuple(labels[key].split("__"))
        terms = [nowhere, NodeTerm((Requirement(key, "In", values),))]
        if key in _OLD_ZONES:
            newer = Requirement(_OLD_ZONES[key], "In", values)
            terms.append(NodeTerm((Requirement(key, "DoesNotExist"), newer)))
        yield tuple(terms)


def namespace_of(parent: Object) -> str:
    """Names the namespace of an object."""
    return text_of(parent.get("namespace"), "metadata.namespace") or "default"


def _text(parent: Object, name: str) -> str:
    return text_of(parent.get(name), f"spec.{name}")


def _modes(spec: Object) -> frozenset[str]:
    at = "spec.accessModes"
    return frozenset(text_of(each, at) for each in list_at(spec, "accessModes", at))


def _storage(parent: Object, name: str, at: str) -> Fraction:
    amount = mapping_at(parent, name, at).get("storage")
    return Fraction(0) if amount is None else quantity_of(amount, f"{at}.storage")
