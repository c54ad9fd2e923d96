"""Finds and loads traces by reference: embedded, original OpenB files, your own files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from podium.errors import InputError, MissingError, PodiumError, UnknownName, UsageError
from podium.files.text_file import format_suffix
from podium.model import Cluster, Workload
from podium.traces.kubernetes.documents import (
    RECORDING,
    SUFFIXES,
    Document,
    Follow,
    first_text,
    looks_like_objects,
    read_documents,
)
from podium.traces.kubernetes.gpu_taints import tolerating
from podium.traces.kubernetes.manifest import read_manifests
from podium.traces.kubernetes.pile import Reading
from podium.traces.kubernetes.state import State
from podium.traces.openb.csv_file import read_csv
from podium.traces.openb.families import FAMILIES, generate_family
from podium.traces.openb.files import GPU_NODES, find_file, found_traces, openb_index, summary
from podium.traces.openb.profile import (
    Profile,
    generate_cluster,
    generate_workload,
    openb_profile,
    sixteen_nodes,
)
from podium.traces.rejects import Rejects
from podium.traces.simon.cluster_file import is_simon_config, read_simon
from podium.traces.stream import buffered, is_stream
from podium.traces.trace import Trace

EMBEDDED = "openb"
EMBEDDED_16 = "openb:16"
_DRAWN = (EMBEDDED, EMBEDDED_16, *FAMILIES)

_PREFIX = "openb:"
_WANTED = "flag --pods"
_SMALL_LIST = "16_node"
_GET_HINT = (
    "run `podium traces fetch openb`, or name the folder that holds the file in PODIUM_TRACES"
)


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Says where original files lie, how traces are drawn and read, and what bad rows do."""

    folder: Path | None = None  # the folder named by PODIUM_TRACES
    seed: int = 0
    nodes: int | None = None
    pods: int | None = None
    is_skipping_bad: bool = False
    # How the dump of a cluster is meant; other sources say so in a note.
    state: State | None = None  # None: as it is now where pods run, empty otherwise
    duration: str | None = None  # 2h, exponential:1h; None: as pods say, else as finished ones ran
    topology: tuple[str, ...] = ()  # a preset, or the label keys of rack, block and zone
    wanted: tuple[str, ...] = ()  # files of pods that are to be placed beside those of the dump
    waiting: tuple[str, ...] = ()  # gated, suspended: work of a dump that is tried though it waits
    on: Trace | None = None  # whose nodes stand in for those of manifests
    follow: Follow | None = field(default=None, compare=False)  # is told how far the reading is

    @property
    def reading(self) -> Reading:
        """Gives what concerns manifests."""
        return Reading(
            self.state, self.duration, self.topology, self.seed, self.waiting, self.follow
        )


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """Describes a trace that can be named."""

    name: str
    origin: str  # embedded or csv
    is_present: bool
    nodes: int | None  # None where only reading the file would tell
    pods: int | None
    summary: str


def load_trace(reference: str, options: LoadOptions = LoadOptions()) -> Trace:  # noqa: B008 - frozen
    """Loads a trace by name, file or folder; `-` is standard input. The only door to traces."""
    if is_drawn(reference):
        return _unread(_generated(reference, options), options)
    _refuse_sizes(reference, options)
    if reference.startswith(_PREFIX):
        return _unread(_original(reference, options), options)
    path = Path(reference)
    if is_stream(reference):
        with buffered(reference) as file:
            trace = _from_path(file.path, options)
            return replace(file.renamed(trace), name=reference)
    if not path.exists():
        raise _unknown(reference, options)
    return replace(_from_path(path, options), name=reference)


def load_on(reference: str, nodes: Trace, options: LoadOptions) -> list[Trace]:
    """Loads the pods of a trace, and gives it back with the nodes on which they are placed.

    Manifests are read as if the nodes stood among them: what pods ask for depends on what nodes
    list, and so does what of it bounds the nodes.
    """
    trace = load_trace(reference, replace(options, on=nodes))
    if trace.on is None:
        return [tolerant(trace, nodes.cluster), replace(nodes, workload=None)]
    cluster = trace.cluster and replace(trace.cluster, name=nodes.name)
    # What is to be said of nodes that were read again is said in the notes of the trace.
    notes = () if nodes.of_nodes else nodes.notes
    given = replace(nodes, cluster=cluster, workload=None, notes=notes)
    return [replace(trace, cluster=None), given]


