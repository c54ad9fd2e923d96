"""Reads which nodes the volumes of a pod tie it to, from claims, volumes and storage classes.

The sources are the filters of k8s.io/kubernetes v1.36: volumerestrictions, volumebinding and
volumezone. How much storage a CSI driver has left, and how many volumes a node can attach, is not
looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from podium.model.constraints import Constraints, NodeTerm, Requirement, VolumeRule
from podium.traces.fields import (
    FieldError,
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

DUMP = "kubectl get nodes,pods,pvc,pv,sc -A -o yaml"
"""Prints all that decides about volumes."""

UNKNOWN_VOLUMES = f"volumes are not known, `{DUMP}` prints them as well"
KINDS = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")

ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
NOT_BINDABLE = "node(s) didn't find available persistent volumes to bind"
OTHER_ZONE = "node(s) had no available volume zone"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_OLD_ZONES = {
    "failure-domain.beta.kubernetes.io/zone": _ZONES[0],
    "failure-domain.beta.kubernetes.io/region": _ZONES[1],
}
_SOLE = "ReadWriteOncePod"
MADE_FROM = "volumeClaimTemplate"
"""What a claim is made from that comes with its pod: of Kubernetes in ephemeral volumes alone."""
_STATIC = ("", "kubernetes.io/no-provisioner")

Places = tuple[NodeTerm, ...] | None
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """Is a volume of a pod that a claim stands for."""

    name: str  # of the claim
    template: Object | None = None  # from which a claim that comes with its pod is made


@dataclass(frozen=True, slots=True)
class Tied:
    """Says where the volumes of a pod let it run."""

    rules: tuple[VolumeRule, ...] = ()
    sole_claims: tuple[str, ...] = ()
    is_known: bool = True

    def constrain(self, constraints: Constraints, *, is_running: bool) -> Constraints:
        """Adds what volumes demand of nodes; a pod that runs waits for nothing any more."""
        rules = tuple(rule for rule in self.rules if not (is_running and rule.is_of_pod))
        return replace(constraints, volumes=rules, sole_claims=self.sole_claims)


UNKNOWN = Tied(is_known=False)


@dataclass(frozen=True, slots=True)
class _Claim:
    name: str
    namespace: str
    uid: str
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
class _Volume:
    storage_class: str
    claim: tuple[str, str, str] | None  # namespace, name and UID
    is_available: bool
    amount: Fraction
    modes: frozenset[str]
    volume_mode: str
    attributes: str
    labels: Mapping[str, str]
    places: Places

    def is_for(self, claim: _Claim) -> bool:
        """Tells whether the volume is kept for a claim."""
        own = (claim.namespace, claim.name)
        return self.claim in ((*own, ""), (*own, claim.uid))

    @property
    def _kind(self) -> tuple[str, str, str]:
        return self.storage_class, self.volume_mode, self.attributes

    def serves(self, claim: _Claim) -> bool:
        """Tells whether a claim could be bound to it (`FindMatchingVolume`)."""
        if self._kind != (claim.storage_class, claim.volume_mode, claim.attributes):
            return False
        if self.amount < claim.amount:
            return False
        if self.claim is not None:
            return self.is_for(claim)
        return (
            self.is_available
            and claim.modes <= self.modes
            and all(each.is_met(self.labels) for each in claim.selector or ())
        )


@dataclass(frozen=True, slots=True)
class _Class:
    waits: bool  # volumeBindingMode: WaitForFirstConsumer
    is_default: bool
    is_static: bool
    places: Places


@dataclass(slots=True)
class Volumes:
    """Holds the claims, volumes and storage classes of a dump."""

    claims: dict[tuple[str, str], _Claim] = field(default_factory=dict)
    volumes: dict[str, _Volume] = field(default_factory=dict)
    classes: dict[str, _Class] = field(default_factory=dict)

    def add(self, value: Object) -> None:
        """Keeps a PersistentVolumeClaim, a PersistentVolume or a StorageClass."""
        metadata = mapping_at(value, "metadata", "metadata")
        name = text_of(metadata.get("name"), "metadata.name")
        if value["kind"] == "PersistentVolumeClaim":
            claim = _claim(value, _namespace(metadata), name)
            self.claims[claim.namespace, name] = claim
        elif value["kind"] == "PersistentVolume":
            self.volumes[name] = _volume(value)
        else:
            self.classes[name] = _class(value)

    def tied(self, namespace: str, uses: tuple[ClaimUse, ...], *, is_live: bool) -> Tied:
        """Says where a pod may run that uses claims, as kube-scheduler finds it out.

        The claims of generic ephemeral volumes are made with a pod that is yet to be created.
        """
        namespace = namespace or "default"
        found = [self._claim(namespace, use, is_live=is_live) for use in uses]
        if not self.claims and any(claim is None for claim in found):
            return UNKNOWN
        claims = [claim for claim in found if claim is not None]
        sole = (f"{namespace}/{each.name}" for each in claims if _SOLE in each.modes)
        looked_at = sorted(zip(uses, found, strict=True), key=_order)
        problem = next((text for each in looked_at if (text := _problem(*each))), "")
        tied = Tied((VolumeRule(problem),)) if problem else self._tied(claims)
        return replace(tied, sole_claims=tuple(dict.fromkeys(sole)))

    def _claim(self, namespace: str, use: ClaimUse, *, is_live: bool) -> _Claim | None:
        known = self.claims.get((namespace, use.name))
        if known is not None or use.template is None or is_live:
            return known
        return _claim(use.template, namespace, use.name)

    def _tied(self, claims: list[_Claim]) -> Tied:
        waiting = [claim for claim in map(self._classed, claims) if not claim.is_bound]
        for claim in waiting:
            is_classless = claim.uid and not claim.storage_class
            if not self.classes and not claim.volume and not is_classless:
                return UNKNOWN
            known = self.classes.get(claim.storage_class)
            if claim.volume or known is None or not known.waits:
                return Tied((VolumeRule(IMMEDIATE),))
        bound = [claim for claim in claims if claim.is_bound]
        if bound and not self.volumes:
            return UNKNOWN
        for claim in bound:
            if claim.volume not in self.volumes:
                return Tied((VolumeRule(f'persistentvolume "{claim.volume}" not found'),))
        volumes = [self.volumes[claim.volume] for claim in bound]
        reach = (each.places for each in volumes if each.places is not None)
        rules = [VolumeRule(ELSEWHERE, (places,)) for places in reach]
        rules += self._unbound(waiting)
        zones = (terms for each in volumes for terms in _zones(each.labels))
        rules += [VolumeRule(OTHER_ZONE, (terms,)) for terms in zones]
        return Tied(tuple(dict.fromkeys(rules)))

    def _classed(self, claim: _Claim) -> _Claim:
        """Gives a claim that is yet to be created the default class, as the API server does."""
        if claim.uid or claim.is_bound or claim.storage_class:
            return claim
        default = next((name for name, each in self.classes.items() if each.is_default), "")
        return replace(claim, storage_class=default)

    def _unbound(self, claims: list[_Claim]) -> Iterator[VolumeRule]:
        """Finds where claims may be bound or provisioned."""
        for claim in claims:
            if claim.selected_node:
                named = Requirement("metadata.name", "In", (claim.selected_node,))
                yield VolumeRule(NOT_BINDABLE, ((NodeTerm(fields=(named,)),),))
                yield VolumeRule(NOT_BINDABLE, self._made(claim))
        # kube-scheduler serves the smallest claim first, by the smallest volume that is left.
        free = sorted((each for each in claims if not each.selected_node), key=_amount)
        if free:
            yield self._shared_out(free)

    def _made(self, claim: _Claim) -> tuple[Places, ...]:
        """Gives where a volume can be made for a claim."""
        found = self.classes[claim.storage_class]
        return () if found.is_static else (found.places,)

    def _shared_out(self, claims: list[_Claim]) -> VolumeRule:
        volumes = sorted(
            (volume for volume in self.volumes.values() if any(map(volume.serves, claims))),
            key=_amount,
        )
        choices = [volume.places for volume in volumes]
        wanted = []
        for claim in claims:
            serving = [i for i, volume in enumerate(volumes) if volume.serves(claim)]
            # Where a volume is kept for a claim, no other will do.
            kept = [i for i in serving if volumes[i].claim is not None]
            made = self._made(claim)
            wanted.append((*(kept or serving), *range(len(choices), len(choices) + len(made))))
            choices += made
        return VolumeRule(NOT_BINDABLE, tuple(choices), tuple(wanted))


def written_rules(text: str) -> tuple[tuple[VolumeRule, ...], tuple[str, ...]]:
    """Reads rules and claims from the annotation in which Podium writes them."""
    at = f"metadata.annotations.{keys.VOLUMES}"
    try:
        found = mapping_at({"it": json.loads(text)}, "it", at)
    except (ValueError, RecursionError) as error:
        raise FieldError(at, "is not the JSON that Podium writes") from error
    rules = tuple(_written_rule(each, at) for each in mappings_at(found, "rules", at))
    return rules, tuple(text_of(each, at) for each in list_at(found, "soleClaims", at))


def _written_rule(rule: Object, at: str) -> VolumeRule:
    places = list_at(rule, "places", at)
    choices = tuple(node_terms_at({"place": each}, "place", at) for each in places)
    claims = (list_at({"claim": each}, "claim", at) for each in list_at(rule, "claims", at))
    wanted = tuple(tuple(whole_of(i, at, 0, len(places) - 1) for i in each) for each in claims)
    return VolumeRule(text_of(rule.get("text"), at), choices, wanted or ((0,),))


def claim_uses(spec: Object, pod_name: str) -> tuple[ClaimUse, ...]:
    """Lists the volumes of a pod that claims stand for."""
    return tuple(_claim_uses(spec, pod_name)) if spec.get("volumes") else ()


def _claim_uses(spec: Object, pod_name: str) -> Iterator[ClaimUse]:
    for index, volume in enumerate(mappings_at(spec, "volumes", "spec.volumes")):
        at = f"spec.volumes[{index}]"
        if volume.get("persistentVolumeClaim") is not None:
            source = mapping_at(volume, "persistentVolumeClaim", f"{at}.persistentVolumeClaim")
            template = mapping_at(source, MADE_FROM, f"{at}.{MADE_FROM}")
            yield ClaimUse(text_of(source.get("claimName"), f"{at}.claimName"), template or None)
        elif volume.get("ephemeral") is not None:
            source = mapping_at(volume, "ephemeral", f"{at}.ephemeral")
            name = text_of(volume.get("name"), f"{at}.name")
            template = mapping_at(source, MADE_FROM, f"{at}.{MADE_FROM}")
            yield ClaimUse(f"{pod_name}-{name}", template)


def _amount(each: _Claim | _Volume) -> Fraction:
    return each.amount


def _order(pair: tuple[ClaimUse, _Claim | None]) -> bool:
    use, claim = pair
    return claim is not None or use.template is not None


def _problem(use: ClaimUse, claim: _Claim | None) -> str:
    """Says what kube-scheduler finds wrong with a claim before it looks at any node."""
    named = f'persistentvolumeclaim "{use.name}"'
    if claim is None:
        making = "waiting for ephemeral volume controller to create the "
        return f"{named} not found" if use.template is None else f"{making}{named}"
    if claim.is_lost:
        return f'{named} bound to non-existent persistentvolume "{claim.volume}"'
    return f"{named} is being deleted" if claim.is_deleted else ""


def _claim(value: Object, namespace: str, name: str) -> _Claim:
    metadata = mapping_at(value, "metadata", "metadata")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    spec = mapping_at(value, "spec", "spec")
    phase = text_of(mapping_at(value, "status", "status").get("phase"), "status.phase")
    volume = text_of(spec.get("volumeName"), "spec.volumeName")
    resources = mapping_at(spec, "resources", "spec.resources")
    return _Claim(
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


def _volume(value: Object) -> _Volume:
    metadata = mapping_at(value, "metadata", "metadata")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    spec = mapping_at(value, "spec", "spec")
    owner = mapping_at(spec, "claimRef", "spec.claimRef")
    affinity = mapping_at(spec, "nodeAffinity", "spec.nodeAffinity")
    phase = text_of(mapping_at(value, "status", "status").get("phase"), "status.phase")
    names = (_namespace(owner), _text(owner, "name"), _text(owner, "uid"))
    return _Volume(
        storage_class=annotations.get(keys.STORAGE_CLASS) or _text(spec, "storageClassName"),
        claim=names if owner else None,
        is_available=phase == "Available" and metadata.get("deletionTimestamp") is None,
        amount=_storage(spec, "capacity", "spec.capacity"),
        modes=_modes(spec),
        volume_mode=_text(spec, "volumeMode") or "Filesystem",
        attributes=_text(spec, "volumeAttributesClassName"),
        labels=texts_at(metadata, "labels", "metadata.labels"),
        places=node_terms_at(affinity, "required", "spec.nodeAffinity.required"),
    )


def _class(value: Object) -> _Class:
    metadata = mapping_at(value, "metadata", "metadata")
    annotations = texts_at(metadata, "annotations", "metadata.annotations")
    topologies = mappings_at(value, "allowedTopologies", "allowedTopologies")
    terms = (_topology(each, f"allowedTopologies[{i}]") for i, each in enumerate(topologies))
    return _Class(
        waits=_text(value, "volumeBindingMode") == "WaitForFirstConsumer",
        is_default=annotations.get(keys.DEFAULT_STORAGE_CLASS) == "true",
        is_static=_text(value, "provisioner") in _STATIC,
        places=tuple(terms) if topologies else None,
    )


def _topology(term: Object, at: str) -> NodeTerm:
    found = []
    for rule in mappings_at(term, "matchLabelExpressions", f"{at}.matchLabelExpressions"):
        values = (text_of(each, f"{at}.values") for each in list_at(rule, "values", at))
        found.append(Requirement(_text(rule, "key"), "In", tuple(values)))
    return NodeTerm(tuple(found))


def _zones(labels: Mapping[str, str]) -> Iterator[tuple[NodeTerm, ...]]:
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


def _namespace(parent: Object) -> str:
    return text_of(parent.get("namespace"), "metadata.namespace") or "default"


def _text(parent: Object, name: str) -> str:
    return text_of(parent.get(name), f"spec.{name}")


def _modes(spec: Object) -> frozenset[str]:
    at = "spec.accessModes"
    return frozenset(text_of(each, at) for each in list_at(spec, "accessModes", at))


def _storage(parent: Object, name: str, at: str) -> Fraction:
    amount = mapping_at(parent, name, at).get("storage")
    return Fraction(0) if amount is None else quantity_of(amount, f"{at}.storage")
