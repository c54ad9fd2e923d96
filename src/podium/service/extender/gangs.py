"""Chooses the domain in which the pods of a gang should come to stand together.

A preference with fallback, which kube-scheduler lacks: nodes of the domain get points, and pods
still go elsewhere where it is full. What a gang requires is enforced by others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.kube.pod import GroupKey, LiveGang, Request
from podium.kube.state import LiveState
from podium.model.records import ANY_MODEL, GPU_MILLI
from podium.service.extender.admission import Admission, Flags
from podium.traces.kubernetes.domains import LEVELS, Level

MOST_GANGS = 1000
"""Gangs whose domains are remembered; the one not asked for longest goes first."""

Nodes = npt.NDArray[Any]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Target:
    """Is where a gang should go: some domains of one level."""

    level: int  # 0 rack, 1 block, 2 zone
    domains: tuple[int, ...]  # numbers of that level

    def flags(self, domains: npt.NDArray[np.int32]) -> Flags:
        """Tells for each node whether it belongs there."""
        return np.isin(domains[self.level], self.domains)


@dataclass(frozen=True, slots=True)
class GangDomain:
    """Is the target of a gang in words."""

    namespace: str
    name: str
    level: Level
    domains: tuple[str, ...]

    @classmethod
    def of(cls, group: GroupKey, target: Target, names: Sequence[Sequence[str]]) -> GangDomain:
        """Names the domains of a target.

        Args:
            group: of the gang's pods.
            target: of the gang.
            names: of the domains of each level.
        """
        domains = tuple(names[target.level][number] for number in target.domains)
        return cls(*group, LEVELS[target.level], domains)


def room_for(pod: np.void, nodes: Nodes) -> Whole:
    """Counts how many pods of one shape each node could take beside what runs there."""
    limits = [
        np.maximum(nodes[f"{name}_left"], 0).astype(np.int64) // int(pod[name])
        for name in ("cpu_milli", "memory_mib")
        if pod[name] > 0
    ]
    if pod["gpu_count"] > 0:
        limits.append(_gpu_room(pod, nodes))
    if not limits:
        return np.full(len(nodes), len(nodes), np.int64)
    room: Whole = np.minimum.reduce(limits)
    return room


def _gpu_room(pod: np.void, nodes: Nodes) -> Whole:
    milli, count = int(pod["gpu_milli"]), int(pod["gpu_count"])
    free = np.maximum(nodes["gpu_milli_left"], 0).astype(np.int64) // milli
    # A pod takes another GPU for every one it asks for, which is exact for whole GPUs alone.
    is_part = milli < GPU_MILLI and count == 1
    room: Whole = free.sum(axis=1) if is_part else (free > 0).sum(axis=1) // count
    if pod["gpu_models"] != ANY_MODEL:
        models = nodes["gpu_model"].astype(np.int64)
        allowed = np.int64(pod["gpu_models"]) >> np.maximum(models, 0) & 1
        room = np.where((models >= 0) & (allowed == 1), room, 0)
    return room


def choose_target(
    room: Whole, domains: npt.NDArray[np.int32], bound_at: Whole, wanted: int
) -> Target | None:
    """Chooses where the rest of a gang goes.

    Domains that hold bound members come first; otherwise the one with the least room that takes
    all who are wanted: the narrowest level that can, and there in as few racks as possible.

    Args:
        room: how many members each node could take.
        domains: (3, num_nodes) numbers of rack, block and zone.
        bound_at: nodes of the members that are bound.
        wanted: members that are not.
    """
    nearest: Target | None = None
    for level, of in enumerate(domains):
        is_known = of >= 0
        if not is_known.any():
            continue
        rooms = np.bincount(of[is_known], room[is_known]).astype(np.int64)
        bound = np.unique(of[bound_at][of[bound_at] >= 0])
        if len(bound):
            chosen = bound
            if nearest is None and rooms[bound].sum() > 0:
                nearest = Target(level, tuple(bound.tolist()))
        else:
            enough = np.flatnonzero(rooms >= wanted)
            chosen = enough[np.argsort(rooms[enough], kind="stable")[:1]]
        if len(chosen) and rooms[chosen].sum() >= wanted:
            found = Target(level, tuple(chosen.tolist()))
            return _fewest_racks(found, room, domains, bound_at, wanted)
    return nearest


def _fewest_racks(
    found: Target, room: Whole, domains: npt.NDArray[np.int32], bound_at: Whole, wanted: int
) -> Target:
    """Narrows a wide domain down to as few of its racks as take the gang."""
    racks = domains[0]
    inside = found.flags(domains)
    if found.level == 0 or (racks[inside] < 0).any():
        return found
    rooms = np.bincount(racks[inside], room[inside]).astype(np.int64)
    is_bound = np.isin(np.arange(len(rooms)), racks[bound_at])
    order = np.lexsort((-rooms, ~is_bound))
    needed = int(np.searchsorted(np.cumsum(rooms[order]), wanted)) + 1
    return Target(0, tuple(order[:needed].tolist()))


@dataclass(slots=True)
class _Kept:
    target: Target | None
    version: int


class GangTargets:
    """Remembers the target of each gang, so that all its pods are sent to the same place."""

    def __init__(self, state: LiveState) -> None:
        self._state = state
        self._kept: OrderedDict[GroupKey, _Kept] = OrderedDict()
        self._admission = Admission()

    def target(self, request: Request, gang: LiveGang, nodes: Callable[[], Nodes]) -> Target | None:
        """Gives the target of a gang: the same as before, as long as it takes those who wait.

        Args:
            request: of one of its pods.
            gang: as it stands.
            nodes: gives the nodes without those of the gang that are assumed on them.
        """
        assert request.group is not None
        kept = self._kept.get(request.group)
        if kept is None or kept.version != self._state.version:
            self._admission.see(self._state.specs)
            admits = self._admission.flags(request.spec.constraints)
            room = np.where(admits, room_for(request.record, nodes()), 0)
            kept = self._kept[request.group] = self._renewed(gang, kept, room)
            if len(self._kept) > MOST_GANGS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(request.group)
        return kept.target

    def _renewed(self, gang: LiveGang, kept: _Kept | None, room: Whole) -> _Kept:
        state = self._state
        wanted = max(len(gang.waiting), gang.lacking, 1)
        bound_at = np.array([state.index[name] for name in gang.nodes if name in state.index], int)
        if kept is not None and kept.target is not None:
            flags = kept.target.flags(state.domains)
            if room[flags].sum() >= wanted and flags[bound_at].all():
                return _Kept(kept.target, state.version)
        return _Kept(choose_target(room, state.domains, bound_at, wanted), state.version)
