"""The small world of the Q-table: a few equal nodes, and pods that come and go all the time.

The defaults are those of roeehub/DRL-k8s-scheduler, in simulated time: an attempt to create a pod
every 0.1 ms succeeds by chance, so often that the pods ask for 0.8 * 1.1 of what there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from podium.model import Cluster, Workload
from podium.model.cluster import NodeSpec
from podium.model.records import ANY_MODEL, POD
from podium.policies import Policy
from podium.policies.networks.qtable import AIMS, Condensing
from podium.rl.configuration import Unfit, option
from podium.sim import Replay, Setup, simulate
from podium.sim.plan import Plan
from podium.sim.result import Result

WHOLE = 1000
"""What a node has of each resource: milli CPU, MiB of memory, milli of one GPU."""


@dataclass(frozen=True, slots=True)
class World:
    """The cluster and the pods that are drawn for it."""

    nodes: int = option(3, "Number of nodes, all alike.", least=1, most=1000)
    pods: int = option(300, "Pods of one episode.", least=1, most=100_000)
    size_mean: float = option(
        0.2, "Mean of what a pod asks for, as a share of a node.", least=0.001, most=1
    )
    size_deviation: float = option(0.1, "Standard deviation of it.", least=0, most=1)
    size_least: float = option(0.05, "Least share that a pod asks for.", least=0.001, most=1)
    run_time_least_s: float = option(
        0.001, "Shortest run time of a pod in seconds.", least=1e-6, most=10**6
    )
    run_time_most_s: float = option(
        0.01, "Longest run time of a pod in seconds.", least=1e-6, most=10**6
    )
    attempt_s: float = option(
        0.0001, "Seconds between two attempts to create a pod.", least=1e-6, most=10**6
    )
    load: float = option(
        0.88, "What pods ask for, as a share of what the nodes have.", least=0.001, most=100
    )

    def __post_init__(self) -> None:
        if self.run_time_most_s < self.run_time_least_s:
            raise Unfit(
                "run_time_most_s",
                self.run_time_most_s,
                f"at least run_time_least_s, {self.run_time_least_s:g}",
            )

    def cluster(self, resources: tuple[str, ...]) -> Cluster:
        """Builds the cluster; nodes have no more than what counts."""
        gpus = 1 if "gpu" in resources else 0
        return Cluster.of(
            (NodeSpec(f"node-{i + 1}", WHOLE, WHOLE, gpus, "GPU" if gpus else "")
             for i in range(self.nodes)), name=f"{self.nodes} nodes",
        )  # fmt: skip

    def workload(self, resources: tuple[str, ...], seed: int) -> Workload:
        """Draws the pods of an episode; each resource that counts is drawn by itself."""
        random, size = np.random.default_rng([seed, 1]), self.pods
        pods = np.zeros(size, POD)
        pods["gpu_models"] = ANY_MODEL
        for name, field in (("cpu", "cpu_milli"), ("memory", "memory_mib"), ("gpu", "gpu_milli")):
            if name in resources:
                pods[field] = self._sizes(random)
        pods["gpu_count"] = pods["gpu_milli"] > 0
        durations = random.uniform(self.run_time_least_s, self.run_time_most_s, size)
        arrivals = np.cumsum(random.geometric(self._chance(), size)).astype(np.float64)
        return Workload(
            pods, tuple(f"pod-{i + 1}" for i in range(size)), ("",) * size, (),
            self.attempt_s * arrivals, durations, name=f"drawn with seed {seed}",
        )  # fmt: skip

    def _sizes(self, random: np.random.Generator) -> npt.NDArray[np.int64]:
        drawn = np.round(random.normal(self.size_mean, self.size_deviation, self.pods), 2)
        return np.round(WHOLE * np.clip(drawn, self.size_least, 1.0)).astype(np.int64)

    def _chance(self) -> float:
        run_time_s = (self.run_time_least_s + self.run_time_most_s) / 2
        rate = self.load * self.nodes / (self.size_mean * run_time_s)
        return min(1.0, rate * self.attempt_s)

    @property
    def span_s(self) -> float:
        """Returns the mean time between two arrivals."""
        return self.attempt_s / self._chance()

    def simulated(self, policy: Policy, resources: tuple[str, ...], seed: int) -> Result:
        """Runs a policy on the pods of a seed."""
        cluster, workload = self.cluster(resources), self.workload(resources, seed)
        return simulate(cluster, workload, policy, Replay(), Setup(seed))


def worth_of(result: Result, aim: str, condensing: Condensing) -> float:
    """Returns the worth of the nodes' used shares, averaged over the time of a run and its nodes.

    1 is the most that there can be: all of every node in use all the time.
    """
    plan = result.plan
    placed = np.flatnonzero(result.is_placed)
    used = _used_by(plan, placed, condensing)
    ends_s = result.start_s[placed] + _run_times(plan)[placed]
    moments_s = np.concatenate([result.start_s[placed], ends_s])
    changes = np.concatenate([used, -used])
    nodes = np.concatenate([result.node[placed]] * 2)
    order = np.argsort(moments_s, kind="stable")
    # Until the last arrival: afterwards the cluster only drains.
    until_s = float(plan.arrivals.arrival_s[-1]) if plan.arrivals.arrival_s is not None else 0.0
    grid = np.zeros((len(order), len(plan.cluster), used.shape[1]))
    grid[np.arange(len(order)), nodes[order]] = changes[order]
    shares = np.clip(np.cumsum(grid, axis=0), 0.0, 1.0)
    spans_s = np.diff(np.append(np.minimum(moments_s[order], until_s), until_s))
    worths = AIMS[aim].worth(shares).mean(axis=(1, 2))
    return float((worths * spans_s).sum() / spans_s.sum())


def _used_by(
    plan: Plan, placed: npt.NDArray[np.intp], condensing: Condensing
) -> npt.NDArray[np.float64]:
    nodes, pods = plan.cluster.nodes[:1], plan.arrivals.pods[placed]
    return np.asarray(condensing.wanted(pods, nodes)[:, 0, :], np.float64)


def _run_times(plan: Plan) -> npt.NDArray[np.float64]:
    assert plan.arrivals.duration_s is not None
    return plan.arrivals.duration_s
