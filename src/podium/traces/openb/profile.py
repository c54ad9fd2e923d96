"""Generates clusters and workloads from a statistical profile, any size, by a seed.

The embedded profile holds the node types and pod shapes of OpenB with their counts, and the
quantiles of its inter-arrival times and run times. At the size of OpenB the counts are exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model.cluster import Cluster
from podium.model.records import ANY_MODEL, GPU_MILLI, NODE_8, POD
from podium.model.workload import Workload


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
    """Holds a distribution by some of its ranked values, all of the largest among them."""

    count: int
    ranks: npt.NDArray[np.float64]
    values: npt.NDArray[np.float64]

    def sample(self, count: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        """Draws whole seconds, one from each of `count` equal parts, in random order.

        Drawing from equal parts keeps the mean near the true one: a few pods in ten thousand
        hold half of all run time.
        """
        share = (rng.permutation(count) + rng.random(count)) / count
        # A value of rank k stands for the part from k to k + 1 of the observations.
        drawn = np.interp(share * self.count - 0.5, self.ranks, self.values)
        return np.rint(drawn)


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Holds what generated traces are drawn from."""

    gpu_models: tuple[str, ...]  # (num_types,) of each node type
    nodes: npt.NDArray[Any]  # (num_types,) of NODE_8, gpu_model left open
    node_counts: npt.NDArray[np.int64]  # (num_types,)
    named_nodes: tuple[tuple[str, int], ...]  # name and type of the 16-node list
    pods: npt.NDArray[Any]  # (num_shapes,) of POD
    pod_counts: npt.NDArray[np.int64]  # (num_shapes,)
    inter_arrival_s: Quantiles
    duration_s: Quantiles
    # Models that GPU pods accept, as written, with how many pods do: by GPUs and by is_share.
    accepted_models: Mapping[tuple[int, bool], tuple[tuple[str, int], ...]]

    @property
    def node_total(self) -> int:
        """Counts the nodes that the profile was taken from."""
        return int(self.node_counts.sum())

    @property
    def pod_total(self) -> int:
        """Counts the pods that the profile was taken from."""
        return int(self.pod_counts.sum())


def openb_profile() -> Profile:
    """Reads the embedded profile of OpenB."""
    text = resources.files("podium.traces").joinpath("data/openb.json").read_text("utf-8")
    parts = json.loads(text)
    types = parts["node_types"]["rows"]
    shapes = np.array(parts["pod_shapes"]["rows"], np.int64)
    return Profile(
        gpu_models=tuple(row[0] for row in types),
        nodes=_node_records(np.array([row[1:4] for row in types], np.int64)),
        node_counts=np.array([row[4] for row in types], np.int64),
        named_nodes=tuple((name, kind) for name, kind in parts["sixteen_nodes"]["rows"]),
        pods=_pod_records(shapes),
        pod_counts=shapes[:, 4],
        inter_arrival_s=_quantiles(parts["inter_arrival_s"]),
        duration_s=_quantiles(parts["duration_s"]),
        accepted_models=_accepted_models(parts["accepted_models"]["rows"]),
    )


def generate_cluster(profile: Profile, count: int, rng: np.random.Generator) -> Cluster:
    """Generates nodes in the proportions of the profile, in random order."""
    _check_count("nodes", count)
    types = np.repeat(np.arange(len(profile.nodes)), _proportional(profile.node_counts, count))
    return _cluster(profile, rng.permutation(types), _numbered("openb-node", count))


def sixteen_nodes(profile: Profile) -> Cluster:
    """Gives the 16-node list, in its own order."""
    names, types = zip(*profile.named_nodes, strict=True)
    return _cluster(profile, np.array(types, np.int64), names)


def generate_workload(profile: Profile, count: int, rng: np.random.Generator) -> Workload:
    """Generates pods in the proportions of the profile, with arrivals and run times."""
    _check_count("pods", count)
    counts = profile.pod_counts
    if count != profile.pod_total:
        counts = rng.multinomial(count, profile.pod_counts / profile.pod_total)
    return workload_of(
        profile,
        profile.pods[rng.permutation(np.repeat(np.arange(len(profile.pods)), counts))],
        rng,
    )


def workload_of(profile: Profile, pods: npt.NDArray[Any], rng: np.random.Generator) -> Workload:
    """Gives pods names, arrivals and run times."""
    count = len(pods)
    gaps_s = profile.inter_arrival_s.sample(count, rng)
    gaps_s[0] = 0.0
    duration_s = profile.duration_s.sample(count, rng)
    return Workload(
        pods=pods,
        names=_numbered("openb-pod", count),
        gpu_specs=("",) * count,
        gpu_models=(),
        arrival_s=np.cumsum(gaps_s),
        duration_s=np.maximum(duration_s, 1.0),
        name="openb",
    )


def _cluster(profile: Profile, types: npt.NDArray[np.int64], names: tuple[str, ...]) -> Cluster:
    used = {profile.gpu_models[kind] for kind in np.unique(types).tolist()}
    gpu_models = tuple(sorted(used))
    number = {model: index for index, model in enumerate(gpu_models)}
    table = profile.nodes.copy()
    table["gpu_model"] = [number.get(model, -1) for model in profile.gpu_models]
    return Cluster(table[types], names, gpu_models, name="openb")


def _node_records(rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    nodes = np.zeros(len(rows), NODE_8)
    nodes["gpu_count"] = rows[:, 0]
    nodes["cpu_milli_left"] = nodes["cpu_milli_total"] = rows[:, 1]
    nodes["memory_mib_left"] = nodes["memory_mib_total"] = rows[:, 2]
    nodes["rack"] = -1
    slots = np.arange(nodes["gpu_milli_left"].shape[1])
    nodes["gpu_milli_left"] = np.where(slots < rows[:, :1], GPU_MILLI, 0)
    return nodes


def _pod_records(rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    pods = np.zeros(len(rows), POD)
    for index, name in enumerate(("cpu_milli", "memory_mib", "gpu_count", "gpu_milli")):
        pods[name] = rows[:, index]
    pods["gpu_models"] = ANY_MODEL
    return pods


def _quantiles(part: Mapping[str, Any]) -> Quantiles:
    ranks, values = np.array(part["ranks"], float), np.array(part["values"], float)
    return Quantiles(part["last_rank"] + 1, ranks, values)


def _accepted_models(rows: list[Any]) -> dict[tuple[int, bool], tuple[tuple[str, int], ...]]:
    found: dict[tuple[int, bool], tuple[tuple[str, int], ...]] = {}
    for gpu_count, is_share, models, count in rows:
        key = (gpu_count, is_share)
        found[key] = (*found.get(key, ()), (models, count))
    return found


def _proportional(counts: npt.NDArray[np.int64], total: int) -> npt.NDArray[np.int64]:
    """Shares a total out by largest remainder, the commoner type first on a tie."""
    shares, remainders = np.divmod(counts * total, counts.sum())
    first = np.argsort(-remainders, kind="stable")[: total - int(shares.sum())]
    shares[first] += 1
    return shares


def _numbered(prefix: str, count: int) -> tuple[str, ...]:
    width = max(4, len(str(count - 1)))
    return tuple(f"{prefix}-{index:0{width}d}" for index in range(count))


def _check_count(what: str, count: int) -> None:
    if count < 1:
        raise UsageError(f"{count} {what} cannot be generated", hint="ask for at least 1")
