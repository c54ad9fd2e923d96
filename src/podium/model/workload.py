"""Describes a workload: pod records, and beside them names, times, constraints and job types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import InputError
from podium.files.excerpt import escaped
from podium.model.classes import ConstraintTables, constraint_tables
from podium.model.cluster import LIMIT, Cluster
from podium.model.constraints import MOST_TERMS, UNCONSTRAINED, Constraints, Gang
from podium.model.disruption import DisruptionBudget
from podium.model.records import ANY_MODEL, GPU_MILLI, MAX_MODELS, POD
from podium.model.shares import (
    IMPOSSIBLE,
    gpu_shares,
    gpu_spreads,
    gpus_by_kind,
    least_milli,
    usual_share,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodSpec:
    """Describes one pod before it becomes a record."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpu_count: int = 0
    gpu_milli: int = 0
    gpu_spec: str = ""  # admissible models as written, separated by |; empty = any
    arrival_s: float | None = None
    duration_s: float | None = None
    priority: int = 0
    gang: str = ""
    job_type: str = ""
    gpu_memory_mib: int = 0  # of each GPU; on a card with that memory it is a share of it
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    constraints: Constraints = UNCONSTRAINED
    node: str = ""  # where the pod runs already
    gpu_slots: tuple[int, ...] = ()  # the GPUs it runs on there, empty = not known
    is_terminating: bool = False  # runs, but is being deleted
    age_s: float = 0.0  # how long a pod that runs already has run
    never_preempts: bool = False  # preemptionPolicy: Never
    is_unready: bool = False  # runs, but its condition Ready is not true
    exit: str = ""  # how its recorded run ended, empty = it was not recorded


@dataclass(frozen=True, slots=True)
class TypicalPods:
    """Decides which shapes count as typical when fragmentation is measured.

    Names and defaults follow the `typicalPodsConfig` of the published FGD experiments.
    """

    is_involved_cpu_pods: bool = True
    pod_popularity_threshold: int = 95  # percent of pods that the typical shapes must cover
    pod_increase_step: int = 1  # shapes added at a time until they do
    gpu_res_weight: float = 0.0  # extra count of a whole-GPU pod, per GPU