def tolerant(trace: Trace, cluster: Cluster | None) -> Trace:
    """Lets pods of a source without tolerations onto the GPU nodes of a cluster, with a note."""
    if trace.workload is None or cluster is None:
        return trace
    workload, notes = tolerating(trace.workload, cluster)
    return replace(trace, workload=workload, notes=(*trace.notes, *notes))


def _manifests(
    path: Path, rejects: Rejects, options: LoadOptions, begun: Iterable[Document] | None = None
) -> Trace:
    """Reads manifests, and the files of wanted pods beside them."""
    with ExitStack() as stack:
        wanted = []
        for each in options.wanted:
            if not is_stream(each) and not Path(each).is_file():
                hint = "give a file of Pods, Jobs or Deployments, or - for standard input"
                raise UsageError(f'there is no file "{each}"', where=_WANTED, hint=hint)
            buffer = stack.enter_context(buffered(each)) if is_stream(each) else None
            wanted.append(buffer.path if buffer else Path(each))
        return read_manifests(path, rejects, options.reading, wanted, begun, options.on)


def _of_experiment(reading: Reading) -> Reading:
    """Reads the pods of a published experiment as they are: they have no history."""
    return replace(reading, state=None) if reading.state == "history" else reading


def _refuse_wanted(options: LoadOptions) -> None:
    if options.wanted:
        raise UsageError(
            "pods can only be added to the dump of a cluster",
            where=_WANTED,
            hint="give Kubernetes manifests: kubectl get nodes,pods -A -o yaml",
        )


def _unread(trace: Trace, options: LoadOptions) -> Trace:
    """Notes options that speak of the dump of a cluster, which this trace is not."""
    _refuse_wanted(options)
    topology = options.topology if options.on is None else ()  # that of the other nodes
    # What is no dump begins empty, and all of its pods arrive: that is its history.
    state = None if options.state == "history" else options.state
    given = {"state": state, "duration": options.duration, "topology": topology}
    notes = [f"{name} is not honoured, this is not the dump of a cluster" for name in given]
    is_given = [bool(value) for value in given.values()]
    more = [note for note, is_used in zip(notes, is_given, strict=True) if is_used]
    return replace(trace, notes=(*trace.notes, *more)) if more else trace


def is_name(reference: str) -> bool:
    """Tells whether a reference names a trace by a name of its own, and no file."""
    return reference in _DRAWN or reference.startswith(_PREFIX)


def is_drawn(reference: str) -> bool:
    """Tells whether a reference names a trace that is drawn afresh for every seed."""
    return reference in _DRAWN


def is_known(reference: str) -> bool:
    """Tells whether a trace can be found, before anything is made of it."""
    if is_drawn(reference):
        return True
    if not is_name(reference):
        return bool(reference) and Path(reference).exists()
    try:
        load_trace(reference)
    except PodiumError:
        return False
    return True


def list_traces(folder: Path | None) -> list[TraceInfo]:
    """Lists the traces that have a name, with those of the folder that are there."""
    profile = openb_profile()
    listed = [
        TraceInfo(
            EMBEDDED, "embedded", True, profile.node_total, profile.pod_total,
            "statistical profile of OpenB, any size, drawn by a seed",
        ),
        TraceInfo(
            EMBEDDED_16, "embedded", True, len(profile.named_nodes), profile.pod_total,
            "the same pods on the 16-node list, 64 GPUs",
        ),
    ]  # fmt: skip
    listed += [
        TraceInfo(each.name, "embedded", True, profile.node_total, each.pods, each.summary)
        for each in FAMILIES.values()
    ]
    return listed + list(_originals(folder, profile.node_total))


def _generated(reference: str, options: LoadOptions) -> Trace:
    if options.seed < 0:
        raise UsageError(f"the seed {options.seed} cannot be used", hint="give 0 or more")
    profile = openb_profile()
    workload = _generated_pods(reference, profile, options)
    if reference == EMBEDDED_16:
        _refuse_sizes(reference, replace(options, pods=None))
        return Trace(reference, replace(sixteen_nodes(profile), name=reference), workload)
    nodes = profile.node_total if options.nodes is None else options.nodes
    cluster = generate_cluster(profile, nodes, np.random.default_rng([options.seed, 0]))
    return Trace(reference, replace(cluster, name=reference), workload)


