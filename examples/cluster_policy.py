"""Runs a policy that sees the whole cluster: it keeps one idle node free for large pods.

python examples/cluster_policy.py
"""

import numpy as np

from podium.policies import HOLD, ClusterPolicy, Policy, load
from podium.sim import Result, Rounds, Setup, simulate
from podium.traces import LoadOptions, load_trace

SEEDS = range(1000, 1010)


class LastNodeFree:
    """Holds other pods back from the last idle node of 8 GPUs; else takes the fullest node."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)  # for policies that draw; this one does not

    def choose(self, pod, nodes, feasible):  # noqa: ANN001, ANN201 - see docs/policies.md
        """Gives the index of a node that fits, or HOLD."""
        free = nodes["gpu_milli_left"].sum(axis=1)
        is_idle = free == 8000
        is_last = is_idle & (is_idle.sum() == 1)
        allowed = feasible if pod.gpu_count == 8 else feasible & ~is_last
        if not allowed.any():
            return HOLD
        return int(np.where(allowed, free, np.iinfo(np.int64).max).argmin())


def main() -> None:
    """Compares it with best-fit on fixed queues of 400 pods before 40 nodes."""
    reserving = ClusterPolicy("last-node-free", LastNodeFree, may_hold=True)
    for policy in (load("best-fit"), reserving):
        results = [run(policy, seed) for seed in SEEDS]
        placed = sum(int(result.is_placed.sum()) for result in results)
        held = sum(int((result.holds > 0).sum()) for result in results)
        large = [
            result.is_placed[result.plan.arrivals.pods["gpu_count"] == 8] for result in results
        ]
        found = np.concatenate(large)
        print(
            f"{policy.name:<14}  {placed} pods placed, {held} ever held; "
            f"{found.sum()} of {len(found)} pods with 8 GPUs"
        )


def run(policy: Policy, seed: int) -> Result:
    """Offers one queue in rounds."""
    trace = load_trace("openb", LoadOptions(seed=seed, nodes=40, pods=400))
    return simulate(trace.cluster, trace.workload, policy, Rounds(), Setup(seed))


if __name__ == "__main__":
    main()