@dataclass(frozen=True, slots=True, eq=False)
class Shapes:
    """Lists the distinct pods of a workload with how often each occurs."""

    pods: npt.NDArray[Any]  # (num_shapes,) of POD
    gpu_specs: tuple[str, ...]  # (num_shapes,) as written in the trace
    weights: npt.NDArray[np.float64]  # (num_shapes,) counts
    typical: TypicalPods = TypicalPods()
    # What was derived from the fields above and is asked for in every run.
    derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.pods)


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Pods in trace order; pods of one shape are equal records."""

    pods: npt.NDArray[Any]  # (num_pods,) of POD
    names: tuple[str, ...]  # (num_pods,)
    gpu_specs: tuple[str, ...]  # (num_pods,) as written
    gpu_models: tuple[str, ...]  # a bit of gpu_models is an index into it
    arrival_s: npt.NDArray[np.float64] | None = None  # (num_pods,)
    duration_s: npt.NDArray[np.float64] | None = None  # (num_pods,)
    gangs: tuple[str, ...] = ()  # a record's gang is 1 + an index into it, 0 = none
    job_types: tuple[str, ...] = ()  # (num_pods,) or empty
    typical: TypicalPods = TypicalPods()
    name: str = "workload"
    gang_rules: tuple[Gang, ...] = ()  # aligned with gangs, or empty: all pods, anywhere
    gpu_memory_mib: npt.NDArray[np.int32] | None = None  # (num_pods,) of each GPU, 0 = not asked
    namespaces: tuple[str, ...] = ()  # (num_pods,) or empty
    labels: tuple[Mapping[str, str], ...] = ()  # (num_pods,) or empty
    constraints: tuple[Constraints, ...] = ()  # (num_pods,) or empty
    bound_to: tuple[str, ...] = ()  # (num_pods,) names of nodes, "" = pending, or empty
    bound_slots: tuple[tuple[int, ...], ...] = ()  # (num_pods,) where bound pods run, or empty
    is_terminating: tuple[bool, ...] = ()  # (num_pods,) bound pods being deleted, or empty
    age_s: npt.NDArray[np.float64] | None = None  # (num_pods,) how long bound pods have run
    never_preempts: tuple[bool, ...] = ()  # (num_pods,) preemptionPolicy: Never, or empty
    budgets: tuple[DisruptionBudget, ...] = ()  # of the pods that run at once
    is_unready: tuple[bool, ...] = ()  # (num_pods,) bound pods that are not ready, or empty
    exits: tuple[str, ...] = ()  # (num_pods,) how recorded runs ended, or empty
    # What `on` works out for one cluster, where it matters there.
    gpu_shares: npt.NDArray[np.int32] | None = None  # (num_pods, num_models, 2): count and milli
    gpu_spreads: npt.NDArray[np.int32] | None = None  # (num_pods, num_models, num_ways, 2)
    gpu_asked: npt.NDArray[np.int32] | None = None  # (num_pods, 2): the same, as written
    gpu_least_milli: npt.NDArray[np.int64] | None = None  # (num_pods,) on any node that fits
    class_of: npt.NDArray[np.int32] | None = None  # (num_pods,) an index into tables.classes
    tables: ConstraintTables | None = None
    # What was derived from the fields above and is asked for in every run.
    _derived: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls, specs: Iterable[PodSpec], *, name: str = "workload", gangs: Iterable[Gang] = (),
        budgets: Iterable[DisruptionBudget] = (),
    ) -> Workload:  # fmt: skip
        """Builds a workload from pod descriptions, in their order.

        A gang without a rule needs all of its pods.
        """
        listed = list(specs)
        _check(listed, name)
        models = tuple(sorted({m for spec in listed for m in models_of(spec.gpu_spec)}))
        if len(models) > MAX_MODELS:
            raise InputError(f"more than {MAX_MODELS} GPU models", where=name)
        gang_names = tuple(dict.fromkeys(spec.gang for spec in listed if spec.gang))
        gang_number = {gang: 1 + index for index, gang in enumerate(gang_names)}
        mask = {spec.gpu_spec: model_mask(spec.gpu_spec, models) for spec in listed}
        rows = [
            (s.cpu_milli, s.memory_mib, s.gpu_count, s.gpu_milli, mask[s.gpu_spec], s.priority,
             gang_number.get(s.gang, 0))
            for s in listed
        ]  # fmt: skip
        return cls(
            pods=np.array(rows, POD),
            names=tuple(spec.name for spec in listed),
            gpu_specs=tuple(spec.gpu_spec for spec in listed),
            gpu_models=models,
            arrival_s=_times([spec.arrival_s for spec in listed]),
            duration_s=_times([spec.duration_s for spec in listed]),
            gangs=gang_names,
            job_types=_beside(listed, "job_type"),
            name=name,
            gang_rules=_gang_rules(gang_names, gangs, listed),
            gpu_memory_mib=_gpu_memory(listed),
            namespaces=_beside(listed, "namespace"),
            labels=_beside(listed, "labels"),
            constraints=_constraints(listed),
            bound_to=_beside(listed, "node"),
            bound_slots=_beside(listed, "gpu_slots"),
            is_terminating=_beside(listed, "is_terminating"),
            age_s=_ages(listed),
            never_preempts=_beside(listed, "never_preempts"),
            budgets=tuple(budgets),
            is_unready=_beside(listed, "is_unready"),
            exits=_beside(listed, "exit"),
        )

    def __len__(self) -> int:
        return len(self.pods)

    def __repr__(self) -> str:
        times = "with" if self.has_times else "without"
        return f"<Workload {escaped(self.name)}: {len(self):,} pods {times} times>"

    @property
    def has_times(self) -> bool:
        """Tells whether every pod has an arrival and a run time."""
        return self.arrival_s is not None and self.duration_s is not None

    @property
    def gpu_milli_total(self) -> int:
        """Sums the GPU demand of all pods."""
        return int(self.gpu_weight_milli.sum())

    def derive(self, name: str, compute: Callable[[], Any]) -> Any:
        """Returns what follows from the workload alone; it is computed once."""
        if name not in self._derived:
            self._derived[name] = compute()
        return self._derived[name]

    def on(self, cluster: Cluster) -> Workload:
        """Works out what the pods are on a cluster: models, shares of its GPUs, constraints."""
        known = self._derived.get("on")
        if known is None or known[0] is not cluster:
            known = self._derived["on"] = (cluster, self._settled(cluster))
        workload: Workload = known[1]
        return workload

    def _settled(self, cluster: Cluster) -> Workload:
        aligned = self.aligned(cluster.gpu_models)
        if not self.constraints and not cluster.taints and not cluster.extended:
            return aligned._shared(cluster)
        count = len(self)
        tables, class_of = constraint_tables(
            cluster,
            self.constraints or (UNCONSTRAINED,) * count,
            self.namespaces or ("",) * count,
            self.labels or ({},) * count,
            self.is_terminating,
        )
        return replace(aligned, tables=tables, class_of=class_of)._shared(cluster)

    def _shared(self, cluster: Cluster) -> Workload:
        has_kinds = bool(cluster.gpu_replicas or cluster.has_partitions)
        is_plain = self.gpu_memory_mib is None and not has_kinds
        if is_plain or not cluster.gpu_models:
            return self
        memory = (
            np.zeros(len(self), np.int32) if self.gpu_memory_mib is None else self.gpu_memory_mib
        )
        pods = self.pods_as_written()
        most = int(cluster.nodes["gpu_count"].max(initial=0))
        asked = np.stack([pods["gpu_count"], pods["gpu_milli"]], axis=1)
        shares = gpu_shares(pods, memory, cluster.gpu_kinds)
        spreads = gpu_spreads(pods, memory, cluster.gpu_kinds, most)
        open_to = self._open_to(cluster)
        class_of = np.zeros(len(self), np.int32) if self.class_of is None else self.class_of
        usable = _usable_gpus(cluster, open_to)[class_of]
        pods["gpu_count"], pods["gpu_milli"] = usual_share(pods, shares, usable)
        self._settle_bound(pods, shares, cluster)
        least = least_milli(pods, shares, cluster.nodes, open_to, class_of)
        return replace(
            self, pods=pods, gpu_shares=shares, gpu_spreads=spreads, gpu_asked=asked,
            gpu_least_milli=least,
        )  # fmt: skip

    def _settle_bound(
        self, pods: npt.NDArray[Any], shares: npt.NDArray[np.int32], cluster: Cluster
    ) -> None:
        """Gives pods that run the share that they have on their nodes."""
        kind_of = dict(zip(cluster.names, cluster.nodes["gpu_model"].tolist(), strict=True))
        for pod, node in enumerate(self.bound_to):
            kind = kind_of.get(node, -1)
            if kind >= 0 and shares[pod, kind, 0] != IMPOSSIBLE:
                pods["gpu_count"][pod], pods["gpu_milli"][pod] = shares[pod, kind]

    def _open_to(self, cluster: Cluster) -> list[npt.NDArray[np.bool_]]:
        """Tells of each class of pods, or of all, which nodes constraints leave open to it."""
        if self.tables is None:
            return [np.ones(len(cluster), np.bool_)]
        asking = [(each.node_filter, each.needs) for each in self.tables.classes]
        found = {each: self.tables.could_take(*each) for each in set(asking)}
        return [found[each] for each in asking]

    @property
    def gpu_weight_milli(self) -> npt.NDArray[np.int64]:
        """Tells what each pod counts in GPU demand and allocation, whichever node it is on."""
        return gpu_demand(self.pods) if self.gpu_least_milli is None else self.gpu_least_milli

    @property
    def full_names(self) -> tuple[str, ...]:
        """Names pods with their namespaces, if the source has any."""
        if not self.namespaces:
            return self.names
        return tuple(
            f"{space or 'default'}/{name.rpartition('/')[2]}"
            for space, name in zip(self.namespaces, self.names, strict=True)
        )

    def pods_as_written(self) -> npt.NDArray[Any]:
        """Copies the records, with the GPUs that were asked for before a cluster was known."""
        pods = self.pods.copy()
        if self.gpu_asked is not None:
            pods["gpu_count"], pods["gpu_milli"] = self.gpu_asked.T
        return pods

    def aligned(self, gpu_models: tuple[str, ...]) -> Workload:
        """Numbers the model constraints by another list of models, a cluster's."""
        if gpu_models == self.gpu_models:
            return self
        if gpu_models not in self._derived:
            self._derived[gpu_models] = self._renumbered(gpu_models)
        workload: Workload = self._derived[gpu_models]
        return workload

    def _renumbered(self, gpu_models: tuple[str, ...]) -> Workload:
        mask = {spec: model_mask(spec, gpu_models) for spec in set(self.gpu_specs)}
        pods = self.pods.copy()
        pods["gpu_models"] = [mask[spec] for spec in self.gpu_specs]
        return replace(self, pods=pods, gpu_models=gpu_models)

    def by_arrival(self) -> Workload:
        """Sorts the pods by arrival, equal ones in trace order."""
        if self.arrival_s is None or bool((np.diff(self.arrival_s) >= 0).all()):
            return self
        if "by arrival" not in self._derived:
            order = np.argsort(self.arrival_s, kind="stable").astype(np.int64)
            self._derived["by arrival"] = self.taken(order)
        workload: Workload = self._derived["by arrival"]
        return workload

    def taken(self, order: npt.NDArray[np.int64]) -> Workload:
        """Picks pods by index, in that order, with repetition allowed."""
        picked = order.tolist()
        return replace(
            self,
            pods=self.pods[order],
            names=tuple(self.names[i] for i in picked),
            gpu_specs=tuple(self.gpu_specs[i] for i in picked),
            arrival_s=None if self.arrival_s is None else self.arrival_s[order],
            duration_s=None if self.duration_s is None else self.duration_s[order],
            job_types=_taken(self.job_types, picked),
            gpu_memory_mib=None if self.gpu_memory_mib is None else self.gpu_memory_mib[order],
            namespaces=_taken(self.namespaces, picked),
            labels=_taken(self.labels, picked),
            constraints=_taken(self.constraints, picked),
            bound_to=_taken(self.bound_to, picked),
            bound_slots=_taken(self.bound_slots, picked),
            is_terminating=_taken(self.is_terminating, picked),
            age_s=None if self.age_s is None else self.age_s[order],
            never_preempts=_taken(self.never_preempts, picked),
            is_unready=_taken(self.is_unready, picked),
            exits=_taken(self.exits, picked),
            gpu_shares=None if self.gpu_shares is None else self.gpu_shares[order],
            gpu_spreads=None if self.gpu_spreads is None else self.gpu_spreads[order],
            gpu_asked=None if self.gpu_asked is None else self.gpu_asked[order],
            gpu_least_milli=None if self.gpu_least_milli is None else self.gpu_least_milli[order],
            class_of=None if self.class_of is None else self.class_of[order],
        )

    def selected_by_budgets(self) -> npt.NDArray[np.bool_]:
        """Tells of each budget which pods it selects: (num_budgets, num_pods)."""
        count = len(self)
        spaces, labels = self.namespaces or ("",) * count, self.labels or ({},) * count
        found = [
            [budget.selects(*pod) for pod in zip(spaces, labels, strict=True)]
            for budget in self.budgets
        ]
        return np.array(found, np.bool_).reshape(len(self.budgets), count)

    def gpus_asked(self) -> npt.NDArray[np.float64]:
        """Counts the GPUs that each pod asks for; half of one is 0.5."""
        asked = self.gpu_asked
        if asked is None:
            asked = np.stack([self.pods["gpu_count"], self.pods["gpu_milli"]], axis=1)
        return asked[:, 0].astype(np.float64) * asked[:, 1] / GPU_MILLI

    def housed(self, cluster: Cluster) -> Workload:
        """Leaves out pods that run on nodes which a cluster does not have."""
        known = {"", *cluster.names}
        if all(node in known for node in self.bound_to):
            return self
        kept = [pod for pod, node in enumerate(self.bound_to) if node in known]
        return self.taken(np.array(kept, np.int64))

    def shapes(self) -> Shapes:
        """Counts the distinct pods: equal records with constraints written alike."""
        if "shapes" not in self._derived:
            self._derived["shapes"] = self._count_shapes()
        shapes: Shapes = self._derived["shapes"]
        return shapes

    def _count_shapes(self) -> Shapes:
        index = self.shape_of()
        first = np.unique(index, return_index=True)[1]
        return Shapes(
            pods=self.pods[first],
            gpu_specs=tuple(self.gpu_specs[i] for i in first.tolist()),
            weights=np.bincount(index, minlength=len(first)).astype(np.float64),
            typical=self.typical,
        )

    def shape_of(self) -> npt.NDArray[np.int64]:
        """Numbers each pod's shape, in order of first appearance."""
        if "shape of" not in self._derived:
            self._derived["shape of"] = self._number_shapes()
        numbers: npt.NDArray[np.int64] = self._derived["shape of"]
        return numbers

    def _number_shapes(self) -> npt.NDArray[np.int64]:
        number: dict[tuple[bytes, str], int] = {}
        raw = self.pods.tobytes()
        size = POD.itemsize
        keys = ((raw[i * size : (i + 1) * size], spec) for i, spec in enumerate(self.gpu_specs))
        numbers = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)
        numbers.flags.writeable = False
        return numbers

    def specs(self) -> list[PodSpec]:
        """Describes every pod again, as `of` would read it."""
        return [
            PodSpec(
                name=self.names[i],
                cpu_milli=int(record["cpu_milli"]),
                memory_mib=int(record["memory_mib"]),
                gpu_count=int(record["gpu_count"]),
                gpu_milli=int(record["gpu_milli"]),
                gpu_spec=self.gpu_specs[i],
                arrival_s=None if self.arrival_s is None else float(self.arrival_s[i]),
                duration_s=None if self.duration_s is None else float(self.duration_s[i]),
                priority=int(record["priority"]),
                gang=self.gangs[record["gang"] - 1] if record["gang"] else "",
                job_type=self.job_types[i] if self.job_types else "",
                gpu_memory_mib=0 if self.gpu_memory_mib is None else int(self.gpu_memory_mib[i]),
                namespace=self.namespaces[i] if self.namespaces else "",
                labels=self.labels[i] if self.labels else {},
                constraints=self.constraints[i] if self.constraints else UNCONSTRAINED,
                node=self.bound_to[i] if self.bound_to else "",
                gpu_slots=self.bound_slots[i] if self.bound_slots else (),
                is_terminating=bool(self.is_terminating) and self.is_terminating[i],
                age_s=0.0 if self.age_s is None else float(self.age_s[i]),
                never_preempts=bool(self.never_preempts) and self.never_preempts[i],
                is_unready=bool(self.is_unready) and self.is_unready[i],
                exit=self.exits[i] if self.exits else "",
            )
            for i, record in enumerate(self.pods_as_written())
        ]


