"""Describes the cases that policies are judged on, which any process builds alike from a few words.

Every candidate meets the same pods in the same order with the same ties: differences between
two candidates on a case are differences of the candidates.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from podium.errors import InputError, UsageError
from podium.evaluation.demand import known, placeable
from podium.evaluation.measures import FUNSEARCH, HOLDING, INFLATION, TIMED
from podium.evaluation.splits import (
    BY_SEED,
    FIRST_SEED,
    Purpose,
    Split,
    check_seed,
    selection_seed,
    validation_seed,
)
from podium.evaluation.windows import as_demand, between, check_times, drawn, version
from podium.files.excerpt import excerpt
from podium.model import Cluster, Workload
from podium.policies import Policy
from podium.sim import Inflation, Protocol, Replay, Setup
from podium.sim.engine import make_plan, usual_setup
from podium.sim.plan import Plan
from podium.traces.catalogue import EMBEDDED, LoadOptions, is_drawn, is_name, load_on, load_trace
from podium.traces.trace import Trace

LEFT_OUT = 0.1
SCALES = (0.75, 1.0, 1.25)
_BESIDE = ("names", "labels", "taints", "extended", "blocks", "zones")  # for each node
# Left out of what is written where they are as usual.
_OPTIONAL = (
    *("cluster", "since", "until", "digest", "state", "duration", "topology", "shift_s"),
    *("demand", "ties", "waiting"),
)
_SELECTION_STEP = 50  # from one round of selection seeds to the next
_PERTURBATION, _SAMPLE = 7, 8  # streams of a seed: to perturb a cluster, to draw a part of it


@dataclass(frozen=True, slots=True)
class Case:
    """Names one experiment of a training set."""

    trace: str = EMBEDDED
    nodes: int | None = None  # of an embedded trace; of others, so many nodes are drawn
    pods: int | None = None
    protocol: Literal["inflation", "replay", "funsearch"] = "inflation"
    ratio: float = 1.3
    load: float = 1.0
    seed: int = FIRST_SEED
    is_perturbed: bool = False  # other nodes than the trace's: some left out, some resized
    folder: str = ""  # of original traces
    cluster: str = ""  # another trace whose nodes the pods are placed on
    since: float = 0.0  # shares of the trace's arrivals between which pods are taken
    until: float = 1.0
    digest: str = ""  # of what files gave when the case was planned; empty: not checked
    # How the dump of a cluster is meant, as `LoadOptions` says.
    state: Literal["now", "empty", "history", ""] = ""
    duration: str = ""
    topology: str = ""  # keys, separated by commas
    waiting: str = ""  # gated,suspended: work of a dump that is tried though it waits
    # A version of the recorded arrivals instead of stretches: each is moved about so much.
    shift_s: float = 0.0
    # Unset: as is usual for the trace, as `usual_setup` says.
    demand: Literal["trace", "seen", "warm", ""] = ""
    ties: Literal["order", "profile", ""] = ""

    @property
    def name(self) -> str:
        """Returns a short name of the case."""
        kind = "perturbed " if self.is_perturbed else ""
        return f"{kind}{self.title}{self._part} {self.protocol} seed {self.seed}"

    @property
    def title(self) -> str:
        """Names trace and cluster without their folders."""
        trace, cluster = _short(self.trace), _short(self.cluster)
        return f"{trace} on {cluster}" if cluster else trace

    @property
    def family(self) -> str:
        """Names what cases that differ in size, seed or perturbation have in common."""
        return f"{self.trace} on {self.cluster}" if self.cluster else self.trace

    @property
    def _part(self) -> str:
        if self.shift_s:
            return " (version)"
        if self.since:
            return f" (last {100 - 100 * self.since:g} % of the arrivals)"
        return f" (first {100 * self.until:g} % of the arrivals)" if self.until < 1 else ""

    @property
    def is_drawn(self) -> bool:
        """Returns whether the trace is drawn afresh for every seed."""
        return is_drawn(self.trace)

    @property
    def is_own(self) -> bool:
        """Returns whether the case comes from files of the user's own."""
        return not all(is_name(each) for each in (self.trace, self.cluster) if each)

    @property
    def is_of_cluster(self) -> bool:
        """Returns whether the pods come from manifests, as those of a cluster do."""
        return not is_name(self.trace) and ".csv" not in Path(self.trace).suffixes

    @property
    def split(self) -> Split:
        """Returns how the part that is held out differs from what is trained on."""
        return Split(round(1 - (self.since or self.until), 9))

    def held_out(self) -> Case:
        """Returns the case with a validation seed, and with the arrivals that nothing trains on."""
        since = self.until if self.until < 1 else self.since
        return replace(self, seed=validation_seed(self.seed), since=since, until=1.0)

    def plan(self, policy: Policy) -> Plan:
        """Plans the run of a policy on this case; any other policy gets the same pods."""
        return self.plan_on(self.read(), policy)

    def read(self) -> Trace:
        """Loads the trace of the case; one read from files is the same for every seed.

        Pods are left out of which too little is read, and of the history of a cluster those that
        no node of it could ever take.
        """
        folder = Path(self.folder) if self.folder else None
        # The same for every seed, also where run times of pods are drawn.
        alike = LoadOptions(
            folder, state=self.state or None, duration=self.duration or None,
            topology=tuple(self.topology.split(",")) if self.topology else (),
            waiting=tuple(self.waiting.split(",")) if self.waiting else (),
        )  # fmt: skip
        by_seed = replace(alike, seed=self.seed, nodes=self.nodes, pods=self.pods)
        options = by_seed if self.is_drawn else alike
        if self.cluster:
            trace, other = load_on(self.trace, load_trace(self.cluster, alike), options)
            trace = replace(trace, cluster=other.cluster)
        else:
            trace = load_trace(self.trace, options)
        trace = known(trace)
        trace = placeable(trace) if self.state == "history" else trace
        if self.digest and self.digest != self.digest_of(trace):
            raise InputError(
                "the files were changed after the search had been planned",
                where=self.trace,
                hint="restore them, or begin a new search",
            )
        return trace

    def digest_of(self, trace: Trace) -> str:
        """Digests nodes, pods and times; of a trace that is drawn by a seed, the nodes alone."""
        found = hashlib.sha256()
        if trace.cluster is not None:
            found.update(trace.cluster.nodes.tobytes())
            _digest_beside(found, trace.cluster, _BESIDE_NODES)
        if trace.workload is not None and not self.is_drawn:
            times = (trace.workload.arrival_s, trace.workload.duration_s)
            memory = trace.workload.gpu_memory_mib
            for array in (trace.workload.pods, *times, memory):
                found.update(b"" if array is None else array.tobytes())
            _digest_beside(found, trace.workload, _BESIDE_PODS)
        return found.hexdigest()

    def plan_on(self, trace: Trace, policy: Policy) -> Plan:
        """Plans the run on a trace that is already loaded."""
        usual = usual_setup(is_of_cluster=trace.is_of_cluster, demand=self.demand, ties=self.ties)
        setup = Setup(self.seed, "python", **usual)
        return make_plan(*self.drawn_on(trace), policy, self._protocol(), setup)

    def drawn_on(self, trace: Trace) -> tuple[Cluster, Workload]:
        """Draws cluster and pods of the case from a trace that is already loaded."""
        if trace.cluster is None or trace.workload is None:
            lacking = "pods" if trace.cluster else "nodes"
            way_out = f"name {lacking} with --{'trace' if trace.cluster else 'cluster'}"
            if trace.cluster and trace.waiting:
                way_out = f"--waiting {trace.waiting} tries what waits"
            raise UsageError(
                f"{self.trace} has no {lacking}, and cannot be trained on",
                hint=way_out,
            )
        cluster = trace.cluster
        if self.nodes is not None and self.nodes < len(cluster):
            part = sampled(cluster, self.nodes, self.seed)
            # Of a cluster with few GPU nodes, a part without any teaches nothing.
            cluster = part if part.gpu_total else cluster
        if self.is_perturbed:
            cluster = perturbed(cluster, self.seed)
        return cluster, self._workload(trace.workload, cluster)

    def _workload(self, workload: Workload, cluster: Cluster) -> Workload:
        is_timed = self.protocol in TIMED
        if not is_timed and self.split == BY_SEED:
            return workload.housed(cluster)
        # Arrivals that are parted by time begin on empty nodes.
        own = as_demand(workload)
        if is_timed:
            check_times(own)
        if self.split != BY_SEED:
            own = between(own, self.since, self.until)
        if is_timed and self.shift_s:
            return version(own, self.seed, self.shift_s)
        return drawn(own, self.seed) if is_timed and not self._is_recorded else own

    @property
    def _is_recorded(self) -> bool:
        # FunSearch's own search had the recorded trace; further seeds draw from it, as elsewhere.
        return self.is_drawn or (self.protocol == FUNSEARCH and self.seed == FIRST_SEED)

    def _protocol(self) -> Protocol:
        return Inflation(self.ratio) if self.protocol == "inflation" else Replay(self.load)


