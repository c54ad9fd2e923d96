"""Settles what the objects of a dump have to say of each other: devices, priorities, volumes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from podium.model.cluster import NodeSpec
from podium.model.records import MAX_MODELS
from podium.model.workload import PodSpec, models_of
from podium.traces.fields import FieldError
from podium.traces.kubernetes.devices import PodFacts, node_devices, pod_devices
from podium.traces.kubernetes.devices.claims import tied
from podium.traces.kubernetes.devices.inventory import with_known_memory
from podium.traces.kubernetes.devices.values import UNTIED
from podium.traces.kubernetes.node import node_with_devices
from podium.traces.kubernetes.pile import Pile
from podium.traces.kubernetes.pod import VOLUMES, PodDraft, settled
from podium.traces.kubernetes.volumes import Consumer
from podium.traces.notes import counted


def settle(pile: Pile) -> None:
    """Settles what other objects had to say: devices, priorities, labels of namespaces."""
    facts = (draft.facts for draft in pile.pods)
    nodes = pile.inventory.settled(_settled_nodes(pile), facts, _running_facts(pile))
    for draft in _running(pile):
        if draft.claims:
            pile.volumes.attach(consumer_of(draft), draft.standing.node)
    pile.pods = list(_settled_pods(pile))
    nodes = pile.inventory.bounding(nodes)
    if any(draft.spec.gpu_memory_mib for draft in pile.pods):
        nodes = with_known_memory(nodes, pile.node_remarks)
    pile.nodes = {spec.name: spec for spec in nodes}


def _running(pile: Pile) -> Iterator[PodDraft]:
    """Gives the pods that stay where they run."""
    for draft in pile.pods:
        standing = draft.standing
        is_there = pile.reading.is_in_place or standing.stays
        if standing.node and is_there and not standing.is_finished:
            yield draft


def _running_facts(pile: Pile) -> Iterator[tuple[str, PodFacts]]:
    return ((draft.standing.node, draft.facts) for draft in _running(pile))


def _settled_nodes(pile: Pile) -> Iterator[NodeSpec]:
    for name, spec in pile.nodes.items():
        if name not in pile.node_facts:  # it came ready made
            yield spec
            continue
        try:
            devices = node_devices(pile.node_facts[name])
            described = node_with_devices(spec, devices)
        except FieldError as error:
            pile.reject(error, f'node "{name}"', pile.places["node", name])
            pile.lost.append(spec)
            pile.why_lost.setdefault(str(error), []).append(f'node "{name}"')
            continue
        pile.node_remarks.update(devices.remarks)
        yield described


def _settled_pods(pile: Pile) -> Iterator[PodDraft]:
    models: set[str] = set()
    for draft in pile.pods:
        try:
            found = _settled(pile, draft)
            if pile.reading.state == "history" or not found.standing.is_finished:
                _add_models(models, found.spec)
            yield found
        except FieldError as error:
            pile.unread.update([] if draft.standing.is_finished else ["pod"])
            name, namespace = draft.spec.name, draft.spec.namespace or "default"
            pile.reject(error, f'pod "{name}"', pile.places["pod", namespace, name])


def _settled(pile: Pile, draft: PodDraft) -> PodDraft:
    found = settled(draft, pile.namespaces, pile.priorities)
    is_now = bool(pile.nodes) and pile.reading.is_in_place
    ties = pod_devices(draft.facts).ties
    # A pod that runs stays where it is, whatever would tie it to its node.
    if ties != UNTIED and not (is_now and draft.facts.node):
        found = replace(found, spec=tied(found.spec, ties, is_now=is_now))
    is_history = pile.reading.state == "history"
    if draft.claims and (is_history or not draft.standing.is_finished):
        found = _with_volumes(pile, found, is_running=is_now and bool(draft.standing.node))
    return found if found is draft else replace(found, spec=shared(pile, found.spec))


def _with_volumes(pile: Pile, draft: PodDraft, *, is_running: bool) -> PodDraft:
    where = pile.volumes.tied(consumer_of(draft))
    remarks = [each for each in draft.placing_remarks if each != VOLUMES]
    if where.unknown:
        return replace(draft, placing_remarks=(*remarks, where.unknown))
    constraints = where.constrain(draft.spec.constraints, is_running=is_running)
    spec = replace(draft.spec, constraints=constraints)
    return replace(draft, spec=spec, placing_remarks=tuple(remarks))


def shared(pile: Pile, spec: PodSpec) -> PodSpec:
    """Lets pods with equal constraints hold one and the same value."""
    constraints = pile.constraints.setdefault(spec.constraints, spec.constraints)
    is_first = constraints is spec.constraints
    return spec if is_first else replace(spec, constraints=constraints)


def _add_models(models: set[str], pod: PodSpec) -> None:
    """Adds the GPU models that a pod names to those of the others; there may not be too many."""
    own = set(models_of(pod.gpu_spec))
    if len(models | own) > MAX_MODELS:
        raise FieldError(
            "", f"it names {counted(len(own), 'GPU model')}; all pods may name {MAX_MODELS} at most"
        )
    models |= own


def consumer_of(draft: PodDraft) -> Consumer:
    """Describes a pod as a user of claims."""
    name = draft.spec.name.rpartition("/")[2]
    namespace = draft.spec.namespace or "default"
    return Consumer(namespace, name, draft.claims, draft.standing.is_live)