def _taken(values: tuple[Any, ...], picked: list[int]) -> tuple[Any, ...]:
    return tuple(values[i] for i in picked) if values else ()


def _beside(specs: list[PodSpec], name: str) -> tuple[Any, ...]:
    """Collects one attribute of all pods, or nothing where none has it."""
    found = tuple(getattr(spec, name) for spec in specs)
    return found if any(found) else ()


def _constraints(specs: list[PodSpec]) -> tuple[Constraints, ...]:
    if all(spec.constraints == UNCONSTRAINED for spec in specs):
        return ()
    return tuple(spec.constraints for spec in specs)


def _gpu_memory(specs: list[PodSpec]) -> npt.NDArray[np.int32] | None:
    if not any(spec.gpu_memory_mib for spec in specs):
        return None
    return np.array([spec.gpu_memory_mib for spec in specs], np.int32)


def _ages(specs: list[PodSpec]) -> npt.NDArray[np.float64] | None:
    if not any(spec.age_s for spec in specs):
        return None
    return np.array([spec.age_s for spec in specs], np.float64)


def _gang_rules(
    names: tuple[str, ...], rules: Iterable[Gang], specs: list[PodSpec]
) -> tuple[Gang, ...]:
    known = {rule.name: rule for rule in rules}
    sizes = Counter(spec.gang for spec in specs)
    return tuple(known.get(name) or Gang(name, sizes[name]) for name in names)


