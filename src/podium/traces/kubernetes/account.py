"""Says what a dump holds that is not read, and what nobody can know from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from podium.errors import InputError
from podium.traces.kubernetes.contest import PodName
from podium.traces.kubernetes.devices.claims import (
    ALL_DEVICES,
    CLAIMS_DUMP,
    IDLE_CLAIMS,
    MISSING_CLAIMS,
    SELECTING_CLAIMS,
    TAINTED,
    TOLERATING,
    UNMODELLED_CLASS,
)
from podium.traces.kubernetes.devices.inventory import folded
from podium.traces.kubernetes.domains import chosen_domains
from podium.traces.kubernetes.pile import NOTHING_HINT, WANTED_NODES, Pile
from podium.traces.kubernetes.pod import PodDraft
from podium.traces.kubernetes.state import NOMINATED, UNBOUND, Present, anew_note
from podium.traces.kubernetes.volumes import DUMP, UNKNOWN_ROOM, UNKNOWN_VOLUMES
from podium.traces.notes import counted, some, told_jobs
from podium.traces.trace import Doubt

ALL_NAMESPACES = "kubectl get shows those of all namespaces with -A"
_HINTS = {
    "KubeSchedulerConfiguration": "that is a scheduler's configuration: give it as a policy",
}
UNREAD = (
    MISSING_CLAIMS, SELECTING_CLAIMS, UNMODELLED_CLASS, ALL_DEVICES, UNKNOWN_VOLUMES, UNKNOWN_ROOM
)  # fmt: skip
"""How remarks begin on what a pod asks for that keeps it off nodes, nobody knows which."""


def no_node_left(pile: Pile, path: Path) -> InputError:
    """Says why each node was left out."""
    count = sum(map(len, pile.why_lost.values()))
    left = "the only node was" if count == 1 else f"all {count:,} nodes were"
    reasons = (f"{some(names)}: {why}" for why, names in pile.why_lost.items())
    hint = "correct them, or take the nodes from elsewhere with --cluster"
    return InputError.at(path, f"{left} left out: {'; '.join(reasons)}", hint=hint)


def nothing_found(pile: Pile, path: Path, found: Present) -> InputError:
    """Says what there is in place of nodes and pods."""
    held = pile.described + pile.others
    kinds = ", ".join(f"{count} {kind}" for kind, count in held.items())
    text = f"it holds {kinds}" if kinds else "it is empty"
    if pile.rejects.count:
        text = f"every one of them was left out; the first: {pile.rejects.first}"
    elif found.remarks:
        text = "; ".join(_counted(found.remarks, "pod"))
    hint = next((_HINTS[kind] for kind in pile.others if kind in _HINTS), NOTHING_HINT)
    return InputError.at(path, f"no Node or Pod was found: {text}", hint=hint)


def notes_on(pile: Pile, found: Present) -> Iterator[str]:
    """Lists what is left out, and what is not honoured."""
    yield from pile.rejects.notes()
    yield from pile.file_notes
    for kind, count in pile.others.items():
        what = "honoured" if kind == "ResourceQuota" else "read"
        yield f"{kind} is not {what}: {counted(count, 'object')}"
    if _is_one_namespace(pile):
        (space,) = pile.namespaces.seen
        yield f"all pods are in the namespace {space}, none is of a DaemonSet: {ALL_NAMESPACES}"
    yield from [f"{WANTED_NODES} ({pile.wanted_nodes})"] if pile.wanted_nodes else []
    yield from pile.wanted_notes
    if pile.suspended_jobs:
        jobs = told_jobs(pile.suspended_jobs, pile.suspended_pods)
        yield f"suspended, so left out: {jobs}"
    idle = pile.inventory.idle_claims()
    if idle:
        yield f"{IDLE_CLAIMS}: {counted(idle, 'claim')}"
    if pile.strangers:
        yield f"only .yaml, .yml and .json files are read, not {some(pile.strangers)}"
    yield from _counted(pile.node_remarks, "node")
    yield from map(str, pile.inventory.overused)
    if pile.nodes:
        yield from _unused_keys(pile)
    remarks = Counter(found.remarks)
    for draft in found.pods:
        remarks.update(draft.remarks if draft.spec.node else draft.remarks + draft.placing_remarks)
        is_nominated = draft.standing.is_nominated and not draft.spec.node
        remarks.update([NOMINATED] if is_nominated and found.state == "now" else [])
        is_arrival = draft.standing.node and not draft.spec.node and not pile.nodes
        remarks.update([UNBOUND] if is_arrival and pile.reading.state is None else [])
    yield from _counted(folded(remarks), "pod")
    is_anew = found.state == "history" or pile.reading.state == "empty"
    if is_anew and (found.staying or _have_run(found.pods)):
        yield anew_note(found)


def _is_one_namespace(pile: Pile) -> bool:
    """Tells whether a live cluster shows so little that other pods must be missing."""
    is_live = any(draft.standing.is_live for draft in pile.pods)
    is_narrow = len(pile.namespaces.seen) == 1 and "kube-system" not in pile.namespaces.seen
    has_system = any(draft.standing.stays for draft in pile.pods)
    return bool(pile.nodes) and is_live and is_narrow and not has_system


def doubts_of(pile: Pile, found: Present) -> Iterator[tuple[PodName, Doubt]]:
    """Finds the pods that wait and ask for something that is not read."""
    for draft in found.pods:
        # Of a history, what pods ask for counts; whatever their volumes were, they had them.
        placing = () if found.state == "history" else draft.placing_remarks
        remarks = () if draft.spec.node else (*draft.remarks, *placing)
        unread = next((each for each in remarks if each.startswith(UNREAD)), "")
        name = (draft.spec.namespace or "default", draft.spec.name.rpartition("/")[2])
        if unread:
            yield name, Doubt(unread, is_of_yes=True)
        elif TOLERATING in remarks and TAINTED in pile.node_remarks:
            yield name, Doubt(TOLERATING, is_of_yes=False)


def gaps_of(pile: Pile, found: Present) -> Iterator[str]:
    """Lists what nobody knows, so that no answer is a yes."""
    for noun, count in pile.unread.items():
        yield f"{counted(count, noun)} could not be read"
    if pile.unknown:
        kinds = ", ".join(f"{count} {kind}" for kind, count in pile.unknown.items())
        yield f"objects that are not understood: {kinds}"
    waiting = [draft for draft in found.pods if not draft.spec.node]
    claiming = sum(MISSING_CLAIMS in draft.remarks for draft in waiting)
    if claiming:
        verb = "asks" if claiming == 1 else "ask"
        lacking = f"{verb} for resource claims that the dump lacks"
        yield f"{counted(claiming, 'pod')} {lacking}: try {CLAIMS_DUMP}"
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


def _unused_keys(pile: Pile) -> Iterator[str]:
    if pile.reading.topology:
        domains = chosen_domains(pile.reading.topology)
        for key in (*domains.rack, *domains.block, *domains.zone):
            if not any(key in node.labels for node in pile.nodes.values()):
                yield f"no node has the label {key} of the chosen topology"


def _have_run(pods: Iterable[PodDraft]) -> bool:
    return any(draft.standing.node for draft in pods)


def _counted(remarks: Mapping[str, int], noun: str) -> Iterator[str]:
    return (f"{text}: {counted(count, noun)}" for text, count in remarks.items())
