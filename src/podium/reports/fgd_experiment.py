"""Repeats the published FGD experiments and sets our figures beside the published ones.

Weng et al., "Beware of Fragmentation", USENIX ATC 2023; results of
hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from podium.errors import InputError, MissingError
from podium.model import Cluster, Workload
from podium.policies import Policy
from podium.sim import Inflation, Setup, read_order, simulate
from podium.sim.load_curve import load_curve
from podium.sim.orders import read_seeds

POLICY_NAMES = {
    "Random": "random",
    "DotProd": "dot-product",
    "GpuClustering": "gpu-clustering",
    "GpuPacking": "gpu-packing",
    "BestFit": "best-fit",
    "FGD": "fgd",
}
"""Published names and ours."""

NOT_REPRODUCIBLE = frozenset({"random"})
"""Drawn afresh in every published run; compared by eye only."""

TOLERANCE = 0.01  # points
COLUMNS = ("alloc_95", "alloc_100", "alloc_130", "frag_100", "frag_130")
JUDGED = ("alloc_100", "alloc_130")


@dataclass(frozen=True, slots=True)
class Experiment:
    """Names one published run."""

    trace: str
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Sets our figures (percent of all GPUs) beside the published ones."""

    experiment: Experiment
    ours: dict[str, float]
    published: dict[str, float]

    @property
    def largest_difference(self) -> float:
        """Gives the largest difference of allocation at 100 % and 130 %, in points."""
        return max(abs(self.ours[name] - self.published[name]) for name in JUDGED)

    @property
    def is_reproduced(self) -> bool:
        """Tells whether every judged figure is within 0.01 points, as printed."""
        return self.largest_difference <= TOLERANCE + 1e-9


Published = dict[Experiment, dict[str, float]]


def read_published(path: Path) -> Published:
    """Reads the published results."""
    if not path.is_file():
        raise MissingError(
            "the published results are not here",
            where=str(path),
            hint="name the file with --published (columns: trace, policy, seed, alloc_95, ...)",
        )
    found: Published = {}
    with path.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), 2):
            try:
                name = POLICY_NAMES[row["policy"]]
                experiment = Experiment(row["trace"], name, int(row["seed"]))
                found[experiment] = {column: float(row[column]) for column in COLUMNS}
            except (KeyError, TypeError, ValueError) as error:
                problem = f"not a published result: {error}"
                raise InputError.at(path, problem, line=line) from error
    return found


def experiments(published: Published, orders: Path, traces: list[str]) -> list[Experiment]:
    """Lists the published runs whose arrival orders are at hand, by trace, policy and seed."""
    known = sorted({experiment.trace for experiment in published})
    found: list[Experiment] = []
    for trace in traces or known:
        path = order_file(orders, trace)
        seeds = read_seeds(path) if path.is_file() else []
        found += [e for e in published if e.trace == trace and e.seed in seeds]
    if not found:
        raise MissingError(
            "no arrival orders were found for published runs",
            where=str(orders),
            hint="name the folder of TRACE.jsonl.gz files with --orders",
        )
    return found


def order_file(orders: Path, trace: str) -> Path:
    """Names the file of orders of a trace."""
    return orders / f"{trace}.jsonl.gz"


def repeat(
    experiment: Experiment, cluster: Cluster, workload: Workload, policy: Policy,
    orders: Path, published: Published,
) -> Outcome:  # fmt: skip
    """Runs one published experiment again."""
    order = read_order(order_file(orders, experiment.trace), experiment.seed)
    protocol = Inflation(order=order)
    result = simulate(cluster, workload, policy, protocol, Setup(seed=experiment.seed))
    curve = load_curve(result)
    ours = {}
    for column in COLUMNS:
        kind, _, load = column.partition("_")
        allocation, fragmentation = curve.at(int(load))
        ours[column] = round(allocation if kind == "alloc" else fragmentation, 2)
    return Outcome(experiment, ours, published[experiment])
