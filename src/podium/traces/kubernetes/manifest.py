"""Reads Kubernetes manifests, or the dump of a cluster: YAML or JSON, files or folders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from podium.errors import UsageError
from podium.model.classes import PODS
from podium.model.cluster import Cluster, NodeSpec
from podium.model.records import GPU_MILLI
from podium.model.workload import PodSpec, Workload
from podium.traces.kubernetes.account import (
    doubts_of,
    gaps_of,
    no_node_left,
    notes_on,
    nothing_found,
)
from podium.traces.kubernetes.contest import CONTESTED, Contest, contest_of
from podium.traces.kubernetes.documents import Document
from podium.traces.kubernetes.gangs import Gangs, Member, on_labelled_nodes, resolve_gangs, whole
from podium.traces.kubernetes.pile import AS_IT_IS, Pile, Reading
from podium.traces.kubernetes.pod import PodDraft
from podium.traces.kubernetes.run_times import History, RunTimes
from podium.traces.kubernetes.settlement import consumer_of, settle, shared
from podium.traces.kubernetes.state import GATED, LEFT_OUT, STATES, Present, present, timed
from podium.traces.kubernetes.volumes import UNKNOWN_ROOM, UNKNOWN_VOLUMES, Volumes
from podium.traces.notes import SUSPENDED, counted, time_notes
from podium.traces.rejects import Rejects
from podium.traces.trace import Trace

UNKNOWN_STORAGE = frozenset({UNKNOWN_VOLUMES, UNKNOWN_ROOM})


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
        pile = Pile(rejects, reading)
        pile.take_all(path, wanted, begun, on)
        settle(pile)
        _keep(key, pile, nodes)
    else:
        pile = kept[0]
    return replace(_trace(pile, path, reading.seed), on=on)


_Key = tuple[Any, ...]
_KEPT: dict[_Key, tuple[Pile, object]] = {}
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


def _keep(key: _Key | None, pile: Pile, nodes: object) -> None:
    if key is None:
        return
    _KEPT.pop(key, None)
    while len(_KEPT) >= _MOST_KEPT:
        del _KEPT[next(iter(_KEPT))]
    _KEPT[key] = (pile, nodes)


def _trace(pile: Pile, path: Path, seed: int) -> Trace:
    """Builds the trace of what was read; the seed draws run times."""
    found = present(pile.pods, pile.nodes, pile.reading.state)
    # Pods that all wait for their gates are an answer, if none could not be read.
    waiting = found.remarks[GATED] + pile.suspended_pods
    is_waiting = bool(waiting) and not pile.rejects.count
    if not pile.nodes and pile.why_lost:
        raise no_node_left(pile, path)
    if not pile.nodes and not found.pods and not is_waiting:
        raise nothing_found(pile, path, found)
    gangs = _gangs(pile, found)
    history = History()
    for draft in pile.pods:
        history.add(draft.spec, draft.standing)
    run_times = RunTimes(pile.reading.duration, history, pile.latest_s)
    names = gangs.names[: len(found.pods)]
    pods = _named(timed(found, names, run_times, seed))
    pods = [_in_domain(pile, pod, gangs) for pod in pods]
    contest = _contest(pile.volumes, found)
    notes = (*notes_on(pile, found), *gangs.notes, *run_times.notes(), *time_notes(pods))
    if contest is not None:
        notes += (f"{CONTESTED}: {counted(len(contest.consumers), 'pod')}",)
    return Trace(
        name=path.name,
        cluster=_cluster(pile, path.name, found.staying),
        workload=_workload(pile, pods, path.name, gangs) if pods else None,
        notes=notes,
        left_out={LEFT_OUT[remark]: count for remark, count in found.remarks.items()}
        | ({SUSPENDED: pile.suspended_pods} if pile.suspended_jobs else {}),
        suspended=dict(pile.suspended_jobs),
        gaps=tuple(gaps_of(pile, found)),
        doubts=dict(doubts_of(pile, found)),
        lost=tuple(pile.lost),
        of_nodes=pile.described_nodes,
        contest=contest,
    )


def _cluster(pile: Pile, name: str, staying: Sequence[PodDraft]) -> Cluster | None:
    """Builds the cluster without what pods that belong to its nodes ask for."""
    nodes = dict(pile.nodes)
    for draft in staying:
        at = draft.standing.node
        nodes[at] = _less(nodes[at], draft.spec)
    if pile.given is not None and not staying:
        return pile.given
    return Cluster.of(nodes.values(), name=name) if nodes else None


def _workload(pile: Pile, pods: list[PodSpec], name: str, gangs: Gangs) -> Workload:
    return Workload.of(pods, name=name, gangs=gangs.rules, budgets=pile.budgets)


def _gangs(pile: Pile, found: Present) -> Gangs:
    """Finds the gangs of the pods that take part; those that succeeded are counted, too."""
    nodes = list(pile.nodes.values())
    if found.state == "history":
        return whole(
            resolve_gangs([_member(each, is_anew=True) for each in found.pods], pile.groups, nodes)
        )
    done = (draft for draft in pile.pods if draft.standing.phase == "Succeeded")
    members = [_member(draft) for draft in (*found.pods, *done)]
    return resolve_gangs(members, pile.groups, nodes)


def _in_domain(pile: Pile, pod: PodSpec, gangs: Gangs) -> PodSpec:
    if pod.gang not in gangs.exists:
        return pod
    constraints = on_labelled_nodes(pod.constraints, gangs.exists[pod.gang])
    return shared(pile, replace(pod, constraints=constraints))


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


def _contest(volumes: Volumes, found: Present) -> Contest | None:
    """Finds the pods that may take volumes from each other, of those that wait."""
    waiting = [draft for draft in found.pods if draft.claims and not draft.spec.node]
    known = [d for d in waiting if not UNKNOWN_STORAGE.intersection(d.placing_remarks)]
    open_to = [d for d in known if not any(r.is_of_pod for r in d.spec.constraints.volumes)]
    return contest_of(volumes, [consumer_of(draft) for draft in open_to]) if open_to else None


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