def models_of(gpu_spec: str) -> list[str]:
    """Splits a constraint as written into model names."""
    return [model for model in gpu_spec.split("|") if model]


def model_mask(gpu_spec: str, gpu_models: tuple[str, ...]) -> int:
    """Turns a constraint into a bit mask; models that are not listed have no bit."""
    if not models_of(gpu_spec):
        return ANY_MODEL
    allowed = set(models_of(gpu_spec))
    return sum(1 << index for index, model in enumerate(gpu_models) if model in allowed)


def _usable_gpus(
    cluster: Cluster, open_to: Sequence[npt.NDArray[np.bool_]]
) -> npt.NDArray[np.int64]:
    """Counts the GPUs of each kind, those first that are open to a class: a row for each class."""
    num_kinds = len(cluster.gpu_kinds)
    every = gpus_by_kind(cluster.nodes, num_kinds)
    # Many classes share one object.
    distinct = {id(each): each for each in open_to}
    found = {key: gpus_by_kind(cluster.nodes[each], num_kinds) for key, each in distinct.items()}
    # Of kinds that are as open, and for pods that no node admits, all GPUs decide.
    usable = np.array([found[id(each)] for each in open_to], np.int64)
    weight: npt.NDArray[np.int64] = usable * (every.sum() + 1) + every
    return weight


