"""Keeps the records of nodes that come and go, each at a place of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.kube.pod import LivePod, by_name, shares_of
from podium.model.cluster import LIMIT, GpuKind, NodeSpec
from podium.model.fit import held_gpus, roomy_share
from podium.model.records import GPU_MILLI, MAX_MODELS, NODE_8, NODE_16, SHARE_CLASS
from podium.traces.kubernetes.domains import LEVELS

_FIRST_ROOM = 64


class NodeTable:
    """Gives every node a record at an index that it keeps for as long as it is there.

    A node that leaves leaves a gap: a record without resources and the name "", which the next new
    node fills. Nothing that asks for CPU, memory or a GPU fits on a gap, and no index leads to one.
    GPU kinds are numbered as `Cluster` numbers them: in order, among the nodes that are there.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self.index: dict[str, int] = {}
        self.specs: list[NodeSpec | None] = []
        self.gpu_kinds: tuple[GpuKind, ...] = ()
        self.gpu_models: tuple[str, ...] = ()
        self.domain_names: tuple[list[str], ...] = tuple([] for _ in LEVELS)
        self._numbers: tuple[dict[str, int], ...] = tuple({} for _ in LEVELS)
        self._records: npt.NDArray[Any] = np.zeros(_FIRST_ROOM, NODE_8)
        self._domains = np.full((len(LEVELS), _FIRST_ROOM), -1, np.int32)
        self._kinds: Counter[GpuKind] = Counter()  # nodes of each
        self._kind_numbers: dict[GpuKind, int] = {}
        self._gaps: list[int] = []
        self._sorts: Counter[tuple[object, ...]] = Counter()  # of devices: nodes of each
        self.soft_taints = 0  # nodes that have one

    def __len__(self) -> int:
        return len(self.index)

    @property
    def nodes(self) -> npt.NDArray[Any]:
        """Gives the records, gaps included; growth puts another array in its place."""
        return self._records[: len(self.names)]

    @property
    def domains(self) -> npt.NDArray[np.int32]:
        """Numbers rack, block and zone of every node, -1 unknown: (3, len(names))."""
        return self._domains[:, : len(self.names)]

    def spec(self, name: str) -> NodeSpec | None:
        """Gives the description of a node, None where there is no such node."""
        at = self.index.get(name)
        return None if at is None else self.specs[at]

    def put(self, spec: NodeSpec) -> bool:
        """Adds a node, or describes it anew; its record is to be filled after this.

        Tells whether other objects may now be read otherwise: the devices of the node are of a
        sort that no other node has, or were the last of their sort.
        """
        at = self.index.get(spec.name)
        if at is None:
            at = self._place(spec.name)
        old, self.specs[at] = self.specs[at], spec
        is_news = self._sorted(old, spec)
        self._count(old, -1)
        self._count(spec, 1)
        if spec.gpu_count > self._records["gpu_milli_left"].shape[1]:
            self._widen()
        for level, name in enumerate(LEVELS):
            self._domains[level, at] = self._domain(level, getattr(spec, name))
        return is_news

    def remove(self, name: str) -> bool:
        """Leaves a gap where a node was; tells whether its devices were the last of their sort."""
        at = self.index.pop(name, None)
        if at is None:
            return False
        old, self.specs[at], self.names[at] = self.specs[at], None, ""
        is_news = self._sorted(old, None)
        self._count(old, -1)
        self._records[at] = np.zeros((), self._records.dtype)
        self._records["gpu_model"][at] = self._records["rack"][at] = -1
        self._domains[:, at] = -1
        self._gaps.append(at)
        return is_news

    def fill(self, name: str, taken: Taken) -> None:
        """Writes the record of a node: what it has, less what its pods take."""
        at = self.index[name]
        spec = self.specs[at]
        if spec is None:
            raise RuntimeError(f"{name} is a gap")
        slots = self._records["gpu_milli_left"].shape[1]
        left = [*taken.gpu_milli_left, *[0] * (slots - spec.gpu_count)]
        kind = self._kind_numbers.get(kind_of(spec), -1) if spec.gpu_count else -1
        self._records[at] = (
            max(spec.cpu_milli - taken.cpu_milli, -LIMIT), spec.cpu_milli,
            max(spec.memory_mib - taken.memory_mib, -LIMIT), spec.memory_mib,
            spec.gpu_count, kind, self._domains[0, at], taken.gpu_classes, left,
        )  # fmt: skip

    def _place(self, name: str) -> int:
        if self._gaps:
            at = self._gaps.pop()
            self.names[at] = name
        else:
            at = len(self.names)
            self.names.append(name)
            self.specs.append(None)
            if at == len(self._records):
                self._records = np.concatenate([self._records, np.zeros_like(self._records)])
                self._domains = np.concatenate([self._domains, np.full_like(self._domains, -1)], 1)
        self.index[name] = at
        return at

    def _sorted(self, old: NodeSpec | None, new: NodeSpec | None) -> bool:
        before, after = _sort_of(old), _sort_of(new)
        if before == after:
            return False
        is_news = after is not None and after not in self._sorts
        if after is not None:
            self._sorts[after] += 1
        if before is not None:
            self._sorts[before] -= 1
            if not self._sorts[before]:
                del self._sorts[before]
                is_news = True
        return is_news

    def _count(self, spec: NodeSpec | None, nodes: int) -> None:
        if spec is None:
            return
        self.soft_taints += nodes * any(each.effect == "PreferNoSchedule" for each in spec.taints)
        if not spec.gpu_count:
            return
        kind = kind_of(spec)
        self._kinds[kind] += nodes
        if self._kinds[kind] <= 0:
            del self._kinds[kind]
        if (kind in self._kinds) != (kind in self.gpu_kinds):
            self._renumber()

    def _renumber(self) -> None:
        known = self.gpu_kinds
        # Kinds beyond those that a pod's mask can name are -1: pods that name no model fit.
        self.gpu_kinds = tuple(sorted(self._kinds))[:MAX_MODELS]
        self.gpu_models = tuple(kind.model for kind in self.gpu_kinds)
        self._kind_numbers = {kind: new for new, kind in enumerate(self.gpu_kinds)}
        table = np.array([*(self._kind_numbers.get(kind, -1) for kind in known), -1], np.int32)
        self._records["gpu_model"] = table[self._records["gpu_model"]]

    def _widen(self) -> None:
        wide = np.zeros(len(self._records), NODE_16)
        for name in NODE_8.names or ():
            if name != "gpu_milli_left":
                wide[name] = self._records[name]
        wide["gpu_milli_left"][:, : self._records["gpu_milli_left"].shape[1]] = self._records[
            "gpu_milli_left"
        ]
        self._records = wide

    def _domain(self, level: int, name: str) -> int:
        if not name:
            return -1
        numbers = self._numbers[level]
        if name not in numbers:
            numbers[name] = len(numbers)
            self.domain_names[level].append(name)
        return numbers[name]


