"""Keeps the state of a cluster current while its objects come, change and go.

Everything here is a function of the objects that are there, not of the order in which they came:
after any loss a fresh list gives the same state. Events only note what they touch; the records
are worked out when somebody looks. One event loop owns a state, so there are no locks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from podium.kube.nodes import NodeTable, Taken, kind_of
from podium.kube.pod import (
    GroupKey,
    LiveGang,
    LivePod,
    Request,
    Unreadable,
    group_of,
    is_alike,
    pod_record,
    share_of,
    unread_draft,
)
from podium.model.cluster import GpuKind, NodeSpec
from podium.model.fit import held_gpus
from podium.model.records import GPU_MILLI, SHARE_CLASS
from podium.model.shares import gpu_shares, usual_share
from podium.model.workload import PodSpec
from podium.traces.fields import FieldError
from podium.traces.kubernetes.constraints import Namespaces, read_namespace
from podium.traces.kubernetes.devices import (
    Inventory,
    NodeFacts,
    PodFacts,
    node_devices,
    node_facts,
)
from podium.traces.kubernetes.devices.inventory import with_known_memory
from podium.traces.kubernetes.domains import chosen_domains
from podium.traces.kubernetes.gangs import Groups, Member, resolve_gangs
from podium.traces.kubernetes.node import node_resources, node_spec, node_with_devices
from podium.traces.kubernetes.pod import pod_draft, read_priority_class, settled

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Object = Mapping[str, Any]
Subscriber = Callable[[str, str], None]
"""Is told the UID of a pod and its node when it is bound, and "" once it is gone or finished."""

MOST_NOTES = 1000

_CLAIMS = "ResourceClaim.resource.k8s.io"


class LiveState:
    """Holds nodes with what is left of them, and the pods that run and wait."""

    def __init__(self, topology: tuple[str, ...] = ()) -> None:
        self.version = 0  # grows with every change
        self.notes: dict[str, str] = {}  # what is not modelled: the first object, by text
        self._levels = chosen_domains(topology)
        self._namespaces = Namespaces()
        self._groups = Groups()
        self._inventory = Inventory()
        self._priorities: dict[str, int] = {}
        self._others: dict[str, dict[tuple[str, str], Object]] = {}  # by kind, by name
        self._read_nodes: dict[str, tuple[NodeSpec, NodeFacts]] = {}  # before their devices
        self._table = NodeTable()
        self._signatures: Counter[tuple[object, ...]] = Counter()  # of devices, over all nodes
        self._signature_of: dict[str, tuple[object, ...]] = {}
        self._pods: dict[str, LivePod] = {}
        self._uids: dict[tuple[str, str], str] = {}  # by namespace and name
        self._pods_on: dict[str, dict[str, LivePod]] = {}  # by node, also one that is not there
        self._members: dict[GroupKey, dict[str, LivePod]] = {}
        self._gangs: dict[GroupKey, LiveGang | None] = {}
        self._sharers: dict[str, dict[str, LivePod]] = {}  # of claims, by namespace
        self._subscribers: list[Subscriber] = []
        # What is to be worked out before anybody looks.
        self._is_stale = False  # everything
        self._unsettled_nodes: dict[str, None] = {}
        self._unsettled_pods: dict[str, None] = {}
        self._unfilled: dict[str, None] = {}  # nodes

    # --- events -----------------------------------------------------------------------------

    def apply(self, kind: str, type_: EventType, value: Object) -> bool:
        """Takes one event of a watch; tells whether it changed anything.

        The kind is "Node", "Pod", or one with its API group such as "PodGroup.scheduling.k8s.io".
        """
        is_changed = self._takers(kind)(value, is_deleted=type_ == "DELETED")
        self.version += is_changed
        return is_changed

    def replace(self, kind: str, objects: Iterable[Object]) -> int:
        """Takes a whole list: what is not in it is gone. Counts the changes."""
        take = self._takers(kind)
        seen: set[object] = set()
        changes = 0
        for value in objects:
            changes += take(value, is_deleted=False)
            seen.add(_identity(kind, value))
        for value in self._missing(kind, seen):
            changes += take(value, is_deleted=True)
        self.version += changes
        return changes

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tells somebody of pods that are bound and gone; gives what ends it."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    # --- what is there ------------------------------------------------------------------------

    @property
    def nodes(self) -> npt.NDArray[Any]:
        """Gives the node records, with gaps (see `NodeTable`); ask again after every change."""
        self._settle()
        return self._table.nodes

    @property
    def names(self) -> list[str]:
        """Names the nodes in the order of their records, "" is a gap."""
        self._settle()
        return self._table.names

    @property
    def index(self) -> Mapping[str, int]:
        """Finds the record of a node by name."""
        self._settle()
        return self._table.index

    @property
    def gpu_kinds(self) -> tuple[GpuKind, ...]:
        """Lists what a record's gpu_model stands for."""
        self._settle()
        return self._table.gpu_kinds

    @property
    def domains(self) -> npt.NDArray[np.int32]:
        """Numbers rack, block and zone of every record, -1 unknown: (3, num_records)."""
        self._settle()
        return self._table.domains

    @property
    def domain_names(self) -> tuple[list[str], ...]:
        """Names the racks, blocks and zones in the order of their numbers."""
        return self._table.domain_names

    def node(self, name: str) -> NodeSpec | None:
        """Describes a node, None where there is no such node."""
        self._settle()
        return self._table.spec(name)

    def pod(self, uid: str) -> LivePod | None:
        """Finds a pod that waits or runs."""
        self._settle()
        return self._pods.get(uid)

    def pod_named(self, namespace: str, name: str) -> LivePod | None:
        """Finds a pod that waits or runs by its name."""
        uid = self._uids.get((namespace, name))
        return None if uid is None else self.pod(uid)

    def pods_on(self, node: str) -> tuple[LivePod, ...]:
        """Lists the pods that are bound to a node."""
        self._settle()
        return tuple(self._pods_on.get(node, {}).values())

    @property
    def pods(self) -> Mapping[str, LivePod]:
        """Lists all pods that wait or run by UID."""
        self._settle()
        return self._pods

    @property
    def pending(self) -> list[LivePod]:
        """Lists the pods that wait for a node."""
        self._settle()
        return [pod for pod in self._pods.values() if pod.is_pending]

    def request(self, value: Object) -> Request | Unreadable:
        """Reads what a Pod object asks for, or says why it cannot be modelled.

        A pod that the watch has shown already is not read again.
        """
        self._settle()
        metadata = value.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
        known = self._pods.get(uid) if isinstance(uid, str) else None
        if known is not None:
            return self.request_of(known)
        try:
            draft = pod_draft(value, self._namespaces, 0, self._inventory)
            done = settled(draft, self._namespaces, self._priorities)
        except FieldError as error:
            return Unreadable(_pod_name(value), _reason(error))
        return self._request(uid or "", done.spec, group_of(done), done.remarks)

    def request_of(self, pod: LivePod) -> Request | Unreadable:
        """Gives what a known pod asks for, or says why it cannot be modelled."""
        if pod.problem:
            return Unreadable(f"{pod.namespace}/{pod.name}", pod.problem)
        return self._request(pod.uid, pod.spec, pod.group, pod.remarks)

    def gang_of(self, pod: LivePod | Request) -> LiveGang | None:
        """Finds the gang of a pod as it stands now, None where it starts alone."""
        self._settle()
        if pod.group is None:
            return None
        if pod.group not in self._gangs:
            self._gangs[pod.group] = self._gang(pod.group)
        return self._gangs[pod.group]

    # --- taking objects -----------------------------------------------------------------------

    def _takers(self, kind: str) -> Callable[..., bool]:
        if kind == "Node":
            return self._take_node
        if kind == "Pod":
            return self._take_pod
        return lambda value, *, is_deleted: self._take_other(kind, value, is_deleted=is_deleted)

    def _missing(self, kind: str, seen: set[object]) -> list[Object]:
        """Makes the objects that a list lacks, as far as it takes to delete them."""
        if kind == "Node":
            names = [name for name in self._read_nodes if name not in seen]
            return [{"metadata": {"name": name}} for name in names]
        if kind == "Pod":
            return [{"metadata": {"uid": uid}} for uid in self._pods if uid not in seen]
        return [v for key, v in self._others.get(kind, {}).items() if key not in seen]

    def _take_node(self, value: Object, *, is_deleted: bool) -> bool:
        name = str(_identity("Node", value))
        if is_deleted:
            return self._drop_node(name)
        remarks: Counter[str] = Counter()
        try:
            spec = node_spec(value, remarks, self._levels)
            facts = node_facts(value, node_resources(value), self._inventory)
        except FieldError as error:
            self._note(_reason(error), f"node {name}")
            return self._drop_node(name)
        for text in remarks:
            self._note(text, f"node {name}")
        if self._read_nodes.get(name) == (spec, facts):
            return False
        self._read_nodes[name] = spec, facts
        self._unsettled_nodes[name] = None
        return True

    def _drop_node(self, name: str) -> bool:
        was_there = self._read_nodes.pop(name, None) is not None
        self._unsettled_nodes.pop(name, None)
        self._unfilled.pop(name, None)
        self._sign(name, None)
        self._table.remove(name)
        self._gangs.clear()
        for pod in self._pods_on.get(name, {}).values():
            pod.slots, pod.gpu_milli = (), 0
        return was_there

    def _take_pod(self, value: Object, *, is_deleted: bool) -> bool:
        uid = str(_identity("Pod", value))
        known = self._pods.get(uid)
        if is_deleted:
            return known is not None and self._drop_pod(known)
        try:
            draft = pod_draft(value, self._namespaces, 0, self._inventory)
            problem = ""
        except FieldError as error:
            problem = _reason(error)
            self._note(problem, f"pod {_pod_name(value)}")
            draft = unread_draft(_named(value), _node_of(value), self._inventory)
        if draft.standing.is_finished and draft.membership is None:
            return known is not None and self._drop_pod(known)
        if known is not None and known.problem == problem and is_alike(known.draft, draft):
            known.draft = replace(known.draft, standing=draft.standing)
            return False
        return self._keep_pod(LivePod(uid, draft, draft.spec, problem=problem), known)

    def _keep_pod(self, pod: LivePod, known: LivePod | None) -> bool:
        if known is not None:
            self._detach(known)
        self._pods[pod.uid] = pod
        self._uids[pod.namespace, pod.name] = pod.uid
        self._namespaces.seen.add(pod.namespace)
        if pod.group is not None:
            self._members.setdefault(pod.group, {})[pod.uid] = pod
            self._gangs.pop(pod.group, None)
        standing = pod.draft.standing
        if standing.node and not standing.is_finished:
            self._pods_on.setdefault(standing.node, {})[pod.uid] = pod
        facts = pod.draft.facts
        if facts.claims and _names_claims(facts):
            self._sharers.setdefault(facts.namespace, {})[pod.uid] = pod
        self._unsettled_pods[pod.uid] = None
        self._tell(pod, known)
        return True

    def _tell(self, pod: LivePod, known: LivePod | None) -> None:
        is_finished = pod.draft.standing.is_finished
        if is_finished and (known is None or not known.draft.standing.is_finished):
            self._publish(pod.uid, "")
        elif pod.node and not is_finished and (known is None or known.node != pod.node):
            self._publish(pod.uid, pod.node)

    def _drop_pod(self, pod: LivePod) -> bool:
        self._detach(pod)
        del self._pods[pod.uid]
        if self._uids.get((pod.namespace, pod.name)) == pod.uid:
            del self._uids[pod.namespace, pod.name]
        if not pod.draft.standing.is_finished:
            self._publish(pod.uid, "")
        return True

    def _detach(self, pod: LivePod) -> None:
        """Takes a pod off its node and out of its group."""
        if pod.node in self._pods_on:
            self._pods_on[pod.node].pop(pod.uid, None)
            self._touch(pod.node)
            if not self._pods_on[pod.node]:
                del self._pods_on[pod.node]
        if pod.group is not None:
            members = self._members.get(pod.group, {})
            members.pop(pod.uid, None)
            self._gangs.pop(pod.group, None)
            if not members:
                self._members.pop(pod.group, None)
        self._unsettled_pods.pop(pod.uid, None)
        self._forget_claims(pod)

    def _forget_claims(self, pod: LivePod) -> None:
        """Lets other pods have the claims of one that is gone or is read again."""
        facts = pod.draft.facts
        if not facts.is_plain:
            self._inventory.known.pop(facts, None)
            self._inventory.supposed.pop(facts, None)
        if not facts.claims:
            return
        self._inventory.taken_claims -= pod.claims
        sharers = self._sharers.get(facts.namespace, {})
        sharers.pop(pod.uid, None)
        self._unsettle_sharers(facts.namespace)

    def _unsettle_sharers(self, namespace: str) -> None:
        """Has all pods of a namespace read again that name claims which others may name, too."""
        for pod in self._sharers.get(namespace, {}).values():
            self._inventory.taken_claims -= pod.claims
            self._inventory.known.pop(pod.draft.facts, None)
            self._unsettled_pods[pod.uid] = None

    def _take_other(self, kind: str, value: Object, *, is_deleted: bool) -> bool:
        kept = self._others.setdefault(kind, {})
        key = _named(value)
        known = kept.pop(key, None)
        if not is_deleted:
            kept[key] = value
        if is_deleted and known is None:
            return False
        try:
            self._use_other(kind, known, None if is_deleted else value)
        except FieldError as error:
            kept.pop(key, None)
            self._note(_reason(error), f"{kind} {'/'.join(part for part in key if part)}")
        return True

    def _use_other(self, kind: str, old: Object | None, new: Object | None) -> None:
        if kind == "Namespace":
            self._use_namespace(old, new)
        elif kind == "PriorityClass.scheduling.k8s.io":
            self._use_priority(old, new)
        elif kind == _CLAIMS:
            self._use_claim(old, new)
        elif self._groups.takes(new or old or {}):
            self._use_group(old, new)
        elif self._inventory.takes(new or old or {}):
            self._is_stale = True

    def _use_namespace(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._namespaces.labels.pop(read_namespace(old)[0], None)
        if new is not None:
            name, labels = read_namespace(new)
            self._namespaces.labels[name] = labels
        for pod in self._pods.values():
            if pod.draft.terms is not None:
                self._unsettled_pods[pod.uid] = None

    def _use_priority(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._priorities.pop(read_priority_class(old)[0], None)
        if new is not None:
            name, priority = read_priority_class(new)
            self._priorities[name] = priority
        for pod in self._pods.values():
            if pod.draft.priority_class:
                self._unsettled_pods[pod.uid] = None

    def _use_claim(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._inventory.add(new)
        elif old is not None:
            self._inventory.claims.pop(_named(old), None)
        value = new or old or {}
        self._unsettle_sharers(_named(value)[0])
        for uid in _pods_of_claim(value):
            pod = self._pods.get(uid)
            if pod is not None:
                self._inventory.taken_claims -= pod.claims
                self._inventory.known.pop(pod.draft.facts, None)
                self._unsettled_pods[uid] = None

    def _use_group(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._groups.remove(old)
        if new is not None:
            self._groups.add(new)
        self._gangs.clear()

    # --- working out --------------------------------------------------------------------------

    def _settle(self) -> None:
        """Works out what changed since somebody looked last."""
        if not (self._is_stale or self._unsettled_nodes or self._unsettled_pods or self._unfilled):
            return
        for name in self._unsettled_nodes:
            self._settle_node(name)
        self._unsettled_nodes = {}
        if self._is_stale:
            self._read_all_again()
        # Claims that several pods share go to the first by name, whoever was seen first.
        unsettled = [self._pods[uid] for uid in self._unsettled_pods]
        if any(pod.draft.facts.claims for pod in unsettled):
            unsettled.sort(key=_order)
        for pod in unsettled:
            self._settle_pod(pod)
        self._unsettled_pods = {}
        for name in self._unfilled:
            self._fill(name)
        self._unfilled = {}

    def _read_all_again(self) -> None:
        """Reads the devices of all nodes and pods anew: what one object means has changed."""
        inventory = self._inventory
        inventory.restart()
        for kept in (inventory.slices, inventory.classes, inventory.class_resources,
                     inventory.device_cards, inventory.claims, inventory.templates):  # fmt: skip
            kept.clear()
        for kind, objects in self._others.items():
            for key, value in objects.items():
                if inventory.takes(value):
                    self._add_device(kind, key, value)
        for name in self._read_nodes:
            self._settle_node(name)
        self._unsettled_pods = dict.fromkeys(self._pods)
        self._is_stale = False

    def _add_device(self, kind: str, key: tuple[str, str], value: Object) -> None:
        try:
            self._inventory.add(value)
        except FieldError as error:
            self._note(_reason(error), f"{kind} {'/'.join(part for part in key if part)}")

    def _settle_node(self, name: str) -> None:
        spec, facts = self._read_nodes[name]
        try:
            devices = node_devices(facts)
            described = node_with_devices(spec, devices)
        except FieldError as error:
            self._note(_reason(error), f"node {name}")
            self._sign(name, None)
            self._table.remove(name)
            return
        for text in devices.remarks:
            self._note(text, f"node {name}")
        (described,) = with_known_memory([described], Counter())
        known = self._table.spec(name)
        self._table.put(described)
        self._gangs.clear()
        self._sign(name, (kind_of(described), frozenset(described.extended)))
        self._unfilled[name] = None
        if known is None or kind_of(known) != kind_of(described):
            # Which GPUs a pod holds may be known only now.
            self._unsettled_pods.update(dict.fromkeys(self._pods_on.get(name, {})))

    def _sign(self, name: str, signature: tuple[object, ...] | None) -> None:
        """Notes which devices a node has; the first and the last of a sort concern all objects."""
        old = self._signature_of.pop(name, None)
        if signature is not None:
            self._signature_of[name] = signature
        if old == signature:
            return
        if old is not None:
            self._signatures[old] -= 1
            if not self._signatures[old]:
                del self._signatures[old]
                self._is_stale = True
        if signature is not None:
            self._is_stale |= signature not in self._signatures
            self._signatures[signature] += 1

    def _settle_pod(self, pod: LivePod) -> None:
        if not pod.problem:
            try:
                taken = set(self._inventory.taken_claims) if pod.draft.facts.claims else set()
                done = settled(pod.draft, self._namespaces, self._priorities)
            except FieldError as error:
                pod.problem = _reason(error)
                self._note(pod.problem, f"pod {pod.namespace}/{pod.name}")
            else:
                pod.spec, pod.remarks = done.spec, done.remarks
                if pod.draft.facts.claims:
                    pod.claims = frozenset(self._inventory.taken_claims - taken)
                for text in done.remarks:
                    self._note(text, f"pod {pod.namespace}/{pod.name}")
        self._touch(pod.node)

    def _touch(self, node: str) -> None:
        if node in self._table.index:
            self._unfilled[node] = None

    def _fill(self, name: str) -> None:
        """Writes the record of a node from its description and the pods on it."""
        spec = self._table.spec(name)
        if spec is None:
            return
        taken, kind = Taken(spec.gpu_count), kind_of(spec)
        on_gpus = []
        for pod in self._pods_on.get(name, {}).values():
            taken.cpu_milli += pod.spec.cpu_milli
            taken.memory_mib += pod.spec.memory_mib
            if pod.spec.gpu_count:
                on_gpus.append(pod)
        # Who is known to be on a GPU comes first; the others share what is left.
        on_gpus.sort(key=lambda pod: (not pod.spec.gpu_slots, _order(pod)))
        for pod in on_gpus:
            count, milli = share_of(pod.spec, kind) if spec.gpu_count else (0, 0)
            held = held_gpus(count, milli, taken.gpu_milli_left, pod.spec.gpu_slots)
            pod.slots, pod.gpu_milli = held
            if held.slots:
                is_share = held.gpu_milli < GPU_MILLI
                taken.take(*held, SHARE_CLASS if is_share else 1 << len(held.slots))
        self._table.fill(name, taken)

    def _request(
        self, uid: str, spec: PodSpec, group: GroupKey | None, remarks: tuple[str, ...]
    ) -> Request:
        table = self._table
        record = pod_record(spec, table.gpu_models)
        shares = None
        is_plain = not spec.gpu_memory_mib and all(k.replicas == 1 for k in table.gpu_kinds)
        if spec.gpu_count and table.gpu_kinds and not is_plain:
            pods, memory = record.reshape(1), np.array([spec.gpu_memory_mib], np.int32)
            on_kinds = gpu_shares(pods, memory, table.gpu_kinds)
            (record["gpu_count"],), (record["gpu_milli"],) = usual_share(
                pods, on_kinds, table.nodes
            )
            shares = on_kinds[0]
        return Request(uid, spec, record, shares, group, remarks)

    def _gang(self, group: GroupKey) -> LiveGang | None:
        pods = list(self._members.get(group, {}).values())
        members = [_member(pod) for pod in pods]
        nodes = [spec for spec in self._table.specs if spec is not None]
        found = resolve_gangs(members, self._groups, nodes)
        for text in found.notes:
            self._note(text.rpartition(": ")[0], f"group {'/'.join(group)}")
        if not found.rules:
            return None
        bound = [pod for pod in pods if pod.node and not pod.draft.standing.is_finished]
        return LiveGang(
            namespace=group[0],
            rule=found.rules[0],
            waiting=tuple(pod.uid for pod in pods if pod.is_pending),
            bound=tuple(pod.uid for pod in bound),
            nodes=tuple(pod.node for pod in bound),
        )

    def _publish(self, uid: str, node: str) -> None:
        for subscriber in self._subscribers:
            subscriber(uid, node)

    def _note(self, text: str, who: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.setdefault(text, who)


def _member(pod: LivePod) -> Member:
    draft = pod.draft
    if draft.membership is None:
        raise RuntimeError(f"{pod.name} is in no group")
    standing = draft.standing
    return Member(
        membership=draft.membership,
        namespace=draft.spec.namespace,
        is_pending=not standing.node and not standing.is_finished,
        is_live=standing.is_live,
        is_succeeded=standing.phase == "Succeeded",
    )


def _order(pod: LivePod) -> tuple[str, str]:
    return pod.namespace, pod.name


def _reason(error: FieldError) -> str:
    return f"{error.field}: {error}" if error.field else str(error)


def _identity(kind: str, value: Object) -> object:
    """Gives what tells an object apart from others of its kind for as long as it is there."""
    if kind == "Node":
        return _named(value)[1]
    if kind == "Pod":
        metadata = value.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
        return uid if isinstance(uid, str) else _pod_name(value)
    return _named(value)


def _named(value: Object) -> tuple[str, str]:
    metadata = value.get("metadata")
    if not isinstance(metadata, Mapping):
        return "", ""
    return str(metadata.get("namespace") or ""), str(metadata.get("name") or "")


def _pod_name(value: Object) -> str:
    namespace, name = _named(value)
    return f"{namespace or 'default'}/{name}"


def _node_of(value: Object) -> str:
    spec = value.get("spec")
    return str(spec.get("nodeName") or "") if isinstance(spec, Mapping) else ""


def _names_claims(facts: PodFacts) -> bool:
    """Tells claims that pods can share from those that are made for one pod."""
    made_for_one = ("resourceClaimTemplateName", "requestMappings")
    return any(not any(name in claim for name in made_for_one) for claim in facts.claims)


def _pods_of_claim(value: Object) -> list[str]:
    """Lists the UIDs of the pods for which a claim was made, or which hold it."""
    metadata, status = value.get("metadata") or {}, value.get("status") or {}
    owners = metadata.get("ownerReferences") or () if isinstance(metadata, Mapping) else ()
    holders = status.get("reservedFor") or () if isinstance(status, Mapping) else ()
    found = (each.get("uid") for each in (*owners, *holders) if isinstance(each, Mapping))
    return [uid for uid in found if isinstance(uid, str)]
