"""Compares policies on drawn clusters by the rules of a live cluster.

    python bench/drawn_clusters.py [--seeds 2000-2019] [--demand seen] [--check] [POLICY ...]

Each seed draws one cluster and one workload of every family: node types with their CPU and memory
for each GPU, the agents that run on all of them, shapes of pods, their shares, models that they ask
for, and the order in which they come. Equal scores are settled by kube-scheduler's packing profile
and then by a draw, and tables know only the pods seen so far. The figure is the share of GPUs
allocated in percent: once no more pods come, or over time where they also end (churn). Differences
are paired, over kube-packing: the same kube-scheduler profile without Podium.

`--check` fails unless the first policy is ahead over all, and behind in no family beyond chance.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from podium.model import Cluster, Workload
from podium.model.cluster import NodeSpec
from podium.model.constraints import UNCONSTRAINED, Constraints
from podium.model.records import GPU_MILLI
from podium.model.workload import PodSpec
from podium.policies import Policy, load
from podium.settings import Extender
from podium.sim import Replay, Result, Rounds, Setup, simulate

RIVAL = "kube-packing"
POLICIES = (Extender().policy, "usable-gpu", "fed-gpu", "fgd", "best-fit", "mlp", "kube-default")
MODELS = ("A100", "H100", "L4", "T4")
POOL = "pool"
SIGMA_95 = 1.96
LONGEST_S, FOREVER_S = 4000.0, 1e9
MOST_OF_AGENTS = 0.08
"""The largest share of each node's CPU that agents take, such as those of DaemonSets."""
LARGE_GPUS = 4
COPIES = 4
"""Times that the pods of one filling come where pods also end."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """Says what clusters and pods of one kind are drawn from."""

    name: str
    cpu_only: float  # share of shapes that ask for no GPU
    parts: float  # share of shapes that ask for a part of one
    bound: float = 0.12  # share of GPU shapes that name models
    node_gpus: tuple[int, ...] = (1, 2, 4, 8, 8)
    node_cpus: tuple[int, ...] = (6, 8, 12, 16, 24, 32)  # for each GPU
    pod_gpus: tuple[int, ...] = (1, 1, 1, 2, 4, 8)
    pod_cpus: tuple[int, ...] = (1, 2, 4, 6, 8, 10, 12, 16)  # for each GPU
    has_ends: bool = False
    is_large_last: bool = False  # pods of 4 GPUs and more come once nobody expects them
    pooled: float = 0.0  # share of shapes that select one pool of nodes


FAMILIES = (
    Family("whole", cpu_only=0.15, parts=0.0),
    Family("models", cpu_only=0.15, parts=0.1, bound=0.6),
    Family("parts", cpu_only=0.15, parts=0.45),
    Family("cpu-tight", 0.35, 0.15, node_cpus=(4, 6, 8), pod_cpus=(2, 4, 6, 8, 10)),
    Family("large", 0.15, 0.05, node_gpus=(4, 8, 8), pod_gpus=(1, 2, 4, 4, 8, 8)),
    Family("inference", cpu_only=0.2, parts=0.6),
    Family("churn", cpu_only=0.2, parts=0.2, has_ends=True),
    Family("late", 0.2, 0.05, node_gpus=(4, 8, 8), pod_gpus=(1, 1, 2, 4, 8, 8), is_large_last=True),
    Family("pools", cpu_only=0.15, parts=0.15, pooled=0.6),
)
NAMES = [family.name for family in FAMILIES]


def draw_nodes(family: Family, rng: np.random.Generator) -> list[NodeSpec]:
    """Draws nodes of one to four types, and some without GPUs, in any order."""
    count, types = int(rng.integers(12, 120)), int(rng.integers(1, 5))
    kinds = [
        (model, int(rng.choice(family.node_gpus)), int(rng.choice(family.node_cpus)),
         int(rng.choice((32, 64, 128))))
        for model in MODELS[:types]
    ]  # fmt: skip
    shares = rng.dirichlet(np.ones(types))
    pools = int(rng.integers(2, 5)) if family.pooled else 1
    nodes = []
    for number in range(count):
        model, gpus, cpus, gib = kinds[int(rng.choice(types, p=shares))]
        cpu_milli, memory_mib = gpus * cpus * 1000, gpus * gib * 1024
        labels = {POOL: str(rng.integers(pools))} if family.pooled else {}
        nodes.append(NodeSpec(f"gpu-{number}", cpu_milli, memory_mib, gpus, model, labels=labels))
    nodes += [
        NodeSpec(f"cpu-{number}", int(rng.choice((16, 32, 64))) * 1000, 128 * 1024)
        for number in range(int(rng.integers(0, count // 4 + 1)))
    ]
    return [nodes[place] for place in rng.permutation(len(nodes))]


def draw_agents(nodes: Sequence[NodeSpec], rng: np.random.Generator) -> list[PodSpec]:
    """Draws what runs on every node from the first to the last."""
    share = rng.uniform(0, MOST_OF_AGENTS)
    return [
        PodSpec(
            f"agent-{node.name}",
            int(share * node.cpu_milli),
            int(share * rng.uniform(0.3, 1) * node.memory_mib),
            node=node.name,
        )
        for node in nodes
    ]


def draw_shape(family: Family, nodes: Sequence[NodeSpec], rng: np.random.Generator) -> PodSpec:
    """Draws what pods of one shape ask for."""
    kind = rng.random()
    if kind < family.cpu_only:
        cpu_milli, gib = int(rng.choice((500, 1000, 2000, 4000, 8000))), int(rng.choice((1, 4, 16)))
        return PodSpec("pod", cpu_milli, gib * 1024)
    gpus, milli = 1, int(rng.choice((100, 200, 250, 300, 400, 500, 600, 700, 750)))
    if kind >= family.cpu_only + family.parts:
        most = max(node.gpu_count for node in nodes)
        gpus = int(rng.choice([each for each in family.pod_gpus if each <= most] or [1]))
        milli = GPU_MILLI
    cpu_milli = max(100, int(rng.choice(family.pod_cpus)) * gpus * milli)
    memory_mib = max(1024, int(rng.choice((4, 8, 16, 32))) * 1024 * gpus * milli // GPU_MILLI)
    models = sorted({node.gpu_model for node in nodes if node.gpu_count})
    named = rng.choice(models, int(rng.integers(1, len(models) + 1)), replace=False)
    spec = "|".join(sorted(named)) if rng.random() < family.bound else ""
    constraints = UNCONSTRAINED
    if family.pooled and rng.random() < family.pooled:
        pools = sorted({node.labels[POOL] for node in nodes if node.labels})
        constraints = Constraints(node_labels=((POOL, str(rng.choice(pools))),))
    return PodSpec("pod", cpu_milli, memory_mib, gpus, milli, spec, constraints=constraints)


def draw(family: Family, seed: int) -> tuple[Cluster, Workload]:
    """Draws a cluster, and pods that ask for 90 to 130 percent of its GPUs."""
    rng = np.random.default_rng([seed, NAMES.index(family.name)])
    nodes = draw_nodes(family, rng)
    cluster = Cluster.of(nodes)
    shapes = [draw_shape(family, nodes, rng) for _ in range(int(rng.integers(4, 25)))]
    if not any(shape.gpu_count for shape in shapes):
        shapes.append(PodSpec("pod", 4000, 8192, 1, GPU_MILLI))
    shares = rng.dirichlet(np.full(len(shapes), 0.7))
    pods: list[PodSpec] = []
    wanted = rng.uniform(0.9, 1.3) * cluster.gpu_milli_total
    while wanted > 0:
        shape = shapes[int(rng.choice(len(shapes), p=shares))]
        pods.append(replace(shape, name=f"pod-{len(pods)}"))
        wanted -= shape.gpu_count * shape.gpu_milli
    if family.is_large_last:
        pods.sort(key=lambda pod: pod.gpu_count >= LARGE_GPUS)
    agents = draw_agents(nodes, np.random.default_rng([seed, NAMES.index(family.name), 1]))
    if family.has_ends:
        pods = with_ends(pods, cluster, rng)
        agents = [replace(each, arrival_s=0.0, duration_s=FOREVER_S) for each in agents]
    return cluster, Workload.of([*agents, *pods])


def with_ends(pods: Sequence[PodSpec], cluster: Cluster, rng: np.random.Generator) -> list[PodSpec]:
    """Lets pods come again and again, and end, so that 80 to 110 percent of the GPUs are wanted."""
    chosen = [pods[int(place)] for place in rng.integers(len(pods), size=COPIES * len(pods))]
    durations = np.minimum(600 * rng.lognormal(0, 1.2, len(chosen)), LONGEST_S)
    work = sum(
        pod.gpu_count * pod.gpu_milli * duration
        for pod, duration in zip(chosen, durations, strict=True)
    )
    step_s = work / (cluster.gpu_milli_total * rng.uniform(0.8, 1.1)) / len(chosen)
    return [
        replace(pod, name=f"pod-{i}", arrival_s=i * step_s, duration_s=float(durations[i]))
        for i, pod in enumerate(chosen)
    ]


def allocated_percent(result: Result, cluster: Cluster) -> float:
    """Measures the GPUs allocated: at the end, or over the time in which pods come."""
    arrivals = result.plan.arrivals
    gpu_milli = arrivals.pods["gpu_count"].astype(float) * arrivals.pods["gpu_milli"]
    if arrivals.arrival_s is None or arrivals.duration_s is None:
        return float(100 * gpu_milli[result.is_placed].sum() / cluster.gpu_milli_total)
    end_s, has_started = float(arrivals.arrival_s[-1]), ~np.isnan(result.start_s)
    ran_s = np.clip(
        np.minimum(result.start_s + arrivals.duration_s, end_s) - result.start_s, 0, None
    )
    used = (gpu_milli * ran_s)[has_started].sum()
    return float(100 * used / (cluster.gpu_milli_total * end_s))


def measure(family: Family, seeds: range, policies: Sequence[Policy], demand: str) -> Floats:
    """Runs all policies on the clusters of a family: (num_policies, num_seeds)."""
    found = np.zeros((len(policies), len(seeds)))
    for column, seed in enumerate(seeds):
        cluster, workload = draw(family, seed)
        protocol = Replay() if family.has_ends else Rounds(max_rounds=1)
        for row, policy in enumerate(policies):
            setup = Setup(seed=seed, ties="profile", demand=demand)  # type: ignore[arg-type]
            result = simulate(cluster, workload, policy, protocol, setup)
            found[row, column] = allocated_percent(result, cluster)
    return found


def interval(differences: Floats) -> str:
    """Writes the mean of differences with its 95 % interval."""
    half = SIGMA_95 * differences.std(ddof=1) / len(differences) ** 0.5
    return f"{differences.mean():+.2f} ± {half:.2f}"


def is_behind(differences: Floats) -> bool:
    """Tells whether a policy is behind beyond chance."""
    half = SIGMA_95 * float(differences.std(ddof=1)) / len(differences) ** 0.5
    return bool(differences.mean() + half < 0)


def main() -> None:
    """Prints a row for each family, and one over all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("policies", nargs="*", default=POLICIES)
    parser.add_argument("--seeds", default="2000-2019")
    parser.add_argument("--demand", default="seen", choices=("trace", "seen", "warm"))
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    policies = [load(name) for name in (RIVAL, *given.policies)]
    print(f"| family | {RIVAL} | {' | '.join(given.policies)} |")
    print("|---|" + "---|" * len(policies))
    rows = []
    for family in FAMILIES:
        found = measure(family, seeds, policies, given.demand)
        rows.append(found[1:] - found[0])
        cells = " | ".join(map(interval, rows[-1]))
        print(f"| {family.name} | {found[0].mean():.2f} | {cells} |", flush=True)
    over_all = np.concatenate(rows, axis=1)
    print(f"| all {over_all.shape[1]} | | {' | '.join(map(interval, over_all))} |")
    is_ahead = is_behind(-over_all[0]) and not any(is_behind(row[0]) for row in rows)
    if given.check and not is_ahead:
        sys.exit(f"{given.policies[0]} is not ahead of {RIVAL}, or behind it in a family")


if __name__ == "__main__":
    main()