@dataclass(frozen=True, slots=True)
class Stage:
    """Some of the cases in a row, and which of the candidates that were run on them go on.

    The cases of a stage are `cases[first:stop]`; of the candidates that were run on all of them,
    the best `keep` (a share from 0 to 1) are run on those of the next stage too.
    """

    first: int
    stop: int
    keep: float = 1.0


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """The cases that a candidate is judged on, in order, and how it is run."""

    cases: tuple[Case, ...]
    is_compiled: bool = False  # run as machine code whatever that costs
    purpose: Purpose = "training"
    stages: tuple[Stage, ...] = ()  # from cheap cases to dear ones; none given: all in one
    # Earlier stages only decide who goes on: who was run on all cases is judged by the last one.
    is_judged_last: bool = False

    def __post_init__(self) -> None:
        if not self.cases:
            raise UsageError(f"a {self.purpose} set has no cases", hint="give at least one")
        for case in self.cases:
            check_seed(case.seed, self.purpose)
        if not self.stages:
            object.__setattr__(self, "stages", (Stage(0, len(self.cases)),))
        _check_stages(self.stages, len(self.cases))

    @property
    def families(self) -> tuple[str, ...]:
        """Names the family of each case: its trace and protocol."""
        return tuple(f"{case.trace} {case.protocol}" for case in self.cases)

    @property
    def counted(self) -> tuple[Case, ...]:
        """Lists the cases by which those are judged that were run on all of them."""
        return self.cases[self.first_counted :]

    @property
    def first_counted(self) -> int:
        """Returns the index of the first case that counts."""
        return self.stages[-1].first if self.is_judged_last else 0

    def held_out(self) -> TrainingSet:
        """Returns what counts with validation seeds, and the arrivals that are held out."""
        moved = [case.held_out() for case in self.counted]
        return TrainingSet(tuple(dict.fromkeys(moved)), self.is_compiled, "validation")

    def selection(self) -> TrainingSet:
        """Returns what counts with the seeds on which a winner is chosen.

        Where only the last stage counts, twice as many: its cases are few, and all full size.
        """
        rounds = (0, _SELECTION_STEP) if self.is_judged_last else (0,)
        moved = [
            replace(case, seed=selection_seed(case.seed + beyond))
            for beyond in rounds
            for case in self.counted
        ]
        return TrainingSet(tuple(dict.fromkeys(moved)), self.is_compiled, "selection")

    def as_object(self) -> dict[str, Any]:
        """Describes the set as JSON types."""
        cases = [_as_object(case) for case in self.cases]
        told = {"cases": cases, "is_compiled": self.is_compiled, "purpose": self.purpose}
        if len(self.stages) == 1:
            return told
        told["stages"] = [[each.first, each.stop, each.keep] for each in self.stages]
        return {**told, "is_judged_last": True} if self.is_judged_last else told

    @classmethod
    def from_object(cls, given: Mapping[str, Any]) -> TrainingSet:
        """Reads what `as_object` wrote.

        Raises:
            ValueError: a value is none that a case can have.
        """
        cases = [Case(**case) for case in given["cases"]]
        for number, case in enumerate(cases):
            _check(case, f"cases[{number}]")
        if given["purpose"] not in get_args(Purpose):
            raise ValueError(f"purpose is {excerpt(given['purpose'])}")
        stages = tuple(Stage(*each) for each in given.get("stages", ()))
        is_judged_last = given.get("is_judged_last", False)
        if is_judged_last not in (True, False):
            raise ValueError(f"is_judged_last is {excerpt(is_judged_last)}")
        return cls(
            tuple(cases), bool(given["is_compiled"]), given["purpose"], stages, bool(is_judged_last)
        )