def gpu_demand(pods: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Computes each pod's GPU demand in milli over all its GPUs."""
    demand: npt.NDArray[np.int64] = pods["gpu_count"].astype(np.int64) * pods["gpu_milli"]
    return demand


def _times(values: list[float | None]) -> npt.NDArray[np.float64] | None:
    if not values or any(value is None for value in values):
        return None
    return np.array(values, np.float64)


def _check(specs: list[PodSpec], where: str) -> None:
    if not specs:
        raise InputError("the workload has no pods", where=where, hint="give at least one pod")
    for spec in specs:
        problem = pod_problem(spec)
        if problem:
            raise InputError(f'pod "{spec.name}": {problem}', where=where)


def pod_problem(spec: PodSpec) -> str:
    """Finds what is wrong with a pod's description; often nothing."""
    for key, amount in (("cpu_milli", spec.cpu_milli), ("memory_mib", spec.memory_mib)):
        if not 0 <= amount <= LIMIT:
            return f"{key} is {amount}; 0 to {LIMIT} are supported"
    if not 0 <= spec.gpu_count <= 16:
        return f"gpu_count is {spec.gpu_count}; 0 to 16 are supported"
    if spec.gpu_count == 0 and spec.gpu_milli != 0:
        return f"gpu_milli is {spec.gpu_milli} without a GPU; 0 is expected"
    if spec.gpu_count and not 1 <= spec.gpu_milli <= GPU_MILLI:
        return f"gpu_milli is {spec.gpu_milli}; 1 to {GPU_MILLI} per GPU is expected"
    if not 0 <= spec.gpu_memory_mib <= LIMIT:
        return f"gpu_memory_mib is {spec.gpu_memory_mib}; 0 to {LIMIT} are supported"
    if spec.gpu_memory_mib and not spec.gpu_count:
        return f"gpu_memory_mib is {spec.gpu_memory_mib} without a GPU; 0 is expected"
    if not -LIMIT <= spec.priority <= LIMIT:
        return f"priority is {spec.priority}; {-LIMIT} to {LIMIT} are supported"
    return _terms_problem(spec.constraints) or _time_problem(spec)


def _terms_problem(constraints: Constraints) -> str:
    for key in ("affinity", "anti_affinity", "spread"):
        count = len(getattr(constraints, key))
        if count > MOST_TERMS:
            return f"{key} has {count:,} terms; up to {MOST_TERMS} are supported"
    return ""


def _time_problem(spec: PodSpec) -> str:
    for key, value in (
        ("arrival_s", spec.arrival_s), ("duration_s", spec.duration_s), ("age_s", spec.age_s)
    ):  # fmt: skip
        if value is not None and not (np.isfinite(value) and value >= 0):
            return f"{key} is {value}; a time of at least 0 is expected"
    return ""
