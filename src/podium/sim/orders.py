"""Makes and reads arrival orders and node ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import MOST_NAMES, InputError
from podium.files.excerpt import excerpt
from podium.files.json_text import JsonError, parse_value
from podium.files.text_file import reading
from podium.model import Cluster, Workload
from podium.sim.bound import is_bound

RANK_STREAM, ORDER_STREAM, DEMAND_STREAM = 1, 2, 3


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Fixes which pods arrive in which order, and which node wins a tie."""

    arrivals: npt.NDArray[np.int64]  # indices of pods, repeated where a pod arrives again
    node_rank: npt.NDArray[np.int64] | None = None  # (num_nodes,) the lower rank wins


def stream(seed: int, number: int) -> np.random.Generator:
    """Opens one of a seed's independent streams of random numbers."""
    return np.random.default_rng([seed, number])


def shuffled_rank(num_nodes: int, seed: int) -> npt.NDArray[np.int64]:
    """Ranks the nodes by a random permutation, fixed for a whole run."""
    return stream(seed, RANK_STREAM).permutation(num_nodes).astype(np.int64)


def inflate(cluster: Cluster, workload: Workload, ratio: float, seed: int) -> Order:
    """Shuffles a workload and repeats pods until demand reaches a ratio of the GPU capacity.

    The rule of the published experiments: stop at the first draw whose per-GPU milli would
    exceed the limit; if the trace alone exceeds it, remove random pods until it does not.
    """
    random = stream(seed, ORDER_STREAM)
    if workload.gangs:
        return _inflated_by_gangs(cluster, workload, ratio, random)
    demand = workload.gpu_weight_milli
    limit = ratio * cluster.gpu_milli_total
    arrivals = random.permutation(len(workload)).astype(np.int64)
    total = int(demand.sum())
    if workload.bound_to:
        # What runs already has arrived; only pending pods come, and copies of either.
        arrivals = arrivals[~is_bound(workload)[arrivals]]
    if total > limit:
        gone = min(total - limit, float(demand[arrivals].sum()))
        return Order(_thinned(arrivals, demand, total, total - gone, random))
    extra: list[int] = []
    per_gpu = np.minimum(workload.pods["gpu_milli"], demand)
    if demand.max(initial=0) > 0:
        while True:
            pod = int(random.integers(len(workload)))
            if total + int(per_gpu[pod]) > limit:
                break
            extra.append(pod)
            total += int(demand[pod])
    return Order(np.concatenate([arrivals, np.array(extra, np.int64)]))


def _inflated_by_gangs(
    cluster: Cluster, workload: Workload, ratio: float, random: np.random.Generator
) -> Order:
    """Does the same with whole gangs: their pods arrive one after the other, or not at all."""
    units = _units(workload)
    demand = workload.gpu_weight_milli
    weights = np.array([int(demand[unit].sum()) for unit in units])
    limit = ratio * cluster.gpu_milli_total
    total = int(demand[is_bound(workload)].sum())
    arrivals: list[int] = []
    for number in random.permutation(len(units)).tolist():
        if total + weights[number] <= limit:
            arrivals += units[number]
            total += int(weights[number])
    while weights.max(initial=0) > 0:
        number = int(random.integers(len(units)))
        if total + weights[number] > limit:
            break
        arrivals += units[number]
        total += int(weights[number])
    return Order(np.array(arrivals, np.int64))


def _units(workload: Workload) -> list[list[int]]:
    """Lists the pending pods by what arrives together: a gang, or one pod."""
    gangs: dict[int, list[int]] = {}
    units: list[list[int]] = []
    for pod in np.flatnonzero(~is_bound(workload)).tolist():
        gang = int(workload.pods["gang"][pod])
        if gang and gang in gangs:
            gangs[gang].append(pod)
        else:
            units.append([pod])
            gangs[gang] = units[-1]
    return units


def _thinned(
    arrivals: npt.NDArray[np.int64], demand: npt.NDArray[np.int64], total: int, limit: float,
    random: np.random.Generator,
) -> npt.NDArray[np.int64]:  # fmt: skip
    leaving = random.permutation(len(arrivals))
    gone = np.cumsum(demand[arrivals[leaving]])
    count = int(np.searchsorted(gone, total - limit)) + 1
    kept = np.ones(len(arrivals), bool)
    kept[leaving[:count]] = False
    return arrivals[kept]


def read_order(path: Path, seed: int) -> Order:
    """Reads the line of a seed from a file of orders (`jsonl`, plain or gzip)."""
    seeds: list[Any] = []
    for number, row in _rows(path):
        if row.get("seed") == seed:
            return _order(row, path, number)
        seeds.append(row.get("seed", -1))
    known = ", ".join(excerpt(seed) for seed in seeds[:MOST_NAMES]) or "none"
    raise InputError.at(path, f"no order for seed {seed}", hint=f"it holds the seeds: {known}")


def read_seeds(path: Path) -> list[int]:
    """Lists the seeds of a file of orders."""
    return [row["seed"] for _, row in _rows(path) if "seed" in row]


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if not path.exists():
        raise InputError.at(path, "no such file", hint="give a .jsonl or .jsonl.gz file")
    with reading(path) as stream:
        for number, line in enumerate(stream, 1):
            yield number, _row(line, path, number)


def _row(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = parse_value(line)
    except JsonError as error:
        raise InputError.at(path, f"not JSON: {error}", line=number) from error
    if not isinstance(row, dict):
        raise InputError.at(path, "a JSON object is expected", line=number)
    return row


def _order(row: dict[str, Any], path: Path, line: int) -> Order:
    if "arrivals" not in row:
        raise InputError.at(path, "arrivals is missing", line=line)
    arrivals = _whole_numbers(row["arrivals"], path, line, "arrivals")
    if row.get("node_rank") is None:
        return Order(arrivals)
    return Order(arrivals, _whole_numbers(row["node_rank"], path, line, "node_rank"))


def _whole_numbers(values: Any, path: Path, line: int, column: str) -> npt.NDArray[np.int64]:
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise InputError.at(path, "a list of whole numbers is expected", line=line, column=column)
    try:
        return np.array(values, np.int64)
    except OverflowError as error:
        raise InputError.at(path, "a number is too large", line=line, column=column) from error


def check_order(order: Order, cluster: Cluster, workload: Workload) -> None:
    """Refuses an order that speaks of other pods or nodes."""
    if len(order.arrivals) == 0:
        raise InputError("the order has no arrivals")
    strangers = order.arrivals[(order.arrivals < 0) | (order.arrivals >= len(workload))]
    if len(strangers):
        raise InputError(
            f"the order names pod {strangers[0]}, the trace has {len(workload)}",
            hint="give the order together with the trace it was made for",
        )
    ranks = order.node_rank
    if ranks is not None and not np.array_equal(np.sort(ranks), np.arange(len(cluster))):
        raise InputError(
            f"node_rank is not a permutation of the {len(cluster)} nodes",
            hint="give the order together with the cluster it was made for",
        )