def _generated_pods(reference: str, profile: Profile, options: LoadOptions) -> Workload:
    """Draws pods; nodes are drawn apart, so that more of one leaves the other as it is."""
    rng = np.random.default_rng([options.seed, 1])
    family = FAMILIES.get(reference)
    usual = profile.pod_total if family is None else family.pods
    count = usual if options.pods is None else options.pods
    if family is None:
        return generate_workload(profile, count, rng)
    return generate_family(profile, family, count, rng)


def _refuse_sizes(reference: str, options: LoadOptions) -> None:
    for what, count in (("nodes", options.nodes), ("pods", options.pods)):
        if count is not None:
            raise UsageError(
                f"the number of {what} cannot be chosen for {reference}",
                hint=f"the embedded trace {EMBEDDED} has any size; other traces are as they are",
            )


def _original(reference: str, options: LoadOptions) -> Trace:
    name = reference.removeprefix(_PREFIX)
    rejects = Rejects(options.is_skipping_bad)
    trace = read_csv(_original_file(name, options.folder), rejects)
    if trace.cluster is not None:
        return replace(trace, name=reference)
    nodes = read_csv(_original_file(GPU_NODES, options.folder), Rejects(options.is_skipping_bad))
    notes = (*trace.notes, *nodes.notes)
    return Trace(reference, nodes.cluster, trace.workload, notes=notes)


def _original_file(name: str, folder: Path | None) -> Path:
    path = find_file(folder, name)
    if path is not None:
        return path
    if name == _SMALL_LIST:
        raise MissingError(
            "the 16-node list was not found, and it is not among the files that can be fetched",
            where=str(folder or ""),
            hint=f"{EMBEDDED_16} has the same nodes",
        )
    known = [file.trace for file in openb_index().files]
    if name not in known:
        raise UnknownName.among("trace", _PREFIX + name, _names(folder))
    raise MissingError(
        f"the file of {_PREFIX}{name} was not found", where=str(folder or ""), hint=_GET_HINT
    )


def _from_path(path: Path, options: LoadOptions) -> Trace:
    rejects = Rejects(options.is_skipping_bad)
    if path.is_dir():
        return _manifests(path, rejects, options)
    if not path.is_file():  # whoever holds it open may never say more
        raise InputError.at(
            path,
            "pipes and devices are not read as traces",
            hint="write what comes out into a file first, such as nodes.yaml, and name that",
        )
    suffix = format_suffix(path)
    if suffix == ".csv":
        return _unread(read_csv(path, rejects), options)
    if suffix == RECORDING:
        return _manifests(path, rejects, options)
    head = "" if suffix in SUFFIXES else first_text(path)
    if "cpu_milli," in head.partition("\n")[0]:
        return _unread(read_csv(path, rejects), options)
    if suffix in SUFFIXES or looks_like_objects(head):
        documents = read_documents(path, options.follow)
        first = next(documents, None)
        if first is not None and is_simon_config(first):
            _refuse_wanted(options)
            return read_simon(first, path, rejects, _of_experiment(options.reading))
        begun = chain([first], documents) if first is not None else documents
        return _manifests(path, rejects, options, begun)
    raise InputError.at(
        path,
        f'files that end in "{suffix}" are not read as traces',
        hint="give .csv, .yaml, .yml or .json, also with .gz, or a folder of manifests",
    )


def _originals(folder: Path | None, gpu_nodes: int) -> Iterator[TraceInfo]:
    index = openb_index()
    known = {file.trace for file in index.files}
    for file in index.files:
        nodes, pods = (file.rows, None) if file.is_nodes else (gpu_nodes, file.rows)
        is_present = find_file(folder, file.trace) is not None
        yield TraceInfo(_PREFIX + file.trace, "csv", is_present, nodes, pods, summary(file.trace))
    for name in found_traces(folder):
        if name not in known:
            yield TraceInfo(_PREFIX + name, "csv", True, None, None, summary(name))


def _names(folder: Path | None) -> list[str]:
    known = [file.trace for file in openb_index().files]
    originals = {_PREFIX + name for name in (*known, _SMALL_LIST, *found_traces(folder))}
    return sorted({*_DRAWN} | originals)


def _unknown(reference: str, options: LoadOptions) -> UsageError:
    if "/" in reference or Path(reference).suffix:
        return UsageError(
            f'there is no file or folder "{reference}"',
            hint="give a file, a folder, or one of the names that `podium traces list` shows",
        )
    return UnknownName.among("trace", reference, _names(options.folder))
