"""Says which nodes the volumes of a pod tie it to, from what there is of storage.

The sources are the filters of k8s.io/kubernetes v1.36: volumerestrictions, nodevolumelimits,
volumebinding and volumezone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from podium.model.constraints import Constraints, NodeTerm, Requirement, VolumeRule
from podium.traces.fields import FieldError, list_at, mapping_at, mappings_at, text_of, whole_of
from podium.traces.kubernetes import keys
from podium.traces.kubernetes.constraints import node_terms_at
from podium.traces.kubernetes.storage import (
    Attached,
    Capacity,
    Claim,
    Object,
    Places,
    StorageClass,
    Volume,
    namespace_of,
    read_attachment,
    read_capacity,
    read_claim,
    read_class,
    read_limits,
    read_volume,
    tracks_capacity,
    zones_of,
)

DUMP = "kubectl get nodes,pods,pvc,pv,sc -A -o yaml"
"""Prints all that decides about most volumes."""

UNKNOWN_VOLUMES = f"volumes are not known, `{DUMP}` prints them as well"
UNKNOWN_ROOM = (
    "how much storage CSI drivers have left is not known: csidrivers and csistoragecapacities "
    "belong in the dump, both or neither"
)
KINDS = (
    "PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSIDriver", "CSINode",
    "CSIStorageCapacity", "VolumeAttachment",
)  # fmt: skip

ELSEWHERE = "node(s) didn't match PersistentVolume's node affinity"
FULL = "node(s) exceed max volume count"
NOT_BINDABLE = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
OTHER_ZONE = "node(s) had no available volume zone"
IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"

_SOLE = "ReadWriteOncePod"
MADE_FROM = "volumeClaimTemplate"
"""What a claim is made from that comes with its pod: of Kubernetes in ephemeral volumes alone."""


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """Is a volume of a pod that a claim stands for."""

    name: str  # of the claim
    template: Object | None = None  # from which a claim that comes with its pod is made


@dataclass(frozen=True, slots=True)
class Consumer:
    """Is a pod that uses claims."""

    namespace: str
    name: str
    uses: tuple[ClaimUse, ...]
    is_live: bool  # an API server knows it, so that all claims that come with it are there


@dataclass(frozen=True, slots=True)
class Tied:
    """Says where the volumes of a pod let it run."""

    rules: tuple[VolumeRule, ...] = ()
    sole_claims: tuple[str, ...] = ()
    unknown: str = ""  # what would have to be known to say so

    def constrain(self, constraints: Constraints, *, is_running: bool) -> Constraints:
        """Adds what volumes demand of nodes; a pod that runs waits for nothing any more."""
        rules = tuple(rule for rule in self.rules if not (is_running and rule.is_of_pod))
        return replace(constraints, volumes=rules, sole_claims=self.sole_claims)


@dataclass(slots=True)
class Volumes:
    """Holds what a dump says of storage, and who uses which of it."""

    claims: dict[tuple[str, str], Claim] = field(default_factory=dict)
    volumes: dict[str, Volume] = field(default_factory=dict)
    classes: dict[str, StorageClass] = field(default_factory=dict)
    drivers: dict[str, bool] = field(default_factory=dict)  # whether they track capacity
    capacities: list[Capacity] = field(default_factory=list)
    limits: dict[str, dict[str, int]] = field(default_factory=dict)  # by node and driver
    attachments: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by node
    free: dict[str, dict[str, Volume]] = field(default_factory=dict)  # by class and name
    kept: dict[tuple[str, str], dict[str, Volume]] = field(default_factory=dict)  # for claims
    used: dict[str, dict[tuple[str, str], set[Attached]]] = field(default_factory=dict)

    def add(self, value: Object) -> None:
        """Keeps an object of one of the kinds that say something of storage."""
        metadata = mapping_at(value, "metadata", "metadata")
        name = text_of(metadata.get("name"), "metadata.name")
        match value["kind"]:
            case "PersistentVolumeClaim":
                claim = read_claim(value, namespace_of(metadata), name)
                self.claims[claim.namespace, name] = claim
            case "PersistentVolume":
                self._add_volume(name, read_volume(value))
            case "StorageClass":
                self.classes[name] = read_class(value)
            case "CSIDriver":
                self.drivers[name] = tracks_capacity(value)
            case "CSINode":
                self.limits[name] = read_limits(value)
            case "CSIStorageCapacity":
                self.capacities.append(read_capacity(value))
            case _:
                node, *attached = read_attachment(value)
                self.attachments.setdefault(node, []).append((attached[0], attached[1]))

    def _add_volume(self, name: str, volume: Volume) -> None:
        self.volumes[name] = volume
        if volume.claim is None:
            self.free.setdefault(volume.storage_class, {})[name] = volume
        else:
            self.kept.setdefault(volume.claim[:2], {})[name] = volume

    def copied(self) -> Volumes:
        """Copies what changes as pods are placed."""
        return replace(
            self,
            claims=dict(self.claims),
            volumes=dict(self.volumes),
            free={name: dict(each) for name, each in self.free.items()},
            used={node: dict(pods) for node, pods in self.used.items()},
        )

    def tied(self, pod: Consumer) -> Tied:
        """Says where a pod may run, as kube-scheduler finds it out.

        The claims of generic ephemeral volumes are made with a pod that is yet to be created.
        """
        found = [self._claim(pod, use) for use in pod.uses]
        if not self.claims and any(claim is None for claim in found):
            return Tied(unknown=UNKNOWN_VOLUMES)
        claims = [claim for claim in found if claim is not None]
        sole = (f"{pod.namespace}/{each.name}" for each in claims if _SOLE in each.modes)
        looked_at = sorted(zip(pod.uses, found, strict=True), key=_order)
        problem = next((text for each in looked_at if (text := _problem(*each))), "")
        tied = Tied((VolumeRule(problem),)) if problem else self._tied(claims)
        return replace(tied, sole_claims=tuple(dict.fromkeys(sole)))

    def waiting(self, pod: Consumer) -> list[Claim]:
        """Lists the claims of a pod that are not bound, the smallest first.

        So kube-scheduler serves them, each by the smallest volume that is left.
        """
        return sorted((each for each in self.known(pod) if not each.is_bound), key=_amount)

    def serving(self, claim: Claim) -> dict[str, Volume]:
        """Finds the volumes that a claim may be bound to; where one is kept for it, no other."""
        owner = (claim.namespace, claim.name)
        kept = {n: each for n, each in self.kept.get(owner, {}).items() if each.serves(claim)}
        free = self.free.get(claim.storage_class, {})
        return kept or {name: each for name, each in free.items() if each.serves(claim)}

    def known(self, pod: Consumer) -> list[Claim]:
        """Lists the claims of a pod that are there, or come with it."""
        found = (self._claim(pod, use) for use in pod.uses)
        return [claim for claim in found if claim is not None]

    def bind(self, pod: Consumer, node: str, labels: Mapping[str, str]) -> bool:
        """Gives claims the volumes that they get on a node, where there are enough of them.

        Tells whether it is known which ones: of volumes of one size, kube-scheduler takes any.
        """
        is_known = True
        for claim in self.waiting(pod):
            if claim.selected_node:
                continue
            open_to = {n: v for n, v in self.serving(claim).items() if v.is_on(node, labels)}
            name = min(open_to, key=lambda each: open_to[each].amount, default="")
            if not name:
                self.claims[claim.namespace, claim.name] = replace(claim, selected_node=node)
                continue
            taken = open_to[name]
            same = (each for each in open_to.values() if each.amount == taken.amount)
            is_known &= all(_is_alike(each, taken) for each in same)
            self.free.get(taken.storage_class, {}).pop(name, None)
            self.claims[claim.namespace, claim.name] = replace(claim, volume=name, is_bound=True)
        self.attach(pod, node)
        return is_known

    def attach(self, pod: Consumer, node: str) -> None:
        """Counts the volumes of a pod that runs on a node."""
        self.used.setdefault(node, {})[pod.namespace, pod.name] = self.attached(pod)

    def detach(self, pod: Consumer) -> None:
        """Counts the volumes of a pod no more, wherever it ran."""
        for pods in self.used.values():
            pods.pop((pod.namespace, pod.name), None)

    def attached(self, pod: Consumer) -> set[Attached]:
        """Names the volumes of a pod that CSI drivers attach to its node."""
        found = map(self._attached, self.known(pod))
        return {each for each in found if each is not None}

    def room(self, node: str, driver: str) -> int | None:
        """Counts the volumes that a driver can still attach to a node; None: any number."""
        limit = self.limits.get(node, {}).get(driver)
        return None if limit is None else limit - self._counts(node)[driver]

    def _attached(self, claim: Claim) -> Attached | None:
        volume = self.volumes.get(claim.volume)
        if volume is not None:
            return volume.attached
        found = self.classes.get(claim.storage_class)
        # No handle holds a slash twice over.
        return None if found is None else (found.driver, f"{claim.namespace}//{claim.name}")

    def _there(self, node: str) -> set[Attached]:
        return set[Attached]().union(*self.used.get(node, {}).values())

    def _counts(self, node: str) -> Counter[str]:
        """Counts what each driver has attached to a node, or will for the pods there."""
        there = self._there(node)
        for driver, name in self.attachments.get(node, ()):
            volume = self.volumes.get(name)
            if volume is not None and volume.attached and not volume.is_migrated:
                there.add((driver, volume.attached[1]))
        return Counter(driver for driver, _ in there)

    def _full(self, claims: list[Claim]) -> Iterator[VolumeRule]:
        """Finds the nodes to which the drivers cannot attach all volumes of a pod."""
        wanted = {each for each in map(self._attached, claims) if each is not None}
        drivers = {driver for driver, _ in wanted}
        limited = (node for node, limits in self.limits.items() if not drivers.isdisjoint(limits))
        names = tuple(node for node in limited if self._is_full(node, wanted))
        if names:
            term = NodeTerm(fields=(Requirement("metadata.name", "NotIn", names),))
            yield VolumeRule(FULL, ((term,),))

    def _is_full(self, node: str, wanted: set[Attached]) -> bool:
        new, counts = Counter(driver for driver, _ in wanted - self._there(node)), None
        for driver, count in new.items():
            limit = self.limits[node].get(driver)
            if limit is None:
                continue
            counts = self._counts(node) if counts is None else counts
            if counts[driver] + count > limit:
                return True
        return False

    def _claim(self, pod: Consumer, use: ClaimUse) -> Claim | None:
        known = self.claims.get((pod.namespace, use.name))
        if known is None and use.template is not None and not pod.is_live:
            known = read_claim(use.template, pod.namespace, use.name)
        return None if known is None else self._classed(known)

    def _tied(self, claims: list[Claim]) -> Tied:
        waiting = sorted((claim for claim in claims if not claim.is_bound), key=_amount)
        for claim in waiting:
            is_classless = claim.uid and not claim.storage_class
            if not self.classes and not claim.volume and not is_classless:
                return Tied(unknown=UNKNOWN_VOLUMES)
            known = self.classes.get(claim.storage_class)
            if claim.volume or known is None or not known.waits:
                return Tied((VolumeRule(IMMEDIATE),))
        bound = [claim for claim in claims if claim.is_bound]
        if bound and not self.volumes:
            return Tied(unknown=UNKNOWN_VOLUMES)
        for claim in bound:
            if claim.volume not in self.volumes:
                return Tied((VolumeRule(f'persistentvolume "{claim.volume}" not found'),))
        if not all(map(self._is_room_known, waiting)):
            return Tied(unknown=UNKNOWN_ROOM)
        volumes = [self.volumes[claim.volume] for claim in bound]
        reach = (each.places for each in volumes if each.places is not None)
        rules = [*self._full(claims), *(VolumeRule(ELSEWHERE, (places,)) for places in reach)]
        rules += self._unbound(waiting)
        zones = (terms for each in volumes for terms in zones_of(each.labels))
        rules += [VolumeRule(OTHER_ZONE, (terms,)) for terms in zones]
        return Tied(tuple(dict.fromkeys(rules)))

    def _classed(self, claim: Claim) -> Claim:
        """Gives a claim that is yet to be created the default class, as the API server does."""
        if claim.uid or claim.is_bound or claim.storage_class:
            return claim
        default = next((name for name, each in self.classes.items() if each.is_default), "")
        return replace(claim, storage_class=default)

    def _unbound(self, claims: list[Claim]) -> Iterator[VolumeRule]:
        """Finds where claims may be bound or provisioned."""
        made = {claim: self._made(claim) for claim in claims}
        roomy = {claim: self._roomy(claim, places) for claim, places in made.items()}
        for claim in claims:
            if claim.selected_node:
                named = Requirement("metadata.name", "In", (claim.selected_node,))
                yield VolumeRule(NOT_BINDABLE, ((NodeTerm(fields=(named,)),),))
                yield VolumeRule(NOT_BINDABLE, made[claim])
                if roomy[claim] != made[claim]:
                    yield VolumeRule(NO_SPACE, roomy[claim])
        free = [each for each in claims if not each.selected_node]
        if free:
            yield self._shared_out(NOT_BINDABLE, free, made)
        if any(roomy[each] != made[each] for each in free):
            yield self._shared_out(NO_SPACE, free, roomy)

    def _made(self, claim: Claim) -> tuple[Places, ...]:
        """Gives where a volume can be made for a claim."""
        found = self.classes[claim.storage_class]
        return () if found.is_static else (found.places,)

    def _roomy(self, claim: Claim, made: tuple[Places, ...]) -> tuple[Places, ...]:
        """Leaves of the places where a volume can be made those that have room for it."""
        driver = self.classes[claim.storage_class].provisioner
        if not made or not claim.amount or not self.drivers.get(driver):
            return made
        found = [each.places for each in self._capacities(claim) if each.most >= claim.amount]
        if () in found:
            return made
        room = tuple(NodeTerm(each) for each in _merged(each for each in found if each))
        terms = made[0]
        if terms is None:
            return (room,)
        return (tuple(NodeTerm(a.labels + b.labels) for a in terms for b in room),)

    def _capacities(self, claim: Claim) -> Iterator[Capacity]:
        return (each for each in self.capacities if each.storage_class == claim.storage_class)

    def _is_room_known(self, claim: Claim) -> bool:
        """Tells whether the dump says all that there is of the free storage of a driver."""
        is_tracked = self.drivers.get(self.classes[claim.storage_class].provisioner, False)
        if self.drivers:
            return bool(self.capacities) or not is_tracked
        return next(self._capacities(claim), None) is None

    def _shared_out(
        self, text: str, claims: list[Claim], made: Mapping[Claim, tuple[Places, ...]]
    ) -> VolumeRule:
        serving = [self.serving(claim) for claim in claims]
        found = {name: each for volumes in serving for name, each in volumes.items()}
        index = {name: i for i, name in enumerate(sorted(found, key=lambda n: found[n].amount))}
        choices = [found[name].places for name in index]
        wanted = []
        for claim, volumes in zip(claims, serving, strict=True):
            places = made[claim]
            last = range(len(choices), len(choices) + len(places))
            wanted.append((*sorted(index[name] for name in volumes), *last))
            choices += places
        return VolumeRule(text, tuple(choices), tuple(wanted))


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


def _merged(places: Iterator[tuple[Requirement, ...]]) -> Iterator[tuple[Requirement, ...]]:
    """Puts places together that differ in one value of one label: drivers list every node."""
    values: dict[str, list[str]] = {}
    for each in places:
        if len(each) == 1 and each[0].operator == "In":
            values.setdefault(each[0].key, []).extend(each[0].values)
        else:
            yield each
    yield from ((Requirement(key, "In", tuple(found)),) for key, found in values.items())


def _is_alike(one: Volume, other: Volume) -> bool:
    return replace(one, attached=other.attached) == other


def _amount(each: Claim | Volume) -> Fraction:
    return each.amount


def _order(pair: tuple[ClaimUse, Claim | None]) -> bool:
    use, claim = pair
    return claim is not None or use.template is not None


def _problem(use: ClaimUse, claim: Claim | None) -> str:
    """Says what kube-scheduler finds wrong with a claim before it looks at any node."""
    named = f'persistentvolumeclaim "{use.name}"'
    if claim is None:
        making = "waiting for ephemeral volume controller to create the "
        return f"{named} not found" if use.template is None else f"{making}{named}"
    if claim.is_lost:
        return f'{named} bound to non-existent persistentvolume "{claim.volume}"'
    return f"{named} is being deleted" if claim.is_deleted else ""
