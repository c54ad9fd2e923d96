"""Keeps the state of a cluster current while its objects come, change and go.

Everything here is a function of the objects that are there, not of the order in which they came:
after any loss a fresh list gives the same state. Events only note what they touch; the records
are worked out when somebody looks. One event loop owns a state, so there are no locks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.files.excerpt import excerpt
from podium.kube.nodes import NodeTable, kind_of, taken_by
from podium.kube.pod import (
    GroupKey,
    LiveGang,
    LivePod,
    Request,
    Unreadable,
    by_name,
    group_of,
    is_alike,
    live_gang,
    request_for,
    unread_draft,
)
from podium.kube.pods import PodTable
from podium.kube.surroundings import NO_EFFECT, Effect, Object, Surroundings, named
from podium.model.cluster import GpuKind, NodeSpec
from podium.traces.fields import FieldError
from podium.traces.kubernetes.devices import NodeFacts, node_devices, node_facts
from podium.traces.kubernetes.devices.inventory import with_known_memory
from podium.traces.kubernetes.domains import chosen_domains
from podium.traces.kubernetes.node import node_resources, node_spec, node_with_devices
from podium.traces.kubernetes.pod import PREFERENCES, PodDraft, pod_draft, settled

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Subscriber = Callable[[str, str], None]
"""Is told the UID of a pod and its node when it is bound, and "" once it is gone or finished."""

Watcher = Callable[[Literal["Node", "Pod"], str], None]
"""Is told the name of a node or the UID of a pod that came, changed or went; must not look."""

MOST_NOTES = 1000
LONGEST_NOTE = 600


class Sizes(NamedTuple):
    """Counts what a state holds."""

    nodes: int
    pods: int
    unmodelled_nodes: int


class LiveState:
    """Holds nodes with what is left of them, and the pods that run and wait."""

    def __init__(self, topology: tuple[str, ...] = ()) -> None:
        self.version = 0  # grows with every change
        self.notes: dict[str, str] = {}  # what is not modelled: the first object, by text
        self._unmodelled: dict[str, str] = {}  # nodes that are left out: why, by name
        self.around = Surroundings()
        self._levels = chosen_domains(topology)
        self._read_nodes: dict[str, tuple[NodeSpec, NodeFacts]] = {}  # before their devices
        self._nodes = NodeTable()
        self._pods = PodTable()
        self._gangs: dict[GroupKey, LiveGang | None] = {}
        self._subscribers: list[Subscriber] = []
        self._watchers: list[Watcher] = []
        # What is to be worked out before anybody looks.
        self._is_stale = False  # everything
        self._unsettled_nodes: dict[str, None] = {}
        self._unsettled_pods: dict[str, None] = {}
        self._unfilled: dict[str, None] = {}  # nodes

    # What happens.

    def apply(self, kind: str, type_: EventType, value: Object) -> bool:
        """Takes one event of a watch; tells whether it changed anything.

        The kind is "Node", "Pod", "Namespace", or one with its API group such as
        "PodGroup.scheduling.k8s.io".
        """
        is_changed = self._take(kind, value, is_deleted=type_ == "DELETED")
        self.version += is_changed
        return is_changed

    def replace(self, kind: str, objects: Iterable[Object]) -> int:
        """Takes a whole list: what is not in it is gone. Counts the changes."""
        before, seen = self.version, set[Hashable]()
        for value in objects:
            self.apply(kind, "ADDED", value)
            seen.add(identity(kind, value))
        self.retain(kind, seen)
        return self.version - before

    def retain(self, kind: str, seen: set[Hashable]) -> None:
        """Drops the objects of a kind whose `identity` is not among those seen."""
        gone: list[Object]
        if kind == "Node":
            known = {**self._read_nodes, **self._unmodelled}
            gone = [{"metadata": {"name": n}} for n in known if n not in seen]
        elif kind == "Pod":
            gone = [{"metadata": {"uid": u}} for u in self._pods.by_uid if u not in seen]
        else:
            gone = self.around.missing(kind, seen)
        for value in gone:
            self.apply(kind, "DELETED", value)

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tells somebody of pods that are bound and gone; gives what ends it."""
        self._subscribers.append(subscriber)
        return lambda: self._subscribers.remove(subscriber)

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Tells somebody which nodes and pods change, once that is worked out; gives what ends it.

        Whoever is told may look at `known_pod` alone, and at everything else later.
        """
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    # What is there.

    @property
    def nodes(self) -> npt.NDArray[Any]:
        """Gives the node records, with gaps (see `NodeTable`); ask again after every change."""
        self._settle()
        return self._nodes.nodes

    @property
    def names(self) -> list[str]:
        """Names the nodes in the order of their records, "" is a gap."""
        self._settle()
        return self._nodes.names

    @property
    def specs(self) -> list[NodeSpec | None]:
        """Describes the nodes in the order of their records, None is a gap."""
        self._settle()
        return self._nodes.specs

    @property
    def index(self) -> Mapping[str, int]:
        """Finds the record of a node by name."""
        self._settle()
        return self._nodes.index

    @property
    def gpu_kinds(self) -> tuple[GpuKind, ...]:
        """Lists what a record's gpu_model stands for."""
        self._settle()
        return self._nodes.gpu_kinds

    @property
    def domains(self) -> npt.NDArray[np.int32]:
        """Numbers rack, block and zone of every record, -1 unknown: (3, num_records)."""
        self._settle()
        return self._nodes.domains

    @property
    def domain_names(self) -> tuple[list[str], ...]:
        """Names the racks, blocks and zones in the order of their numbers."""
        return self._nodes.domain_names

    @property
    def unmodelled_nodes(self) -> Mapping[str, str]:
        """Names the nodes that are left out, and why; no pod is scored on them."""
        self._settle()
        return self._unmodelled

    def sizes(self) -> Sizes:
        """Counts without working anything out, so that any thread may ask."""
        return Sizes(len(self._nodes), len(self._pods.by_uid), len(self._unmodelled))

    def node(self, name: str) -> NodeSpec | None:
        """Describes a node, None where there is no such node."""
        self._settle()
        return self._nodes.spec(name)

    @property
    def pods(self) -> Mapping[str, LivePod]:
        """Finds pods that wait or run by UID; finished members of gangs are among them."""
        self._settle()
        return self._pods.by_uid

    def pod(self, uid: str) -> LivePod | None:
        """Finds a pod that waits or runs."""
        return self.pods.get(uid)

    @property
    def pending(self) -> list[LivePod]:
        """Lists the pods that wait for a node."""
        self._settle()
        return self._pods.pending()

    def has_preferences(self, request: Request) -> bool:
        """Tells whether kube-scheduler scores nodes for a pod by more than resources and images.

        The pod prefers nodes, company or alternatives of a claim, another would rather be near it
        or apart from it, or a node has a soft taint.
        """
        self._settle()
        known = self._pods.by_uid.get(request.uid)
        has_claims = known is not None and bool(known.draft.facts.claims)
        if self._nodes.soft_taints or has_claims or PREFERENCES in request.remarks:
            return True
        return self._pods.is_company(request.spec.namespace or "default", request.spec.labels)

    def request(self, value: Object) -> Request | Unreadable:
        """Reads what a Pod object asks for, or says why it cannot be modelled.

        A pod that the watch has shown already is not read again.
        """
        self._settle()
        known = self._pods.by_uid.get(str(identity("Pod", value)))
        if known is not None:
            return self.request_of(known)
        try:
            done = self.around.read_stranger(value)
        except FieldError as error:
            return Unreadable(_pod_name(value), _reason(error))
        found = request_for(done.spec, self._nodes.gpu_kinds, self._nodes.nodes)
        return replace(found, group=group_of(done), remarks=done.remarks + done.placing_remarks)

    def request_of(self, pod: LivePod) -> Request | Unreadable:
        """Gives what a known pod asks for, or says why it cannot be modelled."""
        self._settle()
        if pod.problem:
            return Unreadable(f"{pod.namespace}/{pod.name}", pod.problem)
        found = request_for(pod.spec, self._nodes.gpu_kinds, self._nodes.nodes)
        remarks = pod.remarks + pod.draft.placing_remarks
        return replace(found, uid=pod.uid, group=pod.group, remarks=remarks)

    def gang_of(self, pod: LivePod | Request) -> LiveGang | None:
        """Finds the gang of a pod as it stands now, None where it starts alone."""
        self._settle()
        if pod.group is None:
            return None
        if pod.group not in self._gangs:
            self._gangs[pod.group] = self._gang(pod.group)
        return self._gangs[pod.group]

    # Taking objects.

    def _take(self, kind: str, value: Object, *, is_deleted: bool) -> bool:
        if kind == "Pod":
            uid = str(identity(kind, value))
            return self.drop_pod(uid) if is_deleted else self._take_pod(uid, value)
        if kind == "Node":
            name = named(value)[1]
            return self._drop_node(name) if is_deleted else self._take_node(name, value)
        return self._take_other(kind, value, is_deleted=is_deleted)

    def _take_node(self, name: str, value: Object) -> bool:
        remarks: Counter[str] = Counter()
        try:
            spec = node_spec(value, remarks, self._levels)
            facts = node_facts(value, node_resources(value), self.around.inventory)
        except FieldError as error:
            was_there = self._drop_node(name)
            self._leave_out_node(name, error)
            return was_there
        for text in remarks:
            self._note(text, f"node {name}")
        if self._read_nodes.get(name) == (spec, facts):
            return False
        self._unmodelled.pop(name, None)
        self._read_nodes[name] = spec, facts
        self._unsettled_nodes[name] = None
        return True

    def _leave_out_node(self, name: str, error: FieldError) -> None:
        self._unmodelled[name] = _reason(error)
        self._note(_reason(error), f"node {name}")

    def _drop_node(self, name: str) -> bool:
        self._unmodelled.pop(name, None)
        was_there = self._read_nodes.pop(name, None) is not None
        self._unsettled_nodes.pop(name, None)
        self._unfilled.pop(name, None)
        self._remove_node(name)
        return was_there

    def _remove_node(self, name: str) -> None:
        self._is_stale |= self._nodes.remove(name)
        self._gangs.clear()
        for pod in self._pods.on(name):
            pod.slots, pod.gpu_milli = (), 0
        self._announce("Node", name)

    def _take_pod(self, uid: str, value: Object) -> bool:
        try:
            draft = pod_draft(value, self.around.namespaces, 0, self.around.inventory, {})
        except FieldError as error:
            return self.put_unread_pod(uid, value, error)
        return self.put_pod(uid, draft)

    def known_pod(self, uid: str) -> LivePod | None:
        """Finds a pod as it was put, without working anything out."""
        return self._pods.by_uid.get(uid)

    def put_unread_pod(
        self, uid: str, value: Object, error: FieldError, mark: tuple[Any, ...] | None = None
    ) -> bool:
        """Takes a pod that cannot be modelled; its name is told once."""
        problem = _reason(error)
        self._note(problem, f"pod {_pod_name(value)}")
        draft = unread_draft(named(value), _node_of(value), self.around.inventory)
        return self.put_pod(uid, draft, problem, mark)

    def put_pod(
        self, uid: str, draft: PodDraft, problem: str = "", mark: tuple[Any, ...] | None = None
    ) -> bool:
        """Takes a pod as it is now; tells whether that is something new."""
        known = self._pods.by_uid.get(uid)
        if draft.standing.is_finished and draft.membership is None:
            return self.drop_pod(uid)
        if known is not None and known.problem == problem and is_alike(known.draft, draft):
            known.draft, known.mark = draft, mark
            return False
        if known is not None:
            self._detach(known)
        pod = LivePod(uid, draft, draft.spec, problem=problem, mark=mark)
        self._pods.put(pod)
        self.around.namespaces.seen.add(pod.namespace)
        if pod.group is not None:
            self._gangs.pop(pod.group, None)
        self._unsettled_pods[uid] = None
        self._tell(pod, known)
        return True

    def drop_pod(self, uid: str) -> bool:
        """Forgets a pod that is gone; tells whether it was there."""
        pod = self._pods.by_uid.get(uid)
        if pod is None:
            return False
        self._detach(pod)
        if not pod.is_finished:
            self._publish(uid, "")
        self._announce("Pod", uid)
        return True

    def _tell(self, pod: LivePod, known: LivePod | None) -> None:
        if pod.is_finished and known is not None and not known.is_finished:
            self._publish(pod.uid, "")
        elif pod.node and not pod.is_finished and (known is None or known.node != pod.node):
            self._publish(pod.uid, pod.node)

    def _detach(self, pod: LivePod) -> None:
        """Takes a pod out of all tables, and lets others have its claims."""
        self._pods.remove(pod)
        self._touch(pod.node)
        if pod.group is not None:
            self._gangs.pop(pod.group, None)
        self._unsettled_pods.pop(pod.uid, None)
        facts = pod.draft.facts
        if not facts.is_plain:
            self.around.forget_pod(facts)
        if facts.claims:
            self._unsettle(self._pods.sharers(facts.namespace))

    def _take_other(self, kind: str, value: Object, *, is_deleted: bool) -> bool:
        try:
            effect = self.around.take(kind, value, is_deleted=is_deleted)
        except FieldError as error:
            self._note(_reason(error), f"{kind} {'/'.join(filter(None, named(value)))}")
            return False
        if effect != NO_EFFECT:
            self._follow(effect)
        return effect != NO_EFFECT

    def _follow(self, effect: Effect) -> None:
        self._is_stale |= effect.everything
        if effect.gangs:
            self._gangs.clear()
        if effect.selecting or effect.classed:
            for uid, pod in self._pods.by_uid.items():
                is_selecting = effect.selecting and pod.draft.terms is not None
                if is_selecting or (effect.classed and pod.draft.priority_class):
                    self._unsettled_pods[uid] = None
        if effect.claims_of is not None:
            self._unsettle(self._pods.sharers(effect.claims_of or "default"))
            pods = (self._pods.by_uid.get(uid) for uid in effect.pods)
            self._unsettle([pod for pod in pods if pod is not None])

    def _unsettle(self, pods: list[LivePod]) -> None:
        """Has pods read again whose claims or notes may mean something else now."""
        for pod in pods:
            if not pod.draft.facts.is_plain:
                self.around.forget_pod(pod.draft.facts)
            self._unsettled_pods[pod.uid] = None

    # Working out.

    def _settle(self) -> None:
        """Works out what changed since somebody looked last."""
        if not (self._is_stale or self._unsettled_nodes or self._unsettled_pods or self._unfilled):
            return
        for name in self._unsettled_nodes:
            self._settle_node(name)
        self._unsettled_nodes = {}
        if self._is_stale:
            self._read_all_again()
        self._share_claims()
        for uid in self._unsettled_pods:
            self._settle_pod(self._pods.by_uid[uid])
        self._unsettled_pods = {}
        for name in self._unfilled:
            self._fill(name)
        self._unfilled = {}

    def _share_claims(self) -> None:
        """Lets the first pod of each claim have its devices, by name, whoever was seen first."""
        facts = (self._pods.by_uid[uid].draft.facts for uid in self._unsettled_pods)
        for namespace in {each.namespace for each in facts if each.claims}:
            sharers = sorted(self._pods.sharers(namespace), key=by_name)
            self.around.share_claims(namespace, [pod.draft.facts for pod in sharers])
            self._unsettle(sharers)

    def _read_all_again(self) -> None:
        """Reads the devices of all nodes and pods anew: what one object means has changed."""
        for who, error in self.around.restart():
            self._note(_reason(error), who)
        for name in self._read_nodes:
            self._settle_node(name)
        self._unsettled_pods = dict.fromkeys(self._pods.by_uid)
        self._is_stale = False

    def _settle_node(self, name: str) -> None:
        spec, facts = self._read_nodes[name]
        try:
            devices = node_devices(facts)
            described = node_with_devices(spec, devices)
        except FieldError as error:
            self._leave_out_node(name, error)
            self._remove_node(name)
            return
        self._unmodelled.pop(name, None)
        for text in devices.remarks:
            self._note(text, f"node {name}")
        (described,) = with_known_memory([described], Counter())
        known = self._nodes.spec(name)
        self._is_stale |= self._nodes.put(described)
        self._gangs.clear()
        self._unfilled[name] = None
        is_same = known is not None and known.gpu_count == described.gpu_count
        if known is None or not is_same or kind_of(known) != kind_of(described):
            # Which GPUs a pod holds may be known only now.
            self._unsettle(self._pods.on(name))
        self._announce("Node", name)

    def _settle_pod(self, pod: LivePod) -> None:
        around = self.around
        try:
            done = settled(pod.draft, around.namespaces, around.priorities)
        except FieldError as error:
            pod.problem = _reason(error)
            self._note(pod.problem, f"pod {pod.namespace}/{pod.name}")
        else:
            pod.spec, pod.remarks = done.spec, done.remarks
        for text in pod.remarks:
            self._note(text, f"pod {pod.namespace}/{pod.name}")
        self._touch(pod.node)
        self._announce("Pod", pod.uid)

    def _touch(self, node: str) -> None:
        if node in self._nodes.index:
            self._unfilled[node] = None

    def _fill(self, name: str) -> None:
        """Writes the record of a node from its description and the pods on it."""
        spec = self._nodes.spec(name)
        if spec is not None:
            self._nodes.fill(name, taken_by(self._pods.on(name), spec))

    def _gang(self, group: GroupKey) -> LiveGang | None:
        nodes = [spec for spec in self._nodes.specs if spec is not None]
        gang, notes = live_gang(group, self._pods.members(group), self.around.groups, nodes)
        for text in notes:
            self._note(text, f"group {'/'.join(group)}")
        return gang

    def _publish(self, uid: str, node: str) -> None:
        for subscriber in self._subscribers:
            subscriber(uid, node)

    def _announce(self, kind: Literal["Node", "Pod"], name: str) -> None:
        for watcher in self._watchers:
            watcher(kind, name)

    def _note(self, text: str, who: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.setdefault(_cut(text), _cut(who))


def identity(kind: str, value: Object) -> Hashable:
    """Gives what tells an object apart from others of its kind for as long as it is there."""
    if kind == "Node":
        return named(value)[1]
    if kind == "Pod":
        metadata = value.get("metadata")
        uid = metadata.get("uid") if isinstance(metadata, Mapping) else None
        return uid if isinstance(uid, str) else _pod_name(value)
    return named(value)


def _reason(error: FieldError) -> str:
    return _cut(f"{error.field}: {error}" if error.field else str(error))


def _cut(text: str) -> str:
    """Shortens what objects make long: anybody may write them."""
    return text if len(text) <= LONGEST_NOTE else excerpt(text, LONGEST_NOTE, quote="")


def _pod_name(value: Object) -> str:
    namespace, name = named(value)
    return f"{namespace or 'default'}/{name}"


def _node_of(value: Object) -> str:
    spec = value.get("spec")
    return str(spec.get("nodeName") or "") if isinstance(spec, Mapping) else ""