def _check_stages(stages: Sequence[Stage], cases: int) -> None:
    """Refuses stages that leave a case out, or let nobody go on.

    Raises:
        ValueError: the stages are none of so many cases.
    """
    ends = [0, *(stage.stop for stage in stages)]
    for stage, begin in zip(stages, ends, strict=False):
        are_whole = type(stage.first) is int and type(stage.stop) is int
        if not are_whole or stage.first != begin or stage.stop <= begin or stage.stop > cases:
            told = f"from case {excerpt(stage.first)} to {excerpt(stage.stop)} of {cases}"
            raise ValueError(f"a stage goes {told}, after one that ends at {begin}")
        if not _is_number(stage.keep, math.ulp(0), 1):
            raise ValueError(f"the share that goes on is {excerpt(stage.keep)}")
    if ends[-1] != cases or stages[-1].keep != 1:
        raise ValueError(f"the last stage ends at case {ends[-1]} of {cases}, or drops candidates")


def _is_number(value: object, least: float, most: float) -> bool:
    return type(value) in (int, float) and least <= value <= most  # type: ignore[operator]


def _is_size(value: object) -> bool:
    return value is None or (type(value) is int and value >= 1)


_TEXTS = ("trace", "folder", "cluster", "digest", "duration", "topology", "waiting")
_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_TEXTS, lambda value: isinstance(value, str)),
    "nodes": _is_size,
    "pods": _is_size,
    "protocol": lambda value: value in (INFLATION, *TIMED),
    "state": lambda value: value in ("now", "empty", "history", ""),
    "demand": lambda value: value in ("trace", "seen", "warm", ""),
    "ties": lambda value: value in ("order", "profile", ""),
    "ratio": lambda value: _is_number(value, math.ulp(0), 100),
    "load": lambda value: _is_number(value, math.ulp(0), sys.float_info.max),
    "seed": lambda value: type(value) is int and value >= 0,
    "is_perturbed": lambda value: isinstance(value, bool),
    "since": lambda value: _is_number(value, 0, 1),
    "until": lambda value: _is_number(value, 0, 1),
    "shift_s": lambda value: _is_number(value, 0, sys.float_info.max),
}


