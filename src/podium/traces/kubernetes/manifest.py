"""Reads Kubernetes Node and Pod manifests: YAML or JSON, files or folders, also gzip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from podium.errors import InputError
from podium.files.text_file import format_suffix
from podium.model.cluster import Cluster, NodeSpec, node_problem
from podium.model.workload import PodSpec, Workload
from podium.traces.fields import FieldError
from podium.traces.kubernetes.devices import (
    DeviceError,
    Inventory,
    NodeFacts,
    node_devices,
    node_facts,
    pod_devices,
)
from podium.traces.kubernetes.devices.inventory import with_known_memory
from podium.traces.kubernetes.documents import SUFFIXES, Document, read_documents
from podium.traces.kubernetes.node import node_resources, node_spec, node_with_devices
from podium.traces.kubernetes.pod import CPU_SELECTING, PodDraft, pod_draft, with_devices
from podium.traces.notes import counted, some, time_notes
from podium.traces.rejects import Rejects
from podium.traces.trace import Trace

_NOTHING_HINT = "give Node and Pod objects, as `kubectl get nodes,pods -o yaml` prints them"
_HINTS = {
    "KubeSchedulerConfiguration": "that is a scheduler's configuration: give it as a policy",
}


def read_manifests(path: Path, rejects: Rejects) -> Trace:
    """Reads the nodes and pods of a file, or of all manifests in a folder."""
    pile = _Pile(rejects)
    if path.is_dir():
        for file in _files(path, pile):
            pile.read(file)
    else:
        pile.read(path)
    return pile.trace(path)


@dataclass(frozen=True, slots=True)
class _Place:
    """Says where an object stands that is not done with."""

    path: Path
    line: int
    name: str

    def error(self, error: FieldError) -> InputError:
        """Words what is wrong with the object."""
        return InputError.at(self.path, f"{self.name}: {error}", line=self.line, column=error.field)


@dataclass(slots=True)
class _Pile:
    """Gathers nodes and pods over files."""

    rejects: Rejects
    nodes: dict[str, NodeSpec] = field(default_factory=dict)
    pods: list[PodDraft] = field(default_factory=list)
    described: Counter[str] = field(default_factory=Counter)  # kinds that are read on the side
    others: Counter[str] = field(default_factory=Counter)
    node_remarks: Counter[str] = field(default_factory=Counter)
    pod_remarks: Counter[str] = field(default_factory=Counter)
    strangers: list[str] = field(default_factory=list)  # files that hold no manifests
    inventory: Inventory = field(default_factory=Inventory)
    node_facts: dict[str, NodeFacts] = field(default_factory=dict)
    node_places: dict[str, _Place] = field(default_factory=dict)
    pod_lines: list[int] = field(default_factory=list)  # of each pod, beside its file
    pod_files: list[Path] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Adds the objects of a file."""
        take: dict[str, Callable[[Document, Path], None]]
        take = {"Node": self._take_node, "Pod": self._take_pod}
        for document in read_documents(path):
            # `node` is meant to be read: as some other kind, it would be left out in silence.
            is_other = document.kind not in take and document.kind.capitalize() not in take
            reader = self._take_other if is_other else take.get(document.kind, _refuse_spelling)
            try:
                reader(document, path)
            except FieldError as error:
                self._reject(error, _place(document, path))

    def _reject(self, error: FieldError, place: _Place) -> None:
        if isinstance(error, DeviceError):
            self.rejects.leave_out(place.error(error))
        else:
            self.rejects.add(place.error(error))

    def trace(self, path: Path) -> Trace:
        """Builds the trace once everything is read."""
        self._settle()
        if not self.nodes and not self.pods:
            held = self.described + self.others
            kinds = ", ".join(f"{count} {kind}" for kind, count in held.items())
            found = f"it holds {kinds}" if kinds else "it is empty"
            if self.rejects.count:
                found = f"every one of them was left out; the first: {self.rejects.first}"
            hint = next((_HINTS[kind] for kind in self.others if kind in _HINTS), _NOTHING_HINT)
            raise InputError.at(path, f"no Node or Pod was found: {found}", hint=hint)
        pods = _finished(self.pods)
        return Trace(
            name=path.name,
            cluster=Cluster.of(self.nodes.values(), name=path.name) if self.nodes else None,
            workload=Workload.of(pods, name=path.name) if pods else None,
            notes=tuple(self._notes(pods)),
        )

    def _take_node(self, document: Document, path: Path) -> None:
        spec = node_spec(document.value, self.node_remarks)
        problem = node_problem(spec)
        if problem:
            raise FieldError("", problem)
        if spec.name in self.nodes:
            raise FieldError("metadata.name", "another node has the same name")
        resources = node_resources(document.value)
        self.nodes[spec.name] = spec
        self.node_facts[spec.name] = node_facts(document.value, resources, self.inventory)
        self.node_places[spec.name] = _place(document, path)

    def _take_pod(self, document: Document, path: Path) -> None:
        draft = pod_draft(document.value, self.pod_remarks, len(self.pods), self.inventory)
        self.pods.append(draft)
        self.pod_lines.append(document.line)
        self.pod_files.append(path)

    def _take_other(self, document: Document, path: Path) -> None:
        if not document.kind:
            message = "the object has no kind; Node or Pod is expected"
            self.rejects.add(InputError.at(path, message, line=document.line, hint=_NOTHING_HINT))
        if self.inventory.takes(document.value):
            self.inventory.add(document.value)
            self.described[document.kind] += 1
            return
        self.others[document.kind or "object without a kind"] += 1

    def _settle(self) -> None:
        """Describes devices, of nodes first: pods may run on GPUs that nodes name."""
        nodes = self.inventory.settled(self._settled_nodes())
        self.pods = list(self._settled_pods())
        if any(draft.spec.gpu_memory_mib for draft in self.pods):
            nodes = with_known_memory(nodes, self.node_remarks)
        self.nodes = {spec.name: spec for spec in nodes}

    def _settled_nodes(self) -> Iterator[NodeSpec]:
        for name, spec in self.nodes.items():
            try:
                devices = node_devices(self.node_facts[name])
                described = node_with_devices(spec, devices)
            except FieldError as error:
                self._reject(error, self.node_places[name])
                continue
            self.node_remarks.update(devices.remarks)
            yield described

    def _settled_pods(self) -> Iterator[PodDraft]:
        for index, draft in enumerate(self.pods):
            try:
                devices = pod_devices(draft.facts)
                spec = with_devices(draft, devices)
            except FieldError as error:
                name = f'pod "{draft.spec.name}"'
                self._reject(error, _Place(self.pod_files[index], self.pod_lines[index], name))
                continue
            if devices.remarks:
                self.pod_remarks.update(devices.remarks)
            if draft.models and not spec.gpu_count:
                self.pod_remarks[CPU_SELECTING] += 1
            yield draft if spec is draft.spec else replace(draft, spec=spec)

    def _notes(self, pods: list[PodSpec]) -> Iterator[str]:
        yield from self.rejects.notes()
        for kind, count in self.others.items():
            yield f"only Node and Pod are read, not {kind}: {counted(count, 'object')}"
        if self.strangers:
            yield f"only .yaml, .yml and .json files are read, not {some(self.strangers)}"
        for remarks, noun in ((self.node_remarks, "node"), (self.pod_remarks, "pod")):
            yield from (f"{text}: {counted(count, noun)}" for text, count in remarks.items())
        yield from time_notes(pods)


