"""Draws workloads of three kinds of pods: with a part of a GPU, with one, and with eight.

Their shapes are those of OpenB. Eight free GPUs on one node are what careless placement destroys,
so these workloads tell policies apart more than OpenB's own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from podium.errors import UsageError
from podium.model import Cluster, Workload
from podium.model.records import GPU_MILLI
from podium.model.workload import gpu_demand
from podium.traces.openb.profile import generate_cluster, openb_profile, workload_of

_STREAM = 15  # of a seed


def draw_mixed(
    nodes: int, demand: float, shares: tuple[float, ...], seed: int
) -> tuple[Cluster, Workload]:
    """Draws a cluster, and pods that ask for `demand` times its GPUs in all.

    `shares` are those of the demand that parts, single GPUs and eight GPUs make up.
    """
    if len(shares) != len(_kinds()) or min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise UsageError(
            f"the mix is {list(shares)}", where="workload.mix",
            hint="give the shares of demand of parts, of one GPU and of eight; they add up to 1",
        )  # fmt: skip
    rng, profile = np.random.default_rng([seed, _STREAM]), openb_profile()
    cluster = generate_cluster(profile, nodes, rng)
    asked = demand * cluster.gpu_milli_total
    picked = [
        _drawn(kind, share * asked, rng) for kind, share in zip(_kinds(), shares, strict=True)
    ]
    pods = profile.pods[rng.permutation(np.concatenate(picked))]
    return cluster, workload_of(profile, pods, rng)


def _kinds() -> tuple[npt.NDArray[np.bool_], ...]:
    pods = openb_profile().pods
    demand = gpu_demand(pods)
    return (demand > 0) & (demand < GPU_MILLI), demand == GPU_MILLI, demand == 8 * GPU_MILLI


def _drawn(
    kind: npt.NDArray[np.bool_], asked: float, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draws shapes of a kind, as often as each occurs, until they ask for so many GPU milli."""
    profile = openb_profile()
    among = np.flatnonzero(kind)
    weights = profile.pod_counts[among] / profile.pod_counts[among].sum()
    demand = gpu_demand(profile.pods)
    count = int(2 * asked / float(demand[among] @ weights)) + 8
    shapes = rng.choice(among, count, p=weights)
    found: npt.NDArray[np.int64] = shapes[: np.searchsorted(np.cumsum(demand[shapes]), asked) + 1]
    return found
