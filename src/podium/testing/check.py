"""Runs the contract on a policy."""

from __future__ import annotations

from podium.policies import PairPolicy, Policy
from podium.testing.chooser import check_cluster
from podium.testing.pair import check_pair
from podium.testing.report import Report
from podium.testing.tiers import check_tiers


def check_policy(policy: Policy, *, seed: int = 0) -> Report:
    """Tries a policy on thousands of random states and on small runs in every tier.

    A policy that never returns is not found out: this waits for it.
    """
    if isinstance(policy, PairPolicy):
        findings = check_pair(policy, seed)
        can_compile = bool(policy.compiled)
    else:
        findings = check_cluster(policy, seed)
        can_compile = False
    if all(finding.is_ok for finding in findings):
        findings = [*findings, *check_tiers(policy, seed, can_compile=can_compile)]
    return Report(policy.name, tuple(findings))