def _files(folder: Path, pile: _Pile) -> Iterator[Path]:
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


def _finished(drafts: list[PodDraft]) -> list[PodSpec]:
    """Names pods apart where namespaces do, and counts arrivals from the earliest pod."""
    times = [draft.created_s for draft in drafts if draft.created_s is not None]
    earliest = min(times, default=0.0)
    namespaces: dict[str, set[str]] = {}
    for draft in drafts:
        namespaces.setdefault(draft.spec.name, set()).add(draft.namespace)
    return [_finish(draft, earliest, len(namespaces[draft.spec.name]) > 1) for draft in drafts]


def _finish(draft: PodDraft, earliest: float, is_ambiguous: bool) -> PodSpec:
    spec = draft.spec
    name = f"{draft.namespace or 'default'}/{spec.name}" if is_ambiguous else spec.name
    arrival_s = spec.arrival_s
    if arrival_s is None and draft.created_s is not None:
        arrival_s = draft.created_s - earliest
    return replace(spec, name=name, arrival_s=arrival_s)


def _refuse_spelling(document: Document, path: Path) -> None:
    del path
    kind = document.kind
    raise FieldError("kind", f"{kind} is spelt {kind.capitalize()}")


def _place(document: Document, path: Path) -> _Place:
    return _Place(path, document.line, _object_name(document))


def _object_name(document: Document) -> str:
    metadata = document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f'{document.kind.lower()} "{name}"' if isinstance(name, str) else document.kind.lower()
