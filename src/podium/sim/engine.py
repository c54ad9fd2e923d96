"""Runs a policy on a cluster and a workload."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model import Cluster, Workload
from podium.policies import ClusterPolicy, PairPolicy, Policy, load
from podium.policies.demand import Demand
from podium.sim.bound import bind_first, is_bound
from podium.sim.gangs import gangs_of
from podium.sim.orders import Order, check_order, inflate, shuffled_rank
from podium.sim.plan import Plan, Ties
from podium.sim.preparation import Preparation
from podium.sim.protocols import Inflation, Protocol, Replay
from podium.sim.result import Result
from podium.sim.tiers import Tier, choose_tier

Ranks = Literal["shuffled", "listed"]


@dataclass(frozen=True, slots=True)
class Setup:
    """Says how a run is seeded and executed; the tier never changes a result."""

    seed: int = 0
    tier: Tier = "auto"
    ranks: Ranks = "shuffled"  # the order of nodes: a seeded shuffle, or as listed
    ties: Ties = "order"
    demand: Demand = "trace"  # from which pods a policy's table is prepared

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**63:
            raise UsageError(f"seed is {self.seed}", hint="a whole number from 0 is expected")


def usual_setup(*, is_of_cluster: bool, demand: str | None, ties: str | None) -> dict[str, Any]:
    """Gives demand and ties of a setup; those that nobody chose are as the pods suggest.

    What is said of a cluster is to hold there; published experiments know the whole trace.
    """
    usual = ("seen", "profile") if is_of_cluster else ("trace", "order")
    return {"demand": demand or usual[0], "ties": ties or usual[1]}


def simulate(
    cluster: Cluster, workload: Workload, policy: Policy | str, protocol: Protocol | None = None,
    setup: Setup | None = None,
) -> Result:  # fmt: skip
    """Runs one simulation; the same inputs give the same result, to the bit.

    A policy may be given by its name or its file, as on the command line.
    """
    # Numba is imported with the execution, and only when something is run.
    from podium.sim.execution import execute

    chosen = _policy(policy)
    return execute(make_plan(cluster, workload, chosen, protocol or Replay(), setup or Setup()))


def make_plan(
    cluster: Cluster, workload: Workload, policy: Policy, protocol: Protocol, setup: Setup
) -> Plan:
    """Settles everything about a run before it begins: arrivals, ranks and tier."""
    aligned = workload.on(cluster)
    order = _order(cluster, aligned, protocol, setup)
    numbers, num_bound = _order_of(aligned, protocol, order)
    arrivals = _arrivals(aligned, protocol, numbers)
    bound = bind_first(cluster, arrivals, num_bound)
    ranks = order.node_rank if order.node_rank is not None else _ranks(cluster, setup)
    preparation = Preparation()
    prepare = functools.partial(preparation.table, trace=aligned)
    return Plan(
        cluster=cluster,
        rank_order=np.argsort(ranks).astype(np.int64),
        arrivals=arrivals,
        trace=aligned,
        policy=policy,
        protocol=protocol,
        seed=setup.seed,
        tier=choose_tier(setup.tier, policy, arrivals, protocol, cluster, prepare),
        ties=setup.ties,
        preparation=preparation,
        bound=bound,
        gangs=gangs_of(cluster, arrivals, numbers, bound),
        demand=setup.demand,
    )


def _policy(given: object) -> Policy:
    if isinstance(given, str):
        return load(given)
    if isinstance(given, PairPolicy | ClusterPolicy):
        return given
    raise UsageError(
        f"{type(given).__name__} is not a policy",
        hint="give a name, a file, or what podium.policies.load or from_function makes",
    )


def _order(cluster: Cluster, workload: Workload, protocol: Protocol, setup: Setup) -> Order:
    if not isinstance(protocol, Inflation):
        return Order(np.zeros(0, np.int64))
    if protocol.order is not None:
        check_order(protocol.order, cluster, workload)
        return protocol.order
    order = inflate(cluster, workload, protocol.ratio, setup.seed)
    if not cluster.gpu_total:
        raise UsageError(
            "the cluster has no GPUs that these pods can use, so none of them arrives",
            where=workload.name,
            hint="name nodes with GPUs (--cluster); podium compare --protocol rounds needs none",
        )
    if len(order.arrivals) == 0:
        raise UsageError(
            f"no pod arrives within {protocol.ratio} of the cluster's {cluster.gpu_total} GPUs",
            where=workload.name,
            hint="raise the ratio, or take a larger cluster",
        )
    return order


def _order_of(
    workload: Workload, protocol: Protocol, order: Order
) -> tuple[npt.NDArray[np.int64], int]:
    """Lists the pods by number: those that run already, and then those that arrive."""
    if isinstance(protocol, Replay) and not workload.has_times:
        raise UsageError(
            "the trace has no times, so it cannot be replayed",
            where=workload.name,
            hint="use --protocol inflation or --protocol rounds",
        )
    bound = np.flatnonzero(is_bound(workload))
    if isinstance(protocol, Inflation):
        return np.concatenate([bound, order.arrivals]), len(bound)
    if workload.arrival_s is None:
        arriving = np.arange(len(workload))
    else:
        arriving = np.argsort(workload.arrival_s, kind="stable").astype(np.int64)
    if len(bound):
        arriving = arriving[~np.isin(arriving, bound)]
    return np.concatenate([bound, arriving]), len(bound)


def _arrivals(workload: Workload, protocol: Protocol, numbers: npt.NDArray[np.int64]) -> Workload:
    if isinstance(protocol, Inflation) or workload.bound_to:
        return workload.taken(numbers)
    return workload.by_arrival()


def _ranks(cluster: Cluster, setup: Setup) -> npt.NDArray[np.int64]:
    if setup.ranks == "listed":
        return np.arange(len(cluster))
    return shuffled_rank(len(cluster), setup.seed)
