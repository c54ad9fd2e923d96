"""Describes the cases that policies are judged on, which any process builds alike from a few words.

Every candidate meets the same pods in the same order with the same ties: differences between
two candidates on a case are differences of the candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.evaluation.measures import HOLDING, INFLATION
from podium.evaluation.splits import FIRST_SEED, Purpose, check_seed, validation_seed
from podium.model import Cluster
from podium.policies import Policy
from podium.sim import Inflation, Protocol, Replay, Setup
from podium.sim.engine import make_plan
from podium.sim.plan import Plan
from podium.traces.catalogue import EMBEDDED, EMBEDDED_16, LoadOptions, load_trace
from podium.traces.trace import Trace

LEFT_OUT = 0.1
SCALES = (0.75, 1.0, 1.25)
_BESIDE = ("names", "labels", "taints", "extended", "blocks", "zones")  # for each node
_LATER = ("state", "duration", "topology")  # unknown to runs that were begun before
_PERTURBATION, _SAMPLE = 7, 8  # streams of a seed: to perturb a cluster, to draw a part of it


@dataclass(frozen=True, slots=True)
class Case:
    """Names one experiment of a training set."""

    trace: str = EMBEDDED
    nodes: int | None = None  # of an embedded trace; of others, so many nodes are drawn
    pods: int | None = None
    protocol: Literal["inflation", "replay"] = "inflation"
    ratio: float = 1.3
    load: float = 1.0
    seed: int = FIRST_SEED
    is_perturbed: bool = False  # other nodes than the trace's: some left out, some resized
    folder: str = ""  # of original traces
    # How the dump of a cluster is meant, as `LoadOptions` says.
    state: Literal["now", "empty", ""] = ""
    duration: str = ""
    topology: str = ""  # keys, separated by commas

    @property
    def name(self) -> str:
        """Returns a short name of the case."""
        kind = "perturbed " if self.is_perturbed else ""
        trace = Path(self.trace).name if Path(self.trace).is_absolute() else self.trace
        return f"{kind}{trace} {self.protocol} seed {self.seed}"

    def plan(self, policy: Policy) -> Plan:
        """Plans the run of a policy on this case; any other policy gets the same pods."""
        return self.plan_on(self.read(), policy)

    def read(self) -> Trace:
        """Loads the trace of the case; one read from files is the same for every seed."""
        folder = Path(self.folder) if self.folder else None
        options = LoadOptions(
            folder, self.seed, state=self.state or None, duration=self.duration or None,
            topology=tuple(self.topology.split(",")) if self.topology else (),
        )  # fmt: skip
        if self.trace in (EMBEDDED, EMBEDDED_16):
            options = replace(options, nodes=self.nodes, pods=self.pods)
        return load_trace(self.trace, options)

    def plan_on(self, trace: Trace, policy: Policy) -> Plan:
        """Plans the run on a trace that is already loaded."""
        if trace.cluster is None or trace.workload is None:
            raise UsageError(f"{self.trace} has no nodes or no pods, and cannot be trained on")
        cluster = trace.cluster
        if self.nodes is not None and self.nodes < len(cluster):
            cluster = sampled(cluster, self.nodes, self.seed)
        if self.is_perturbed:
            cluster = perturbed(cluster, self.seed)
        setup = Setup(self.seed, "python")
        workload = trace.workload.housed(cluster)
        return make_plan(cluster, workload, policy, self._protocol(), setup)

    def _protocol(self) -> Protocol:
        return Inflation(self.ratio) if self.protocol == "inflation" else Replay(self.load)


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """The cases that a candidate is judged on, in order, and how it is run."""

    cases: tuple[Case, ...]
    is_compiled: bool = False  # run as machine code whatever that costs
    purpose: Purpose = "training"

    def __post_init__(self) -> None:
        if not self.cases:
            raise UsageError(f"a {self.purpose} set has no cases", hint="give at least one")
        for case in self.cases:
            check_seed(case.seed, self.purpose)

    @property
    def families(self) -> tuple[str, ...]:
        """Names the family of each case: its trace and protocol."""
        return tuple(f"{case.trace} {case.protocol}" for case in self.cases)

    def held_out(self) -> TrainingSet:
        """Returns the same cases with validation seeds, numbered as the training seeds are."""
        moved = [replace(case, seed=validation_seed(case.seed)) for case in self.cases]
        return TrainingSet(tuple(dict.fromkeys(moved)), self.is_compiled, "validation")

    def as_object(self) -> dict[str, Any]:
        """Describes the set as JSON types."""
        cases = [_as_object(case) for case in self.cases]
        return {"cases": cases, "is_compiled": self.is_compiled, "purpose": self.purpose}

    @classmethod
    def from_object(cls, given: Mapping[str, Any]) -> TrainingSet:
        """Reads what `as_object` wrote."""
        known = {each.name for each in fields(Case)}
        cases = [Case(**{k: v for k, v in case.items() if k in known}) for case in given["cases"]]
        return cls(tuple(cases), bool(given["is_compiled"]), given["purpose"])


def _as_object(case: Case) -> dict[str, Any]:
    """Describes a case; what was added to cases later is left out where nobody says it."""
    unsaid = [name for name in _LATER if not getattr(case, name)]
    return {name: value for name, value in asdict(case).items() if name not in unsaid}


def trace_cases(
    traces: Sequence[str], seeds: int, nodes: int | None = None, folder: str = ""
) -> tuple[Case, ...]:
    """Builds cases of the FGD experiment on traces, a number of each; traces take turns.

    Every second round is on perturbed clusters: a formula must not lean on one mix of nodes.
    """
    return tuple(
        Case(
            trace,
            nodes,
            seed=FIRST_SEED + i,
            folder=folder,
            is_perturbed=i % 2 == 1,
        )
        for i in range(seeds)
        for trace in traces
    )


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
