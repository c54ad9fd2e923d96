"""Describes a cluster: node records, and beside them their names, models, labels and domains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.files.excerpt import escaped
from podium.model.constraints import Taint
from podium.model.records import GPU_MILLI, MAX_MODELS, NODE_8, NODE_16

LIMIT = 2**31 - 1
"""The largest milli-CPU or MiB that a record can hold."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """Describes one node before it becomes a record."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpu_count: int = 0
    gpu_model: str = ""
    rack: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    gpu_memory_mib: int = 0  # of one GPU, 0 = unknown
    gpu_replicas: int = 1  # as how many devices one GPU is advertised (time slicing, MPS, MIG)
    taints: tuple[Taint, ...] = ()
    extended: Mapping[str, int] = field(default_factory=dict)  # pods, rdma/hca and the like
    block: str = ""  # racks belong to blocks, blocks to zones
    zone: str = ""
    has_partitions: bool = False  # MIG devices of several sizes, or other parts of its GPUs


class GpuKind(NamedTuple):
    """Is what nodes of one `gpu_model` have in common."""

    model: str
    memory_mib: int = 0
    replicas: int = 1
    has_partitions: bool = False

    @property
    def is_shared(self) -> bool:
        """Tells whether a GPU may be several devices."""
        return self.replicas > 1 or self.has_partitions


@dataclass(frozen=True, slots=True, eq=False)
class Cluster:
    """The nodes of a cluster, all empty unless a source says otherwise."""

    nodes: npt.NDArray[Any]  # (num_nodes,) of NODE_8 or NODE_16
    names: tuple[str, ...]  # (num_nodes,)
    # A record's gpu_model is an index into it. One name stands twice where GPUs of one model
    # differ in memory or in how they are shared.
    gpu_models: tuple[str, ...] = ()
    racks: tuple[str, ...] = ()  # a record's rack is an index into it, -1 unknown
    labels: tuple[Mapping[str, str], ...] = ()  # (num_nodes,) or empty
    name: str = "cluster"
    gpu_memory_mib: tuple[int, ...] = ()  # (num_models,) of one GPU, or empty: unknown
    gpu_replicas: tuple[int, ...] = ()  # (num_models,) devices a GPU, or empty: one
    taints: tuple[tuple[Taint, ...], ...] = ()  # (num_nodes,) or empty
    extended: tuple[Mapping[str, int], ...] = ()  # (num_nodes,) or empty
    blocks: tuple[str, ...] = ()  # (num_nodes,) or empty
    zones: tuple[str, ...] = ()  # (num_nodes,) or empty
    has_partitions: tuple[bool, ...] = ()  # (num_models,) or empty: none

    @classmethod
    def of(cls, specs: Iterable[NodeSpec], *, name: str = "cluster") -> Cluster:
        """Builds a cluster from node descriptions, in their order."""
        listed = list(specs)
        _check(listed, name)
        kinds = tuple(sorted({_kind(spec) for spec in listed if spec.gpu_count}))
        if len(kinds) > MAX_MODELS:
            raise InputError(f"more than {MAX_MODELS} GPU models", where=name)
        racks = tuple(dict.fromkeys(spec.rack for spec in listed if spec.rack))
        widest = max((spec.gpu_count for spec in listed), default=0)
        nodes = np.zeros(len(listed), NODE_16 if widest > 8 else NODE_8)
        kind_index = {kind: index for index, kind in enumerate(kinds)}
        rack_index = {rack: index for index, rack in enumerate(racks)}
        for record, spec in zip(nodes, listed, strict=True):
            model = kind_index[_kind(spec)] if spec.gpu_count else -1
            _fill(record, spec, model, rack_index.get(spec.rack, -1))
        return cls(
            nodes=nodes,
            names=tuple(spec.name for spec in listed),
            gpu_models=tuple(kind.model for kind in kinds),
            racks=racks,
            labels=_beside(listed, "labels"),
            name=name,
            gpu_memory_mib=_beside(kinds, "memory_mib"),
            gpu_replicas=_beside(kinds, "replicas") if any(k.replicas != 1 for k in kinds) else (),
            taints=_beside(listed, "taints"),
            extended=_beside(listed, "extended"),
            blocks=_beside(listed, "block"),
            zones=_beside(listed, "zone"),
            has_partitions=_beside(kinds, "has_partitions"),
        )

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<Cluster {escaped(self.name)}: {len(self):,} nodes, {self.gpu_total:,} GPUs>"

    @property
    def gpu_total(self) -> int:
        """Counts the GPUs."""
        return int(self.nodes["gpu_count"].sum(dtype=np.int64))

    @property
    def gpu_milli_total(self) -> int:
        """Sums GPU capacity, 1000 a GPU."""
        return GPU_MILLI * self.gpu_total

    @property
    def cpu_milli_total(self) -> int:
        """Sums CPU capacity."""
        return int(self.nodes["cpu_milli_total"].sum(dtype=np.int64))

    @property
    def memory_mib_total(self) -> int:
        """Sums memory capacity."""
        return int(self.nodes["memory_mib_total"].sum(dtype=np.int64))

    @property
    def gpu_kinds(self) -> tuple[GpuKind, ...]:
        """Lists what a record's gpu_model stands for."""
        memory = self.gpu_memory_mib or (0,) * len(self.gpu_models)
        replicas = self.gpu_replicas or (1,) * len(self.gpu_models)
        partitions = self.has_partitions or (False,) * len(self.gpu_models)
        return tuple(map(GpuKind, self.gpu_models, memory, replicas, partitions))

    def specs(self) -> list[NodeSpec]:
        """Describes every node again, as `of` would read it."""
        kinds = self.gpu_kinds
        return [self._spec(index, kinds) for index in range(len(self))]

    def _spec(self, index: int, kinds: tuple[GpuKind, ...]) -> NodeSpec:
        record = self.nodes[index]
        kind = kinds[record["gpu_model"]] if record["gpu_count"] else GpuKind("")
        return NodeSpec(
            name=self.names[index],
            cpu_milli=int(record["cpu_milli_total"]),
            memory_mib=int(record["memory_mib_total"]),
            gpu_count=int(record["gpu_count"]),
            gpu_model=kind.model,
            rack=self.racks[record["rack"]] if record["rack"] >= 0 else "",
            labels=self.labels[index] if self.labels else {},
            gpu_memory_mib=kind.memory_mib,
            gpu_replicas=kind.replicas,
            taints=self.taints[index] if self.taints else (),
            extended=self.extended[index] if self.extended else {},
            block=self.blocks[index] if self.blocks else "",
            zone=self.zones[index] if self.zones else "",
            has_partitions=kind.has_partitions,
        )