def _sort_of(spec: NodeSpec | None) -> tuple[object, ...] | None:
    return None if spec is None else (kind_of(spec), frozenset(spec.extended))


def kind_of(spec: NodeSpec) -> GpuKind:
    """Gives the kind of a node's GPUs."""
    return GpuKind(spec.gpu_model, spec.gpu_memory_mib, spec.gpu_replicas, spec.has_partitions)


class Taken:
    """Adds up what the pods of one node take."""

    __slots__ = ("cpu_milli", "gpu_classes", "gpu_milli_left", "memory_mib")

    def __init__(self, gpu_count: int) -> None:
        self.cpu_milli = 0
        self.memory_mib = 0
        self.gpu_classes = 0
        self.gpu_milli_left = [GPU_MILLI] * gpu_count

    def take(self, slots: Iterable[int], milli: int, gpu_class: int) -> None:
        """Takes a part of some GPUs."""
        for slot in slots:
            self.gpu_milli_left[slot] -= milli
        self.gpu_classes |= gpu_class


def taken_by(pods: Sequence[LivePod], spec: NodeSpec) -> Taken:
    """Adds up what pods take of their node, and says of each which GPUs it holds.

    Who is known to be on a GPU comes first; the others share what is left, in order of their
    names, as at the beginning of a simulation (`podium.sim.bound`).
    """
    taken, kind = Taken(spec.gpu_count), kind_of(spec)
    for pod in pods:
        taken.cpu_milli += pod.spec.cpu_milli
        taken.memory_mib += pod.spec.memory_mib
    on_gpus = [pod for pod in pods if pod.spec.gpu_count]
    for pod in sorted(on_gpus, key=lambda pod: (not pod.spec.gpu_slots, by_name(pod))):
        ways = shares_of(pod.spec, kind)
        share = roomy_share(ways, taken.gpu_milli_left)
        held = held_gpus(*share, taken.gpu_milli_left, pod.spec.gpu_slots)
        pod.slots, pod.gpu_milli = held
        taken.take(*held, SHARE_CLASS if held.gpu_milli < GPU_MILLI else 1 << share[0])
    return taken