def _check(case: Case, where: str) -> None:
    """Refuses values that no case has, since others may have written them."""
    for name, is_right in _CHECKS.items():
        if not is_right(getattr(case, name)):
            raise ValueError(f"{where}.{name} is {excerpt(getattr(case, name))}")
    if case.since >= case.until:
        raise ValueError(f"{where}: no arrivals lie between {case.since:g} and {case.until:g}")


def _digest_beside(found: Any, owner: object, names: Sequence[str]) -> None:
    """Digests what stands beside the records, where there is anything."""
    for name in names:
        values = getattr(owner, name)
        if not values:
            continue
        found.update(name.encode())
        # Many pods share one object, which is written once.
        known = {id(value): value for value in values}
        written = {key: f"{value!r};".encode() for key, value in known.items()}
        for value in values:
            found.update(written[id(value)])


_BESIDE_NODES = (
    "labels",
    "taints",
    "extended",
    "blocks",
    "zones",
    "gpu_memory_mib",
    "gpu_replicas",
    "has_partitions",
)
_BESIDE_PODS = (
    *("gang_rules", "namespaces", "labels", "constraints", "bound_to", "bound_slots"),
    *("is_terminating", "gpu_specs"),
)


def _as_object(case: Case) -> dict[str, Any]:
    """Describes a case; what hardly any case says is left out where it is as usual."""
    usual = {each.name: each.default for each in fields(Case) if each.name in _OPTIONAL}
    return {
        name: value
        for name, value in asdict(case).items()
        if name not in usual or value != usual[name]
    }


