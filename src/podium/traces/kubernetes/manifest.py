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
from podium.traces.kubernetes.devices import DeviceError, Inventory
from podium.traces.kubernetes.devices.inventory import with_known_memory
from podium.traces.kubernetes.documents import SUFFIXES, Document, read_documents
from podium.traces.kubernetes.node import node_spec
from podium.traces.kubernetes.pod import PodDraft, pod_draft
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


@dataclass(slots=True)
class _Pile:
    """Gathers nodes and pods over files."""

    rejects: Rejects
    nodes: dict[str, NodeSpec] = field(default_factory=dict)
    pods: list[PodDraft] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    node_remarks: Counter[str] = field(default_factory=Counter)
    pod_remarks: Counter[str] = field(default_factory=Counter)
    strangers: list[str] = field(default_factory=list)  # files that hold no manifests
    inventory: Inventory = field(default_factory=Inventory)
    # Pods and nodes are described once it is known what else the dump tells of devices.
    waiting: list[tuple[Document, Path]] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Takes the objects of a file; nodes and pods wait until everything is read."""
        for document in read_documents(path):
            # `node` is meant to be read: as some other kind, it would be left out in silence.
            if document.kind.capitalize() in ("Node", "Pod"):
                self.waiting.append((document, path))
            else:
                self._check_kind(document, path)
                self._take(self._take_other, document, path)

    def _describe(self) -> None:
        """Describes all nodes, then all pods, which may run on GPUs that nodes name."""
        self._take_all("Node", self._take_node)
        nodes = self.inventory.settled(self.nodes.values())
        self._take_all("Pod", self._take_pod)
        if any(pod.spec.gpu_memory_mib for pod in self.pods):
            nodes = with_known_memory(nodes, self.node_remarks)
        self.nodes = {spec.name: spec for spec in nodes}
        self.waiting.clear()

    def _take_all(self, kind: str, take: Callable[[Document], None]) -> None:
        for document, path in self.waiting:
            if document.kind == kind:
                self._take(take, document, path)
            elif document.kind.capitalize() == kind:
                self._take(_refuse_spelling, document, path)

    def _take(self, take: Callable[[Document], None], document: Document, path: Path) -> None:
        try:
            take(document)
        except FieldError as error:
            message = f"{_object_name(document)}: {error}"
            found = InputError.at(path, message, line=document.line, column=error.field)
            if isinstance(error, DeviceError):
                self.rejects.leave_out(found)
            else:
                self.rejects.add(found)

    def trace(self, path: Path) -> Trace:
        """Builds the trace once everything is read."""
        self._describe()
        if not self.nodes and not self.pods:
            found_kinds = self.others + self.inventory.kinds
            kinds = ", ".join(f"{count} {kind}" for kind, count in found_kinds.items())
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

    def _take_node(self, document: Document) -> None:
        spec = node_spec(document.value, self.node_remarks, self.inventory)
        problem = node_problem(spec)
        if problem:
            raise FieldError("", problem)
        if spec.name in self.nodes:
            raise FieldError("metadata.name", "another node has the same name")
        self.nodes[spec.name] = spec

    def _take_pod(self, document: Document) -> None:
        draft = pod_draft(document.value, self.pod_remarks, len(self.pods), self.inventory)
        self.pods.append(draft)

    def _check_kind(self, document: Document, path: Path) -> None:
        if not document.kind:
            message = "the object has no kind; Node or Pod is expected"
            self.rejects.add(InputError.at(path, message, line=document.line, hint=_NOTHING_HINT))

    def _take_other(self, document: Document) -> None:
        if not self.inventory.take(document.value):
            self.others[document.kind or "object without a kind"] += 1

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


def _refuse_spelling(document: Document) -> None:
    kind = document.kind
    raise FieldError("kind", f"{kind} is spelt {kind.capitalize()}")


def _object_name(document: Document) -> str:
    metadata = document.value.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f'{document.kind.lower()} "{name}"' if isinstance(name, str) else document.kind.lower()
