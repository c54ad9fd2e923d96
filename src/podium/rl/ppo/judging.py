"""Judges policies in rounds by what is allocated in the end, and by what that costs the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from podium.policies import Policy
from podium.policies.networks.attention import attention_policy
from podium.policies.weights import Weights
from podium.rl.environment.world import World
from podium.rl.learner import Trained
from podium.sim import Setup, simulate
from podium.sim.result import Result


def policy_of_trained(trained: Trained, name: str = "ppo") -> Policy:
    """Builds the policy as it is served."""
    return attention_policy(Weights(name, trained.arrays, trained.facts))


def final_allocation(result: Result) -> float:
    """Gives the share of the cluster's GPUs that is in use when all rounds are over."""
    pods, placed = result.pods, result.is_placed
    taken = pods["gpu_count"].astype(np.int64) * pods["gpu_milli"]
    return float(taken[placed].sum() / max(1, result.plan.cluster.gpu_milli_total))


def played(policy: Policy, world: World, seed: int) -> Result:
    """Runs a policy on one seed of a world."""
    cluster, workload = world.draw(seed)
    return simulate(cluster, workload, policy, world.protocol, Setup(seed, ranks=world.ranks))


def figures_of_run(result: Result) -> dict[str, float]:
    """Lists what a run came to: GPUs allocated, pods placed, rounds waited, holds."""
    metrics = result.metrics
    return {
        "gpu_allocation": final_allocation(result),
        "placed_share": float(result.is_placed.mean()),
        "wait_rounds": float(metrics.waiting.mean_s),
        "holds_per_pod": result.held_decisions / max(1, len(result.node)),
        "most_holds": float(result.holds.max(initial=0)),
        "held_in_the_end": float(metrics.held),
    }


def figures_of(policy: Policy, world: World, seeds: Iterable[int]) -> dict[str, float]:
    """Averages the figures of a policy over seeds."""
    rows: list[Mapping[str, Any]] = [figures_of_run(played(policy, world, seed)) for seed in seeds]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
