"""Gathers nodes, pods and what describes them over the files of a dump."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from podium.errors import InputError
from podium.files.text_file import format_suffix
from podium.model.cluster import Cluster, NodeSpec, node_problem
from podium.model.constraints import Constraints
from podium.model.disruption import DisruptionBudget
from podium.traces.fields import FieldError, mapping_at
from podium.traces.kubernetes.constraints import Namespaces, read_namespace
from podium.traces.kubernetes.devices import DeviceError, Inventory, NodeFacts, node_facts
from podium.traces.kubernetes.disruption import read_budget
from podium.traces.kubernetes.documents import SUFFIXES, Document, Follow, read_documents
from podium.traces.kubernetes.domains import chosen_domains
from podium.traces.kubernetes.gangs import Groups
from podium.traces.kubernetes.node import node_outline, node_resources, node_spec
from podium.traces.kubernetes.pod import PodDraft, UnmodelledError, pod_draft
from podium.traces.kubernetes.priorities import DEFAULT_CLASS, PriorityClass, read_priority_class
from podium.traces.kubernetes.standing import condition_times
from podium.traces.kubernetes.state import State
from podium.traces.kubernetes.templates import expanded, has_template, may_make_pods
from podium.traces.kubernetes.volumes import KINDS, Volumes
from podium.traces.kubernetes.waiting import (
    missing,
    namesakes_of,
    pods_of,
    ungated,
    waits,
    without_children,
)
from podium.traces.notes import GATED as GATED_WORK
from podium.traces.notes import SUSPENDED, TRUNCATED, counted
from podium.traces.rejects import Rejects
from podium.traces.trace import Trace

NOTHING_HINT = "give Node and Pod objects, as `kubectl get nodes,pods -A -o yaml` prints them"
_WANTED_HINT = (
    "give Pod objects, or a Job, JobSet, LeaderWorkerSet, Deployment, StatefulSet, or a job of "
    "Volcano, Kubeflow or Ray"
)
WANTED_NODES = "nodes in a file of wanted pods are left out, --cluster takes others"
_OF_NODES = frozenset({"Node", "ResourceSlice", "Device", "DeviceClass"})


@dataclass(frozen=True, slots=True)
class Reading:
    """Says how a dump of a cluster is meant."""

    state: State | None = None  # None: as it is now where pods run, empty otherwise
    duration: str | None = None  # None: as pods say, else as finished ones ran
    topology: tuple[str, ...] = ()  # a preset or label keys of rack, block and zone
    seed: int = 0  # draws run times
    waiting: tuple[str, ...] = ()  # gated, suspended: work that is tried though it waits
    follow: Follow | None = field(default=None, compare=False)  # is told how far the reading is

    @property
    def is_in_place(self) -> bool:
        """Tells whether pods stay where they run, if there are nodes."""
        return self.state in (None, "now")


AS_IT_IS = Reading()


@dataclass(slots=True)
class Pile:
    """Gathers nodes, pods and what describes them over files."""

    rejects: Rejects
    reading: Reading
    nodes: dict[str, NodeSpec] = field(default_factory=dict)
    pods: list[PodDraft] = field(default_factory=list)
    places: dict[tuple[str, ...], str] = field(default_factory=dict)  # of names: file and line
    namespaces: Namespaces = field(default_factory=Namespaces)
    groups: Groups = field(default_factory=Groups)
    volumes: Volumes = field(default_factory=Volumes)
    inventory: Inventory = field(default_factory=Inventory)
    node_facts: dict[str, NodeFacts] = field(default_factory=dict)
    priorities: dict[str, PriorityClass] = field(default_factory=dict)  # of PriorityClasses
    budgets: list[DisruptionBudget] = field(default_factory=list)
    described: Counter[str] = field(default_factory=Counter)  # kinds that are read on the side
    others: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)  # kinds of which pods may be wanted
    unread: Counter[str] = field(default_factory=Counter)  # pods and controllers, by what they are
    node_remarks: Counter[str] = field(default_factory=Counter)
    file_notes: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)  # files that hold no manifests
    of_nodes: list[tuple[Path, Document]] = field(default_factory=list)  # what describes nodes
    described_nodes: tuple[tuple[Path, Document], ...] = ()  # the same once all is read
    suspended: list[tuple[Path, Document]] = field(default_factory=list)  # jobs
    suspended_jobs: Counter[str] = field(default_factory=Counter)  # that are not tried, by kind
    suspended_pods: int = 0  # of those
    wanted_notes: list[str] = field(default_factory=list)  # on files of wanted pods
    wanted_nodes: int = 0  # in those
    lost: list[NodeSpec] = field(default_factory=list)  # that cannot be modelled
    why_lost: dict[str, list[str]] = field(default_factory=dict)  # nodes, by the reason
    replaced: frozenset[str] = frozenset()  # kinds that come from elsewhere
    given: Cluster | None = None  # nodes that come from elsewhere, ready made
    latest_s: float | None = None  # the present, as far as objects of this dump tell
    constraints: dict[Constraints, Constraints] = field(default_factory=dict)  # each once

    def take_all(
        self, path: Path, wanted: Sequence[Path], begun: Iterable[Document] | None,
        on: Trace | None,
    ) -> None:  # fmt: skip
        """Reads everything."""
        if on is not None:
            self.stand_on(on)
        if path.is_dir():
            for file in _files(path, self):
                self.read(file)
        else:
            self.read(path, begun)
        self._take_suspended()
        for file in wanted:
            self.read_wanted(file)
        self.described_nodes = tuple(self.of_nodes)

    def stand_on(self, nodes: Trace) -> None:
        """Takes the nodes of another trace, in place of those that are still to be read."""
        for path, document in nodes.of_nodes:
            self._read_object(document, path)
        if nodes.cluster is not None and not nodes.of_nodes:
            self.given = nodes.cluster
            self.nodes = {spec.name: spec for spec in nodes.cluster.specs()}
        # Slices that the other file lacks may be those of the same nodes.
        self.replaced = frozenset({"Node", *(each.kind for _, each in self.of_nodes)})

    def read(self, path: Path, begun: Iterable[Document] | None = None) -> None:
        """Adds the objects of a file."""
        for document in read_documents(path, self.reading.follow) if begun is None else begun:
            self.file_notes += document.notes
            if document.kind not in self.replaced:
                self._read_object(document, path)

    def _read_object(self, document: Document, path: Path) -> None:
        take, is_waiting = self._taker(document), waits(document)
        if is_waiting:
            self.suspended.append((path, document))
        if take is None and is_waiting:
            self.described[document.kind] += 1
            return
        if take is None:
            self._take_other(document, path)
            return
        if document.kind in _OF_NODES:
            self.of_nodes.append((path, document))
        try:
            take(document, path)
        except FieldError as error:
            self.unread.update(["pod"] if _is_unfinished_pod(document) else [])
            name = _object_name(document)
            self.reject(error, name, f"{path}, line {document.line}")
            if document.kind == "Node":
                self.lost += node_outline(document.value)
                self.why_lost.setdefault(str(error), []).append(name)

    def read_wanted(self, path: Path) -> None:
        """Adds the pods of a file, and those that its controllers would make."""
        before, held = len(self.pods), Counter[str]()
        for document in read_documents(path):
            held[document.kind or "object without a kind"] += 1
            try:
                for each in self._lacking(document, self.pods[:before]):
                    take = self._taker(each)
                    if take is not None:
                        take(each, path)
                    elif not has_template(each):
                        self._take_other(each, path)
                        self.unknown.update([document.kind] if may_make_pods(document) else [])
            except FieldError as error:
                self.unread[_noun(document)] += 1
                self.reject(error, _object_name(document), f"{path}, line {document.line}")
        # Somebody who names a pod asks about it, whatever it waits for.
        self.pods[before:] = map(ungated, self.pods[before:])
        is_told = self.rejects.count or self.wanted_notes or self.wanted_nodes
        if len(self.pods) == before and not is_told:
            kinds = ", ".join(f"{count} {kind}" for kind, count in held.items())
            text = f"it holds {kinds}" if kinds else "it is empty"
            raise InputError.at(path, f"no Pod was found: {text}", hint=_WANTED_HINT)

    def _lacking(self, document: Document, drafts: Sequence[PodDraft]) -> list[Document]:
        """Expands an object of a file of wanted pods, less what the dump has of it already."""
        if document.kind == "Node":
            self.wanted_nodes += 1
            return []
        if not has_template(document):
            return [document]
        made = expanded(document)
        pods = [each for each in made if each.kind == "Pod"]
        name, all_pods = _titled(document), counted(len(pods), "pod")
        there = pods_of(document, drafts)
        if not there:
            unowned = len(namesakes_of(document, drafts))
            if unowned:
                told = f"nothing tells who made {counted(unowned, 'pod')} of that name in the dump"
                self.wanted_notes.append(f"{name}: {told}, so all {all_pods} are tried")
            return made
        lacking = missing(document, pods, there)
        present, tried = len(pods) - len(lacking), len(lacking)
        self.wanted_notes.append(
            f"{name}: {present:,} of {all_pods} {'is' if present == 1 else 'are'} in the dump "
            f"already, so {f'{tried:,}' if tried else 'none'} {'are' if tried > 1 else 'is'} tried"
        )
        return [*(each for each in made if each.kind != "Pod"), *lacking] if lacking else []

    def _take_suspended(self) -> None:
        """Counts jobs that are suspended, or makes their pods if they are to be tried."""
        paths = {id(document): path for path, document in self.suspended}
        for document in without_children(document for _, document in self.suspended):
            try:
                self._take_job(document, paths[id(document)])
            except FieldError as error:
                place = f"{paths[id(document)]}, line {document.line}"
                self.reject(error, _object_name(document), place)

    def _take_job(self, job: Document, path: Path) -> None:
        if pods_of(job, self.pods):
            return
        made = [each for each in expanded(job) if not has_template(each)]
        if SUSPENDED not in self.reading.waiting:
            self.suspended_jobs[job.kind] += 1
            self.suspended_pods += sum(each.kind == "Pod" for each in made)
            return
        for each in made:
            take = self._taker(each)
            if take is not None:
                take(each, path)

    def reject(self, error: FieldError, name: str, place: str) -> None:
        """Leaves an object out, or raises where that is not allowed."""
        where = f"{place}, {error.field}" if error.field else place
        found = InputError(f"{name}: {error}", where=where)
        if isinstance(error, DeviceError | UnmodelledError):
            # One odd device, or one pod without measure, never costs the whole file.
            self.rejects.leave_out(found)
        else:
            self.rejects.add(found)

    def _taker(self, document: Document) -> Callable[[Document, Path], None] | None:
        kinds: dict[str, Callable[[Document, Path], None]]
        kinds = {"Node": self._take_node, "Pod": self._take_pod}
        if document.kind in kinds:
            return kinds[document.kind]
        # `node` is meant to be read: as some other kind, it would be left out in silence.
        if document.kind.capitalize() in kinds:
            return _refuse_spelling
        on_the_side = {
            "Namespace": self._take_namespace,
            "PriorityClass": self._take_priority,
            "PodDisruptionBudget": self._take_budget,
            **dict.fromkeys(KINDS, self._take_volume),
        }
        if document.kind in on_the_side:
            return on_the_side[document.kind]
        if self.inventory.takes(document.value):
            return self._take_devices
        return self._take_group if self.groups.takes(document.value) else None

    def _take_node(self, document: Document, path: Path) -> None:
        domains = chosen_domains(self.reading.topology)
        spec = node_spec(document.value, self.node_remarks, domains)
        problem = node_problem(spec)
        if problem:
            raise FieldError("", problem)
        self._register(("node", spec.name), "another node", document, path)
        self.nodes[spec.name] = spec
        resources = node_resources(document.value)
        self.node_facts[spec.name] = node_facts(document.value, resources, self.inventory)
        self._see(*condition_times(mapping_at(document.value, "status", "status")))

    def _take_pod(self, document: Document, path: Path) -> None:
        count, known = len(self.pods), self.constraints
        draft = pod_draft(document.value, self.namespaces, count, self.inventory, known)
        if not mapping_at(document.value, "spec", "spec").get("containers"):
            raise FieldError("spec.containers", f"the pod has no containers: {TRUNCATED}")
        namespace = draft.spec.namespace or "default"
        name = ("pod", namespace, draft.spec.name)
        self._register(name, f"another pod of the namespace {namespace}", document, path)
        self.namespaces.seen.add(namespace)
        self.pods.append(ungated(draft) if GATED_WORK in self.reading.waiting else draft)
        self._see(draft.standing.latest_s)

    def _take_namespace(self, document: Document, path: Path) -> None:
        del path
        name, labels = read_namespace(document.value)
        self.namespaces.labels[name] = labels
        self.described[document.kind] += 1

    def _take_priority(self, document: Document, path: Path) -> None:
        del path
        found = read_priority_class(document.value)
        self.priorities[found.name] = found
        known = self.priorities.get(DEFAULT_CLASS)
        # Of several, an API server takes the one of lowest priority.
        if found.is_default and (known is None or found.priority < known.priority):
            self.priorities[DEFAULT_CLASS] = found
        self.described[document.kind] += 1

    def _take_budget(self, document: Document, path: Path) -> None:
        budget = read_budget(document.value)
        name = ("budget", budget.namespace or "default", budget.name)
        self._register(name, "another PodDisruptionBudget", document, path)
        self.budgets.append(budget)
        self.described[document.kind] += 1

    def _take_volume(self, document: Document, path: Path) -> None:
        del path
        self.volumes.add(document.value)
        self.described[document.kind] += 1

    def _take_devices(self, document: Document, path: Path) -> None:
        del path
        self.inventory.add(document.value)
        self.described[document.kind] += 1

    def _take_group(self, document: Document, path: Path) -> None:
        del path
        self.groups.add(document.value)
        self.described[document.kind] += 1

    def _take_other(self, document: Document, path: Path) -> None:
        if not document.kind:
            message = f"the object has no kind; Node or Pod is expected, or {TRUNCATED}"
            if "items" in document.value:
                message = f"the list has no kind, which kubectl writes last: {TRUNCATED}"
            self.rejects.add(InputError.at(path, message, line=document.line, hint=NOTHING_HINT))
        elif document.value.get("apiVersion") == "v1" and "metadata" not in document.value:
            message = f"the object of kind {document.kind} has no metadata: {TRUNCATED}"
            self.rejects.add(InputError.at(path, message, line=document.line))
        self.others[document.kind or "object without a kind"] += 1

    def _register(self, name: tuple[str, ...], who: str, document: Document, path: Path) -> None:
        """Refuses a second object of one name, and says where the first one is."""
        if name in self.places:
            raise FieldError("metadata.name", f"{who} has the same name: {self.places[name]}")
        self.places[name] = f"{path}, line {document.line}"

    def _see(self, *times: float | None) -> None:
        known = [time for time in (*times, self.latest_s) if time is not None]
        self.latest_s = max(known, default=None)


def _files(folder: Path, pile: Pile) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InputError.at(folder, f"cannot be read: {error.strerror or error}") from error
    for entry in entries:
        if entry.is_dir():
            yield from _files(entry, pile)
        elif format_suffix(entry) in SUFFIXES:
            yield entry
        else:
            pile.strangers.append(entry.name)


def _refuse_spelling(document: Document, path: Path) -> None:
    del path
    kind = document.kind
    raise FieldError("kind", f"{kind} is spelt {kind.capitalize()}")


def _is_unfinished_pod(document: Document) -> bool:
    status = document.value.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    return document.kind.capitalize() == "Pod" and phase not in ("Succeeded", "Failed")


def _noun(document: Document) -> str:
    return "pod" if document.kind.capitalize() == "Pod" else document.kind


def _titled(document: Document) -> str:
    """Names a controller as kubectl does in a sentence."""
    metadata = mapping_at(document.value, "metadata", "metadata")
    return f"{document.kind} {metadata.get('name') or metadata.get('generateName') or ''}".rstrip()


def _object_name(document: Document) -> str:
    metadata = document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f'{document.kind.lower()} "{name}"' if isinstance(name, str) else document.kind.lower()
