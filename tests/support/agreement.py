"""Compares the compiled core, tier by tier, with the slow reference."""

import math
from contextlib import contextmanager

import numpy as np
import pytest

from podium.policies import ClusterPolicy, demand
from podium.sim import Inflation, Setup, simulate
from podium.sim.bound import bind, is_bound
from podium.sim.orders import shuffled_rank
from podium.sim.result import slots_of
from support.reference import simulate_slowly

TIERS = ("python", "cached", "scan")


def tiers_of(policy):
    """Lists the tiers that can run a policy; a cluster policy has but one."""
    return ("scan",) if isinstance(policy, ClusterPolicy) else TIERS


def ranks_of(cluster, protocol, seed):
    """Gives the ranks of a run that nobody listed."""
    if isinstance(protocol, Inflation):
        return protocol.order.node_rank.tolist()
    return shuffled_rank(len(cluster), seed).tolist()


def assert_all_tiers_agree(
    cluster, workload, policy, protocol, *, seed=0, demand="trace", ties="order"
):
    """Runs every tier and the reference; fails on the first difference; gives the last result."""
    ranks = ranks_of(cluster, protocol, seed)
    expected = simulate_slowly(
        cluster, workload, policy, protocol, seed=seed, ranks=ranks,
        bound_slots=_bound_slots(cluster, workload), demand=demand, ties=ties,
    )  # fmt: skip
    for tier in tiers_of(policy):
        setup = Setup(seed=seed, tier=tier, ties=ties, demand=demand)
        result = simulate(cluster, workload, policy, protocol, setup)
        assert decided(result) == known(expected), tier
    return result


def _bound_slots(cluster, workload):
    """Lists the GPUs of pods that run already; which are likely is tested elsewhere."""
    settled = workload.on(cluster)
    bound = bind(cluster, settled.taken(np.flatnonzero(is_bound(settled))))
    return [list(slots_of(int(mask))) for mask in bound.slots]


@contextmanager
def small_window(pods=5):
    """Lets policies that go by the pods seen so far know of few of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demand, "WINDOW_PODS", pods)
        yield


def decided(result):
    """Lists what a run decided, in plain numbers."""
    is_inflation = isinstance(result.plan.protocol, Inflation)
    return {
        "node": result.node.tolist(),
        "slots": result.slots.tolist(),
        "start_s": _plain(result.start_s.tolist()),
        "status": result.status.tolist(),
        "holds": result.holds.tolist(),
        "changes": result.changes.tolist(),
        "changes_after": result.changes_after.tolist() if is_inflation else [],
        "decisions": result.decisions,
        "evictions": _evictions(result),
    }


def _evictions(result):
    found = result.evictions
    if found is None:
        return []
    columns = (found.at, found.node, found.slots, found.start_s, found.end_s, found.preemptor)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def known(outcome):
    """Lists what the reference decided, in the same form."""
    return {**vars(outcome), "start_s": _plain(outcome.start_s)}


def _plain(times):
    # NaN is not equal to itself.
    return [None if math.isnan(time) else time for time in times]


def same_result(one, other):
    """Tells whether two results are equal to the bit."""
    return one.digest == other.digest and np.array_equal(one.changes, other.changes)
