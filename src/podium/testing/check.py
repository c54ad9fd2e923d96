"""Runs the contract on a policy."""

from __future__ import annotations

from podium.policies import PairPolicy, Policy
from podium.testing.attempt import STEP_S, Attempt
from podium.testing.chooser import check_cluster
from podium.testing.pair import check_pair
from podium.testing.report import Finding, Report
from podium.testing.tiers import check_tiers


def check_policy(policy: Policy, *, seed: int = 0, step_s: float = STEP_S) -> Report:
    """Tries a policy on thousands of random states and on small runs in every tier.

    Args:
        policy: to be tried.
        seed: of the random states.
        step_s: how long one call may take; a policy that takes longer counts as endless. It goes
            on in a thread of its own, if it is compiled, which the process does not wait for.
    """
    attempt = Attempt(step_s)
    return Report(policy.name, tuple(attempt.findings(lambda: _findings(policy, seed, attempt))))


def _findings(policy: Policy, seed: int, attempt: Attempt) -> list[Finding]:
    if isinstance(policy, PairPolicy):
        findings = check_pair(policy, seed, attempt)
        can_compile = bool(policy.compiled)
    else:
        findings = check_cluster(policy, seed, attempt)
        can_compile = False
    if all(finding.is_ok for finding in findings):
        findings = [*findings, *check_tiers(policy, seed, attempt, can_compile=can_compile)]
    return findings
