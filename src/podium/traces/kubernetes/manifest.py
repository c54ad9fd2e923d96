"""Reads Kubernetes manifests, or the dump of a cluster: YAML or JSON, files or folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from podium.errors import InputError, UsageError
from podium.files.text_file import format_suffix
from podium.model.classes import PODS
from podium.model.cluster import Cluster, NodeSpec, node_problem
from podium.model.constraints import Constraints
from podium.model.disruption import DisruptionBudget
from podium.model.records import GPU_MILLI, MAX_MODELS
from podium.model.workload import PodSpec, Workload, models_of
from podium.traces.fields import FieldError, mapping_at
from podium.traces.kubernetes.constraints import Namespaces, read_namespace
from podium.traces.kubernetes.contest import CONTESTED, Contest, PodName, contest_of
from podium.traces.kubernetes.devices import (
    DeviceError,
    Inventory,
    NodeFacts,
    PodFacts,
    node_devices,
    node_facts,
    pod_devices,
)
from podium.traces.kubernetes.devices.claims import (
    ALL_DEVICES,
    IDLE_CLAIMS,
    MISSING_CLAIMS,
    SELECTING_CLAIMS,
    TAINTED,
    TOLERATING,
    UNMODELLED_CLASS,
    tied,
)
from podium.traces.kubernetes.devices.inventory import folded, with_known_memory
from podium.traces.kubernetes.devices.values import UNTIED
from podium.traces.kubernetes.disruption import read_budget
from podium.traces.kubernetes.documents import SUFFIXES, Document, Follow, read_documents
from podium.traces.kubernetes.domains import chosen_domains
from podium.traces.kubernetes.gangs import (
    Gangs,
    Groups,
    Member,
    on_labelled_nodes,
    resolve_gangs,
    whole,
)
from podium.traces.kubernetes.node import node_outline, node_resources, node_spec, node_with_devices
from podium.traces.kubernetes.pod import VOLUMES, PodDraft, UnmodelledError, pod_draft, settled
from podium.traces.kubernetes.priorities import DEFAULT_CLASS, PriorityClass, read_priority_class
from podium.traces.kubernetes.run_times import History, RunTimes
from podium.traces.kubernetes.standing import condition_times
from podium.traces.kubernetes.state import (
    GATED,
    LEFT_OUT,
    NOMINATED,
    STATES,
    UNBOUND,
    Present,
    State,
    anew_note,
    present,
    timed,
)
from podium.traces.kubernetes.templates import expanded, has_template, may_make_pods
from podium.traces.kubernetes.volumes import (
    DUMP,
    KINDS,
    UNKNOWN_ROOM,
    UNKNOWN_VOLUMES,
    Consumer,
    Volumes,
)
from podium.traces.kubernetes.waiting import (
    missing,
    namesakes_of,
    pods_of,
    ungated,
    waits,
    without_children,
)
from podium.traces.notes import GATED as GATED_WORK
from podium.traces.notes import SUSPENDED, TRUNCATED, counted, some, time_notes, told_jobs
from podium.traces.rejects import Rejects
from podium.traces.trace import Doubt, Trace

_NOTHING_HINT = "give Node and Pod objects, as `kubectl get nodes,pods -A -o yaml` prints them"
_WANTED_HINT = (
    "give Pod objects, or a Job, JobSet, LeaderWorkerSet, Deployment, StatefulSet, or a job of "
    "Volcano, Kubeflow or Ray"
)
WANTED_NODES = "nodes in a file of wanted pods are left out, --cluster takes others"
ALL_NAMESPACES = "kubectl get shows those of all namespaces with -A"
UNREAD = (
    MISSING_CLAIMS, SELECTING_CLAIMS, UNMODELLED_CLASS, ALL_DEVICES, UNKNOWN_VOLUMES, UNKNOWN_ROOM
)  # fmt: skip
"""How remarks begin on what a pod asks for that keeps it off nodes, nobody knows which."""

UNKNOWN_STORAGE = frozenset({UNKNOWN_VOLUMES, UNKNOWN_ROOM})
_OF_NODES = frozenset({"Node", "ResourceSlice", "Device", "DeviceClass"})
_HINTS = {
    "KubeSchedulerConfiguration": "that is a scheduler's configuration: give it as a policy",
}


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


def read_manifests(
    path: Path, rejects: Rejects, reading: Reading = AS_IT_IS, wanted: Sequence[Path] = (),
    begun: Iterable[Document] | None = None, on: Trace | None = None,
) -> Trace:  # fmt: skip
    """Reads the nodes and pods of a file, or of all manifests in a folder.

    `begun` gives the objects of the file, where somebody has begun to read it. The nodes of `on`
    stand in for those of the file, as if they were written there.
    Files of wanted pods are read beside it, and the Jobs and Deployments in them become pods: in
    the dump of a cluster, those have their pods already.
    """
    if reading.state not in (None, *STATES):
        hint = f"give {' or '.join(STATES)}"
        raise UsageError(f'"{reading.state}" is not a state', where="state", hint=hint)
    if reading.seed < 0:
        raise UsageError(f"the seed {reading.seed} cannot be used", hint="give 0 or more")
    key = _key([path, *wanted], rejects, reading)
    nodes = None if on is None else on.of_nodes or on.cluster
    kept = _KEPT.get(key) if key else None
    if kept is None or kept[1] is not nodes:
        pile = _Pile(rejects, reading)
        pile.take_all(path, wanted, begun, on)
        _keep(key, pile, nodes)
    else:
        pile = kept[0]
    return replace(pile.trace(path, reading.seed), on=on)


_Key = tuple[Any, ...]
_KEPT: dict[_Key, tuple[_Pile, object]] = {}
"""What was read last, and on which nodes: each seed of a comparison only draws run times anew."""

_MOST_KEPT = 2  # a dump, and other nodes
_LEAST_KEPT_BYTES = 1 << 16
"""Smaller files are read again: they may change faster than the clock of the file system ticks."""


def _key(paths: Sequence[Path], rejects: Rejects, reading: Reading) -> _Key | None:
    """Tells files that did not change since they were read, and were meant alike."""
    files = [file for path in paths for file in (path, *(path.rglob("*") if path.is_dir() else ()))]
    try:
        stats = [(file, file.stat()) for file in files]
    except OSError:
        return None
    if sum(stat.st_size for _, stat in stats) < _LEAST_KEPT_BYTES:
        return None
    known = tuple((file, stat.st_ino, stat.st_size, stat.st_mtime_ns) for file, stat in stats)
    return (len(paths), known, rejects.is_skipping, replace(reading, seed=0))


def _keep(key: _Key | None, pile: _Pile, nodes: object) -> None:
    if key is None:
        return
    _KEPT.pop(key, None)
    while len(_KEPT) >= _MOST_KEPT:
        del _KEPT[next(iter(_KEPT))]
    _KEPT[key] = (pile, nodes)


@dataclass(slots=True)
class _Pile:
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
        """Reads everything, and settles what objects have to say of each other."""
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
        self._settle()

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
        take = self._taker(document)
        if waits(document):
            self.suspended.append((path, document))
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
            self._reject(error, name, f"{path}, line {document.line}")
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
                self._reject(error, _object_name(document), f"{path}, line {document.line}")
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
                self._reject(error, _object_name(document), place)

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

    def _reject(self, error: FieldError, name: str, place: str) -> None:
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

    def trace(self, path: Path, seed: int) -> Trace:
        """Builds the trace of what was read; the seed draws run times."""
        found = present(self.pods, self.nodes, self.reading.state)
        # Pods that all wait for their gates are an answer, if none could not be read.
        waiting = found.remarks[GATED] + self.suspended_pods
        is_waiting = bool(waiting) and not self.rejects.count
        if not self.nodes and self.why_lost:
            raise self._no_node_left(path)
        if not self.nodes and not found.pods and not is_waiting:
            raise self._nothing(path, found)
        gangs = self._gangs(found)
        history = History()
        for draft in self.pods:
            history.add(draft.spec, draft.standing)
        run_times = RunTimes(self.reading.duration, history, self.latest_s)
        names = gangs.names[: len(found.pods)]
        pods = _named(timed(found, names, run_times, seed))
        pods = [self._in_domain(pod, gangs) for pod in pods]
        contest = _contest(self.volumes, found)
        notes = (*self._notes(found), *gangs.notes, *run_times.notes(), *time_notes(pods))
        if contest is not None:
            notes += (f"{CONTESTED}: {counted(len(contest.consumers), 'pod')}",)
        return Trace(
            name=path.name,
            cluster=self._cluster(path.name, found.staying),
            workload=self._workload(pods, path.name, gangs) if pods else None,
            notes=notes,
            left_out={LEFT_OUT[remark]: count for remark, count in found.remarks.items()}
            | ({SUSPENDED: self.suspended_pods} if self.suspended_jobs else {}),
            suspended=dict(self.suspended_jobs),
            gaps=tuple(self._gaps(found)),
            doubts=dict(self._doubts(found)),
            lost=tuple(self.lost),
            of_nodes=self.described_nodes,
            contest=contest,
        )

    def _cluster(self, name: str, staying: Sequence[PodDraft]) -> Cluster | None:
        """Builds the cluster without what pods that belong to its nodes ask for."""
        nodes = dict(self.nodes)
        for draft in staying:
            at = draft.standing.node
            nodes[at] = _less(nodes[at], draft.spec)
        if self.given is not None and not staying:
            return self.given
        return Cluster.of(nodes.values(), name=name) if nodes else None

    def _workload(self, pods: list[PodSpec], name: str, gangs: Gangs) -> Workload:
        return Workload.of(pods, name=name, gangs=gangs.rules, budgets=self.budgets)

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
            self.rejects.add(InputError.at(path, message, line=document.line, hint=_NOTHING_HINT))
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

    def _shared(self, spec: PodSpec) -> PodSpec:
        """Lets pods with equal constraints hold one and the same value."""
        constraints = self.constraints.setdefault(spec.constraints, spec.constraints)
        is_first = constraints is spec.constraints
        return spec if is_first else replace(spec, constraints=constraints)

    def _settle(self) -> None:
        """Settles what other objects had to say: devices, priorities, labels of namespaces."""
        facts = (draft.facts for draft in self.pods)
        nodes = self.inventory.settled(self._settled_nodes(), facts, self._running_facts())
        for draft in self._running():
            if draft.claims:
                self.volumes.attach(_consumer(draft), draft.standing.node)
        self.pods = list(self._settled_pods())
        nodes = self.inventory.bounding(nodes)
        if any(draft.spec.gpu_memory_mib for draft in self.pods):
            nodes = with_known_memory(nodes, self.node_remarks)
        self.nodes = {spec.name: spec for spec in nodes}

    def _running(self) -> Iterator[PodDraft]:
        """Gives the pods that stay where they run."""
        for draft in self.pods:
            standing = draft.standing
            is_there = self.reading.is_in_place or standing.stays
            if standing.node and is_there and not standing.is_finished:
                yield draft

    def _running_facts(self) -> Iterator[tuple[str, PodFacts]]:
        return ((draft.standing.node, draft.facts) for draft in self._running())

    def _settled_nodes(self) -> Iterator[NodeSpec]:
        for name, spec in self.nodes.items():
            if name not in self.node_facts:  # it came ready made
                yield spec
                continue
            try:
                devices = node_devices(self.node_facts[name])
                described = node_with_devices(spec, devices)
            except FieldError as error:
                self._reject(error, f'node "{name}"', self.places["node", name])
                self.lost.append(spec)
                self.why_lost.setdefault(str(error), []).append(f'node "{name}"')
                continue
            self.node_remarks.update(devices.remarks)
            yield described

    def _settled_pods(self) -> Iterator[PodDraft]:
        models: set[str] = set()
        for draft in self.pods:
            try:
                found = self._settled(draft)
                if self.reading.state == "history" or not found.standing.is_finished:
                    _add_models(models, found.spec)
                yield found
            except FieldError as error:
                self.unread.update([] if draft.standing.is_finished else ["pod"])
                name, namespace = draft.spec.name, draft.spec.namespace or "default"
                self._reject(error, f'pod "{name}"', self.places["pod", namespace, name])

    def _settled(self, draft: PodDraft) -> PodDraft:
        found = settled(draft, self.namespaces, self.priorities)
        is_now = bool(self.nodes) and self.reading.is_in_place
        ties = pod_devices(draft.facts).ties
        # A pod that runs stays where it is, whatever would tie it to its node.
        if ties != UNTIED and not (is_now and draft.facts.node):
            found = replace(found, spec=tied(found.spec, ties, is_now=is_now))
        is_history = self.reading.state == "history"
        if draft.claims and (is_history or not draft.standing.is_finished):
            found = self._with_volumes(found, is_running=is_now and bool(draft.standing.node))
        return found if found is draft else replace(found, spec=self._shared(found.spec))

    def _with_volumes(self, draft: PodDraft, *, is_running: bool) -> PodDraft:
        where = self.volumes.tied(_consumer(draft))
        remarks = [each for each in draft.placing_remarks if each != VOLUMES]
        if where.unknown:
            return replace(draft, placing_remarks=(*remarks, where.unknown))
        constraints = where.constrain(draft.spec.constraints, is_running=is_running)
        spec = replace(draft.spec, constraints=constraints)
        return replace(draft, spec=spec, placing_remarks=tuple(remarks))

    def _gangs(self, found: Present) -> Gangs:
        """Finds the gangs of the pods that take part; those that succeeded are counted, too."""
        nodes = list(self.nodes.values())
        if found.state == "history":
            return whole(
                resolve_gangs(
                    [_member(each, is_anew=True) for each in found.pods], self.groups, nodes
                )
            )
        done = (draft for draft in self.pods if draft.standing.phase == "Succeeded")
        members = [_member(draft) for draft in (*found.pods, *done)]
        return resolve_gangs(members, self.groups, nodes)

    def _in_domain(self, pod: PodSpec, gangs: Gangs) -> PodSpec:
        if pod.gang not in gangs.exists:
            return pod
        constraints = on_labelled_nodes(pod.constraints, gangs.exists[pod.gang])
        return self._shared(replace(pod, constraints=constraints))

    def _no_node_left(self, path: Path) -> InputError:
        count = sum(map(len, self.why_lost.values()))
        left = "the only node was" if count == 1 else f"all {count:,} nodes were"
        reasons = (f"{some(names)}: {why}" for why, names in self.why_lost.items())
        hint = "correct them, or take the nodes from elsewhere with --cluster"
        return InputError.at(path, f"{left} left out: {'; '.join(reasons)}", hint=hint)

    def _nothing(self, path: Path, found: Present) -> InputError:
        held = self.described + self.others
        kinds = ", ".join(f"{count} {kind}" for kind, count in held.items())
        text = f"it holds {kinds}" if kinds else "it is empty"
        if self.rejects.count:
            text = f"every one of them was left out; the first: {self.rejects.first}"
        elif found.remarks:
            text = "; ".join(_counted(found.remarks, "pod"))
        hint = next((_HINTS[kind] for kind in self.others if kind in _HINTS), _NOTHING_HINT)
        return InputError.at(path, f"no Node or Pod was found: {text}", hint=hint)

    def _notes(self, found: Present) -> Iterator[str]:
        yield from self.rejects.notes()
        yield from self.file_notes
        for kind, count in self.others.items():
            what = "honoured" if kind == "ResourceQuota" else "read"
            yield f"{kind} is not {what}: {counted(count, 'object')}"
        if self._is_one_namespace():
            (space,) = self.namespaces.seen
            yield f"all pods are in the namespace {space}, none is of a DaemonSet: {ALL_NAMESPACES}"
        yield from [f"{WANTED_NODES} ({self.wanted_nodes})"] if self.wanted_nodes else []
        yield from self.wanted_notes
        if self.suspended_jobs:
            jobs = told_jobs(self.suspended_jobs, self.suspended_pods)
            yield f"suspended, so left out: {jobs}"
        idle = self.inventory.idle_claims()
        if idle:
            yield f"{IDLE_CLAIMS}: {counted(idle, 'claim')}"
        if self.strangers:
            yield f"only .yaml, .yml and .json files are read, not {some(self.strangers)}"
        yield from _counted(self.node_remarks, "node")
        yield from map(str, self.inventory.overused)
        if self.nodes:
            yield from self._unused_keys()
        remarks = Counter(found.remarks)
        for draft in found.pods:
            remarks.update(
                draft.remarks if draft.spec.node else draft.remarks + draft.placing_remarks
            )
            is_nominated = draft.standing.is_nominated and not draft.spec.node
            remarks.update([NOMINATED] if is_nominated and found.state == "now" else [])
            is_arrival = draft.standing.node and not draft.spec.node and not self.nodes
            remarks.update([UNBOUND] if is_arrival and self.reading.state is None else [])
        yield from _counted(folded(remarks), "pod")
        is_anew = found.state == "history" or self.reading.state == "empty"
        if is_anew and (found.staying or _have_run(found.pods)):
            yield anew_note(found)

    def _is_one_namespace(self) -> bool:
        """Tells whether a live cluster shows so little that other pods must be missing."""
        is_live = any(draft.standing.is_live for draft in self.pods)
        is_narrow = len(self.namespaces.seen) == 1 and "kube-system" not in self.namespaces.seen
        has_system = any(draft.standing.stays for draft in self.pods)
        return bool(self.nodes) and is_live and is_narrow and not has_system

    def _doubts(self, found: Present) -> Iterator[tuple[PodName, Doubt]]:
        """Finds the pods that wait and ask for something that is not read."""
        for draft in found.pods:
            remarks = () if draft.spec.node else (*draft.remarks, *draft.placing_remarks)
            unread = next((each for each in remarks if each.startswith(UNREAD)), "")
            name = (draft.spec.namespace or "default", draft.spec.name.rpartition("/")[2])
            if unread:
                yield name, Doubt(unread, is_of_yes=True)
            elif TOLERATING in remarks and TAINTED in self.node_remarks:
                yield name, Doubt(TOLERATING, is_of_yes=False)

    def _gaps(self, found: Present) -> Iterator[str]:
        for noun, count in self.unread.items():
            yield f"{counted(count, noun)} could not be read"
        if self.unknown:
            kinds = ", ".join(f"{count} {kind}" for kind, count in self.unknown.items())
            yield f"objects that are not understood: {kinds}"
        waiting = [draft for draft in found.pods if not draft.spec.node]
        claiming = sum(MISSING_CLAIMS in draft.remarks for draft in waiting)
        if claiming:
            verb = "asks" if claiming == 1 else "ask"
            yield f"{counted(claiming, 'pod')} {verb} for resource claims that the dump lacks"
        unread = (SELECTING_CLAIMS, UNMODELLED_CLASS, ALL_DEVICES)
        selecting = sum(any(each.startswith(unread) for each in draft.remarks) for draft in waiting)
        if selecting:
            verb = "asks" if selecting == 1 else "ask"
            yield f"{counted(selecting, 'pod')} {verb} for devices in a way that is not read"
        lost = sum(UNKNOWN_VOLUMES in draft.placing_remarks for draft in waiting)
        if lost:
            verb = "uses" if lost == 1 else "use"
            yield f"{counted(lost, 'pod')} {verb} volumes that the dump lacks: try {DUMP}"
        roomless = sum(UNKNOWN_ROOM in draft.placing_remarks for draft in waiting)
        if roomless:
            verb = "needs" if roomless == 1 else "need"
            yield f"{counted(roomless, 'pod')} {verb} storage of which it is not known what is left"

    def _unused_keys(self) -> Iterator[str]:
        if self.reading.topology:
            domains = chosen_domains(self.reading.topology)
            for key in (*domains.rack, *domains.block, *domains.zone):
                if not any(key in node.labels for node in self.nodes.values()):
                    yield f"no node has the label {key} of the chosen topology"


def _have_run(pods: Iterable[PodDraft]) -> bool:
    return any(draft.standing.node for draft in pods)


def _less(node: NodeSpec, pod: PodSpec) -> NodeSpec:
    """Takes what a pod asks for off a node; of GPUs, whole ones."""
    extended = dict(node.extended)
    for name, amount in (*pod.constraints.extended, (PODS, 1)):
        if name in extended:
            extended[name] = max(0, extended[name] - amount)
    is_whole = pod.gpu_milli == GPU_MILLI and node.gpu_replicas == 1
    return replace(
        node,
        cpu_milli=max(0, node.cpu_milli - pod.cpu_milli),
        memory_mib=max(0, node.memory_mib - pod.memory_mib),
        gpu_count=max(0, node.gpu_count - (pod.gpu_count if is_whole else 0)),
        extended=extended,
    )


def _counted(remarks: Mapping[str, int], noun: str) -> Iterator[str]:
    return (f"{text}: {counted(count, noun)}" for text, count in remarks.items())


def _consumer(draft: PodDraft) -> Consumer:
    name = draft.spec.name.rpartition("/")[2]
    namespace = draft.spec.namespace or "default"
    return Consumer(namespace, name, draft.claims, draft.standing.is_live)


def _contest(volumes: Volumes, found: Present) -> Contest | None:
    """Finds the pods that may take volumes from each other, of those that wait."""
    waiting = [draft for draft in found.pods if draft.claims and not draft.spec.node]
    known = [d for d in waiting if not UNKNOWN_STORAGE.intersection(d.placing_remarks)]
    open_to = [d for d in known if not any(r.is_of_pod for r in d.spec.constraints.volumes)]
    return contest_of(volumes, [_consumer(draft) for draft in open_to]) if open_to else None


def _member(draft: PodDraft, *, is_anew: bool = False) -> Member | None:
    if draft.membership is None:
        return None
    standing = draft.standing
    return Member(
        membership=draft.membership,
        namespace=draft.spec.namespace,
        is_pending=not draft.spec.node and not standing.is_finished,
        is_live=standing.is_live,
        is_succeeded=standing.phase == "Succeeded" and not is_anew,
    )


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


def _named(pods: Iterable[PodSpec]) -> list[PodSpec]:
    """Names pods apart where namespaces do."""
    listed = list(pods)
    namespaces: dict[str, set[str]] = {}
    for pod in listed:
        namespaces.setdefault(pod.name, set()).add(pod.namespace or "default")
    return [
        replace(pod, name=f"{pod.namespace or 'default'}/{pod.name}")
        if len(namespaces[pod.name]) > 1
        else pod
        for pod in listed
    ]


def _add_models(models: set[str], pod: PodSpec) -> None:
    """Adds the GPU models that a pod names to those of the others; there may not be too many."""
    own = set(models_of(pod.gpu_spec))
    if len(models | own) > MAX_MODELS:
        raise FieldError(
            "", f"it names {counted(len(own), 'GPU model')}; all pods may name {MAX_MODELS} at most"
        )
    models |= own


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
