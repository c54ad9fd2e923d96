"""Keeps the objects around nodes and pods: groups, priorities, namespaces, devices, claims."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.traces.fields import FieldError
from podium.traces.kubernetes.constraints import Namespaces, read_namespace
from podium.traces.kubernetes.devices import Inventory, PodFacts
from podium.traces.kubernetes.devices.claims import claim_users
from podium.traces.kubernetes.gangs import Groups, rules_of
from podium.traces.kubernetes.pod import PodDraft, pod_draft, settled
from podium.traces.kubernetes.priorities import PriorityClass, read_priority_class

Object = Mapping[str, Any]
Name = tuple[str, str]
"""The namespace of an object, empty where it has none, and its name."""

CLAIMS = "ResourceClaim.resource.k8s.io"
PRIORITIES = "PriorityClass.scheduling.k8s.io"


@dataclass(frozen=True, slots=True)
class Effect:
    """Says what must be read again because an object changed."""

    everything: bool = False
    gangs: bool = False
    selecting: bool = False  # pods that select namespaces
    classed: bool = False  # pods that name a PriorityClass
    claims_of: str | None = None  # pods of this namespace that share claims
    pods: tuple[str, ...] = ()  # by UID


NO_EFFECT = Effect()


@dataclass(slots=True)
class Surroundings:
    """Holds what the objects around nodes and pods say, and the objects themselves."""

    namespaces: Namespaces = field(default_factory=Namespaces)
    groups: Groups = field(default_factory=Groups)
    inventory: Inventory = field(default_factory=Inventory)
    priorities: dict[str, PriorityClass] = field(default_factory=dict)
    objects: dict[str, dict[Name, Object]] = field(default_factory=dict)  # by kind

    def missing(self, kind: str, seen: set[Hashable]) -> list[Object]:
        """Lists the objects of a kind that are not among those seen."""
        return [each for name, each in self.objects.get(kind, {}).items() if name not in seen]

    def take(self, kind: str, value: Object, *, is_deleted: bool) -> Effect:
        """Keeps or drops an object, and says what follows from it.

        Raises:
            FieldError: the object does not hold what it should; it is dropped.
        """
        kept, name = self.objects.setdefault(kind, {}), named(value)
        old = kept.pop(name, None)
        new = None if is_deleted else value
        if new is not None:
            kept[name] = new
        if old == new:
            return NO_EFFECT
        try:
            return self._use(kind, old, new)
        except FieldError:
            kept.pop(name, None)
            raise

    def _use(self, kind: str, old: Object | None, new: Object | None) -> Effect:
        any_of_them = new or old or {}
        if kind == "Namespace":
            return self._use_namespace(old, new)
        if kind == PRIORITIES:
            return self._use_priority(old, new)
        if kind == CLAIMS:
            return self._use_claim(old, new)
        if self.groups.takes(any_of_them):
            return self._use_group(old, new)
        return Effect(everything=self.inventory.takes(any_of_them))

    def _use_namespace(self, old: Object | None, new: Object | None) -> Effect:
        if old is not None:
            self.namespaces.labels.pop(named(old)[1], None)
        if new is not None:
            name, labels = read_namespace(new)
            self.namespaces.labels[name] = labels
        return Effect(selecting=True)

    def _use_priority(self, old: Object | None, new: Object | None) -> Effect:
        if old is not None:
            self.priorities.pop(named(old)[1], None)
        if new is not None:
            found = read_priority_class(new)
            self.priorities[found.name] = found
        return Effect(classed=True)

    def _use_group(self, old: Object | None, new: Object | None) -> Effect:
        before = {} if old is None else rules_of(old)
        after = {} if new is None else rules_of(new)
        if before == after:
            return NO_EFFECT
        if old is not None:
            self.groups.remove(old)
        if new is not None:
            self.groups.add(new)
        return Effect(gangs=True)

    def _use_claim(self, old: Object | None, new: Object | None) -> Effect:
        value = new or old or {}
        if new is not None:
            self.inventory.add(new)
        else:
            namespace, name = named(value)
            self.inventory.claims.pop((namespace or "default", name), None)
        return Effect(claims_of=named(value)[0], pods=tuple(_pods_of_claim(value)))

    def read_stranger(self, value: Object) -> PodDraft:
        """Reads a pod that is not kept, and keeps nothing of it.

        Raises:
            FieldError: the object does not hold what a pod should.
        """
        draft = pod_draft(value, self.namespaces, 0, self.inventory, {})
        try:
            return settled(draft, self.namespaces, self.priorities)
        finally:
            if not draft.facts.is_plain:
                self.forget_pod(draft.facts)

    def forget_pod(self, facts: PodFacts) -> None:
        """Forgets what was found out about the devices of a pod."""
        self.inventory.known.pop(facts, None)
        self.inventory.supposed.pop(facts, None)

    def share_claims(self, namespace: str, pods: Iterable[PodFacts]) -> None:
        """Says who uses the claims of a namespace; the first of each has its devices."""
        others = {key: users for key, users in self.inventory.users.items() if key[0] != namespace}
        self.inventory.users = {**others, **claim_users(pods)}

    def restart(self) -> list[tuple[str, FieldError]]:
        """Reads all devices anew, before nodes and pods are; gives what cannot be read."""
        inventory = self.inventory
        inventory.restart()
        for kept in (inventory.slices, inventory.classes, inventory.class_resources,
                     inventory.device_cards, inventory.claims, inventory.templates):  # fmt: skip
            kept.clear()
        problems = []
        for kind, objects in self.objects.items():
            for name, value in objects.items():
                try:
                    if inventory.takes(value):
                        inventory.add(value)
                except FieldError as error:
                    problems.append((f"{kind} {'/'.join(filter(None, name))}", error))
        return problems


def named(value: Object) -> Name:
    """Gives the namespace and the name of an object."""
    metadata = value.get("metadata")
    if not isinstance(metadata, Mapping):
        return "", ""
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def shares_claims(facts: PodFacts) -> bool:
    """Tells pods whose claims others may name, too, from those whose claims are made for them."""
    made_for_one = ("resourceClaimTemplateName", "requestMappings")
    return any(not any(name in claim for name in made_for_one) for claim in facts.claims)


def _pods_of_claim(value: Object) -> list[str]:
    """Lists the UIDs of the pods for which a claim was made, or which hold it."""
    metadata, status = value.get("metadata") or {}, value.get("status") or {}
    owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else ()
    holders = status.get("reservedFor") if isinstance(status, Mapping) else ()
    owners, holders = (each if isinstance(each, list) else () for each in (owners, holders))
    found = (each.get("uid") for each in (*owners, *holders) if isinstance(each, Mapping))
    return [uid for uid in found if isinstance(uid, str)]