def _kind(spec: NodeSpec) -> GpuKind:
    return GpuKind(spec.gpu_model, spec.gpu_memory_mib, spec.gpu_replicas, spec.has_partitions)


def _beside(values: Sequence[Any], name: str) -> tuple[Any, ...]:
    """Collects one attribute of all, or nothing where none has it."""
    found = tuple(getattr(value, name) for value in values)
    return found if any(found) else ()


def _fill(record: Any, spec: NodeSpec, model: int, rack: int) -> None:
    record["cpu_milli_left"] = record["cpu_milli_total"] = spec.cpu_milli
    record["memory_mib_left"] = record["memory_mib_total"] = spec.memory_mib
    record["gpu_count"] = spec.gpu_count
    record["gpu_model"] = model
    record["rack"] = rack
    record["gpu_milli_left"][: spec.gpu_count] = GPU_MILLI


def _check(specs: list[NodeSpec], where: str) -> None:
    if not specs:
        raise InputError("the cluster has no nodes", where=where, hint="give at least one node")
    seen: set[str] = set()
    for spec in specs:
        if spec.name in seen:
            raise InputError(f'two nodes are named "{spec.name}"', where=where)
        seen.add(spec.name)
        problem = node_problem(spec)
        if problem:
            raise InputError(f'node "{spec.name}": {problem}', where=where)


def node_problem(spec: NodeSpec) -> str:
    """Finds what is wrong with a node's description; often nothing."""
    if not spec.name:
        return "name is empty; every node needs one"
    for key, amount in (("cpu_milli", spec.cpu_milli), ("memory_mib", spec.memory_mib)):
        if not 0 <= amount <= LIMIT:
            return f"{key} is {amount}; 0 to {LIMIT} are supported"
    if not 0 <= spec.gpu_count <= 16:
        return f"gpu_count is {spec.gpu_count}; 0 to 16 are supported"
    if not 0 <= spec.gpu_memory_mib <= LIMIT:
        return f"gpu_memory_mib is {spec.gpu_memory_mib}; 0 to {LIMIT} are supported"
    if not 1 <= spec.gpu_replicas <= GPU_MILLI:
        return f"gpu_replicas is {spec.gpu_replicas}; 1 to {GPU_MILLI} are supported"
    if "|" in spec.gpu_model:
        # A pod's constraint separates models by | and so could never name this one.
        return f'gpu_model is "{spec.gpu_model}"; a node has one model, without "|"'
    return ""
