"""Repeats the FunSearch simulator's table under its own rules, and under Podium's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podium.model import Cluster, Workload
from podium.policies import Policy, load
from podium.reports.summary import summarise
from podium.sim import Replay, Setup, simulate
from podium.sim.funsearch import FUNSEARCH_POLICIES, FunsearchResult, run_funsearch, run_policy

POLICIES = ("first_fit", "best_fit", "funsearch_4901", "funsearch_4816", "funsearch_4800")
"""The five rows of the published table, by its names."""

_OWN_NAMES = {"best_fit": "funsearch-best-fit"}
"""Podium's best-fit is the FGD experiments', another formula."""


@dataclass(frozen=True, slots=True)
class TwoViews:
    """One policy's figures under both sets of rules."""

    policy: str
    compatible: FunsearchResult  # the original's events and metrics, a compatibility mode
    true: dict[str, Any]  # Podium's summary of the same policy on the same trace


def view_twice(name: str, cluster: Cluster, workload: Workload) -> TwoViews:
    """Runs a policy under the original's rules and under Podium's, on one trace."""
    compatible = run_funsearch(cluster, workload, FUNSEARCH_POLICIES[name])
    policy = load(_OWN_NAMES.get(name, name.replace("_", "-")))
    return TwoViews(name, compatible, _replayed(policy, cluster, workload))


def view_policy(name: str, policy: Policy, cluster: Cluster, workload: Workload) -> TwoViews:
    """Runs any policy of Podium under the original's rules and under Podium's, on one trace."""
    compatible = run_policy(cluster, workload, policy)
    return TwoViews(name, compatible, _replayed(policy, cluster, workload))


def _replayed(policy: Policy, cluster: Cluster, workload: Workload) -> dict[str, Any]:
    # The original breaks ties by the order of the file.
    return summarise(simulate(cluster, workload, policy, Replay(), Setup(ranks="listed")))
