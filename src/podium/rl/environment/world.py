"""Draws the runs that are learned on: a cluster and pods by a seed, and how the pods come."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from podium.errors import UnknownName, UsageError
from podium.evaluation.cases import Case
from podium.evaluation.splits import FIRST_SEED, HELD_OUT, SELECTION, check_seed
from podium.files.excerpt import excerpt
from podium.model import Cluster, Workload
from podium.policies import ClusterPolicy
from podium.sim.bound import is_bound
from podium.sim.engine import Ranks, Setup, make_plan
from podium.sim.orders import inflate
from podium.sim.plan import Plan
from podium.sim.protocols import Inflation, Protocol, Replay, Rounds
from podium.traces.catalogue import EMBEDDED, EMBEDDED_16, is_name
from podium.traces.openb.families import pods_asking
from podium.traces.openb.profile import openb_profile

Draw = Callable[[int], tuple[Cluster, Workload]]
GpuChoice = Literal["best", "worst", "random"]

TRAINING_SEEDS = range(FIRST_SEED, SELECTION.start)
"""What may be learned on; the seeds behind them choose and validate."""

DEMAND = 1.15
"""GPUs that are asked for in rounds, as a share of what there is: more than can be placed."""

MOST_DEMAND = 1000
MOST_NODES = 100_000
"""As in trainings: far more would fill the memory before the first pod is placed."""

_ROUNDS = Rounds()
_SPARE = 1.2  # of a family drawn by the mean pod, so that each draw asks for enough


@dataclass(frozen=True, slots=True)
class World:
    """Plans a run for every seed; the same seed gives the same run."""

    draw: Draw  # a cluster and a workload, by seed
    protocol: Protocol = _ROUNDS
    seeds: Sequence[int] = TRAINING_SEEDS
    ranks: Ranks = "shuffled"
    gpu_choice: GpuChoice = "best"  # which GPU a pod with a part of one gets, if nobody says it

    def __post_init__(self) -> None:
        if not len(self.seeds):
            raise UsageError("a world has no seeds", hint="give at least one")
        for seed in itertools.chain(*HELD_OUT):
            if seed in self.seeds:
                check_seed(seed, "training")
        if self.protocol.preemption:
            raise UsageError(
                "runs with preemption cannot be learned on", where="argument protocol",
                hint="leave preemption out; simulate runs with it",
            )  # fmt: skip

    @classmethod
    def of(cls, cluster: Cluster, workload: Workload, **settings: Any) -> World:
        """Makes a world of one cluster and one workload; a seed still orders and ranks."""
        return cls(lambda _seed: (cluster, workload), **settings)

    @classmethod
    def of_trace(
        cls, trace: str = EMBEDDED, *, demand: float | None = None, **settings: Any
    ) -> World:
        """Makes a world of a trace: an embedded one, OpenB files, a dump or a recording.

        What `Case` takes is taken here too: nodes, pods, is_perturbed, folder, cluster, state,
        duration, topology, waiting; so is what a world takes. Rounds get pods that ask for
        `demand` times the GPUs of the cluster, 1.15 if nobody says so; 0 leaves the pods of the
        trace as they are.
        """
        for name in settings:
            if name not in (*_OWN, *_OF_CASES):
                raise UnknownName.among("setting of a world", name, (*_OWN, *_OF_CASES))
        _check_size(settings.get("nodes"), demand)
        if not all(map(is_name, filter(None, (trace, settings.get("cluster"))))):
            settings.setdefault("state", "history")  # of a dump, what runs and ran arrives, too
        own = {name: settings.pop(name) for name in _OWN if name in settings}
        protocol = own.setdefault("protocol", _ROUNDS)
        case = Case(trace, protocol="replay" if _is_replay(protocol) else "inflation", **settings)
        if isinstance(protocol, Inflation):
            demand = protocol.ratio if demand is None else demand
        elif isinstance(protocol, Replay):
            demand = 0.0 if demand is None else demand
        return cls(_Drawn(case, DEMAND if demand is None else demand, protocol), **own)

    def plan(self, seed: int) -> Plan:
        """Plans the run of one seed."""
        cluster, workload = self.draw(seed)
        nobody = ClusterPolicy("stepped", _nobody, may_hold=True, gpu_choice=self.gpu_choice)
        return make_plan(cluster, workload, nobody, self.protocol, Setup(seed, ranks=self.ranks))


_OWN = ("protocol", "seeds", "ranks", "gpu_choice")
_OF_CASES = (
    *("nodes", "pods", "is_perturbed", "folder", "cluster", "state", "duration", "topology"),
    *("waiting", "since", "until"),
)


def _check_size(nodes: Any, demand: Any) -> None:
    if demand is not None and not (_is_number(demand) and 0 <= demand <= MOST_DEMAND):
        raise UsageError(
            f"demand is {excerpt(demand)}", where="argument demand",
            hint=f"a number from 0 to {MOST_DEMAND} is expected",
        )  # fmt: skip
    is_whole = isinstance(nodes, int | np.integer)
    if nodes is not None and not (is_whole and 1 <= nodes <= MOST_NODES):
        raise UsageError(
            f"nodes is {excerpt(nodes)}", where="argument nodes",
            hint=f"a whole number from 1 to {MOST_NODES:,} is expected",
        )  # fmt: skip


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float | np.number) and not isinstance(given, bool)


def _is_replay(protocol: Protocol) -> bool:
    return isinstance(protocol, Replay)


def _nobody(_seed: int) -> Any:
    raise UsageError(
        "a run of a world has no policy that could choose",
        hint="step it with podium.rl.Placement",
    )


class _Drawn:
    """Draws clusters and workloads of a case; what files hold is read once."""

    def __init__(self, case: Case, demand: float, protocol: Protocol) -> None:
        self._case = replace(case, pods=_pods_of(case, demand))
        self._demand, self._protocol = demand, protocol
        self._read = None if case.is_drawn else case.read()

    def __call__(self, seed: int) -> tuple[Cluster, Workload]:
        case = replace(self._case, seed=seed)
        cluster, workload = case.drawn_on(self._read or case.read())
        if self._demand and isinstance(self._protocol, Rounds):
            workload = _asking(cluster, workload, self._demand, seed)
        return cluster, workload


def _pods_of(case: Case, demand: float) -> int | None:
    """Counts the pods to draw, so that all that are needed are different."""
    if case.pods is not None or not demand or not case.is_drawn:
        return case.pods
    profile = openb_profile()
    named = len(profile.named_nodes) if case.trace == EMBEDDED_16 else profile.node_total
    gpus = profile.node_counts @ profile.nodes["gpu_count"] / profile.node_total
    return pods_asking(profile, case.trace, _SPARE * demand * gpus * (case.nodes or named))


def _asking(cluster: Cluster, workload: Workload, demand: float, seed: int) -> Workload:
    """Takes pods that ask for a share of the cluster's GPUs, beside those that run already."""
    bound = np.flatnonzero(is_bound(workload))
    arriving = inflate(cluster, workload, demand, seed).arrivals
    taken = workload.taken(np.concatenate([bound, arriving]))
    if not workload.bound_to:
        return taken
    # A pod may come again as a copy of one that runs.
    nobody = ("",) * len(arriving)
    nowhere: tuple[tuple[int, ...], ...] = ((),) * len(arriving)
    slots = (*taken.bound_slots[: len(bound)], *nowhere) if taken.bound_slots else ()
    return replace(taken, bound_to=(*taken.bound_to[: len(bound)], *nobody), bound_slots=slots)