def trace_cases(templates: Sequence[Case], seeds: int) -> tuple[Case, ...]:
    """Repeats cases on traces with training seeds, so many of each; traces take turns.

    Every second round is on perturbed clusters: a formula must not lean on one mix of nodes.
    Versions of a recorded trace are for its own cluster.
    """
    return tuple(
        replace(case, seed=FIRST_SEED + i, is_perturbed=i % 2 == 1 and not case.shift_s)
        for i in range(seeds)
        for case in templates
    )


def planned(cases: Sequence[Case], policy: Policy) -> Iterator[Plan]:
    """Plans the run of a policy on cases; what several of them share in files is read once."""
    read: dict[tuple[str, ...], Trace] = {}
    for case in cases:
        if case.is_drawn:
            yield case.plan(policy)
            continue
        source = (case.trace, case.cluster, case.folder, case.digest)
        if source not in read:
            read[source] = case.read()
        yield case.plan_on(read[source], policy)


def demo_cases(kinds: Iterable[str], seeds: int) -> tuple[Case, ...]:
    """Builds small cases for the kinds of experiment that a fitness needs, a number of each."""
    return tuple(_demo_case(kind, i) for kind in kinds for i in range(seeds))


def _demo_case(kind: str, index: int) -> Case:
    seed = FIRST_SEED + index
    if kind == INFLATION:
        # Every second cluster is perturbed: a formula must not lean on one mix of nodes.
        return Case(nodes=32, pods=400, seed=seed, is_perturbed=index % 2 == 1)
    if kind == HOLDING:
        # Clusters below a hundred nodes rank policies that hold pods otherwise than large ones.
        return Case(nodes=128, pods=860, seed=seed)
    if kind == FUNSEARCH:
        # The load at which few pods wait under a good policy, and some under any.
        return Case("openb:16", pods=2000, protocol="funsearch", load=7.0, seed=seed)
    # The load at which packing policies keep the queue busy two fifths of the time.
    return Case("openb:16", pods=400, protocol="replay", load=50.0, seed=seed)


def sampled(cluster: Cluster, count: int, seed: int) -> Cluster:
    """Draws so many nodes of a cluster."""
    random = np.random.default_rng([seed, _SAMPLE])
    kept = np.sort(random.permutation(len(cluster))[:count])
    return _part(cluster, cluster.nodes[kept].copy(), kept, f"{count} of {cluster.name}")


def perturbed(cluster: Cluster, seed: int) -> Cluster:
    """Leaves a tenth of the nodes out and resizes CPU and memory of the others."""
    random = np.random.default_rng([seed, _PERTURBATION])
    count = len(cluster)
    kept = np.sort(random.permutation(count)[: max(1, round(count * (1 - LEFT_OUT)))])
    nodes = cluster.nodes[kept].copy()
    for resource in ("cpu_milli", "memory_mib"):
        scale = random.choice(np.array(SCALES), len(nodes))
        total = (nodes[f"{resource}_total"] * scale).astype(np.int32)
        nodes[f"{resource}_left"] = nodes[f"{resource}_total"] = total
    return _part(cluster, nodes, kept, f"{cluster.name} perturbed")


def _part(
    cluster: Cluster, nodes: npt.NDArray[Any], kept: npt.NDArray[np.int64], name: str
) -> Cluster:
    chosen = kept.tolist()
    beside: dict[str, Any] = {each: getattr(cluster, each) for each in _BESIDE}
    picked = {
        each: tuple(values[i] for i in chosen) if values else () for each, values in beside.items()
    }
    return replace(cluster, nodes=nodes, name=name, **picked)


def _short(reference: str) -> str:
    return Path(reference).name if Path(reference).is_absolute() else reference
