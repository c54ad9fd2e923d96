"""Policies: what they promise, the ones that ship, and the door to all others."""

from podium.policies.policy import (
    ClusterPolicy,
    PairPolicy,
    Policy,
    from_function,
    policy_of,
    taken_as_policy,
)
from podium.policies.registry import PolicyInfo, catalogue, load
from podium.policies.session import HOLD, ClusterSession, NodeScores, PairSession
from podium.policies.tunable import tunable

__all__ = [
    "HOLD", "ClusterPolicy", "ClusterSession", "NodeScores", "PairPolicy", "PairSession", "Policy",
    "PolicyInfo", "catalogue", "from_function", "load", "policy_of", "taken_as_policy", "tunable",
]  # fmt: skip
