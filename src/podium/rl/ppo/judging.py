"""Judges policies in rounds by what is allocated in the end, and by what that costs the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from podium.policies import Policy
from podium.policies.networks import attention
from podium.policies.weights import Weights
from podium.rl.environment.world import World
from podium.rl.learner import Trained
from podium.sim import Setup, simulate
from podium.sim.result import Result


def policy_of_trained(trained: Trained, name: str = "ppo") -> Policy:
    """Builds the policy as it is served."""
    return attention.make(Weights(name, trained.arrays, trained.facts))


def played(policy: Policy, world: World, seed: int) -> Result:
    """Runs a policy on one seed of a world."""
    cluster, workload = world.draw(seed)
    return simulate(cluster, workload, policy, world.protocol, Setup(seed, ranks=world.ranks))


def figures_of_run(result: Result) -> dict[str, float]:
    """Lists what a run came to: GPUs allocated, pods placed, rounds waited, holds."""
    metrics = result.metrics
    return {
        "gpu_allocation": metrics.gpu_allocation,
        "placed_share": float(result.is_placed.mean()),
        "wait_rounds": float(result.start_s[result.is_placed].mean()) if metrics.placed else 0.0,
        "holds_per_pod": result.held_decisions / max(1, len(result.node)),
        "most_holds": float(result.holds.max(initial=0)),
        "held_in_the_end": float(metrics.held),
    }


def mean_figures(runs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Averages the figures of runs."""
    rows = list(runs)
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
