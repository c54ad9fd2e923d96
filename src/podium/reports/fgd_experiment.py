"""Reproduces the published FGD experiments and compares our figures with the published ones.

Weng et al., "Beware of Fragmentation", USENIX ATC 2023; results of
hkust-adsl/kubernetes-scheduler-simulator.
"""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from podium.errors import InputError, MissingError, UnknownName
from podium.files.text_file import reading
from podium.model import Cluster, Workload
from podium.policies import Policy
from podium.sim import Inflation, Result, Setup, read_order, simulate
from podium.sim.load_curve import load_curve
from podium.sim.orders import read_seeds
from podium.sim.recount import recount, require_possible

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
"""Drawn anew in every published run; compared by eye only."""

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
        """Returns the largest difference of allocation at 100 % and 130 %, in points.

        NaN where one of the two loads was not reached.
        """
        differences = [abs(self.ours[name] - self.published[name]) for name in JUDGED]
        return math.nan if any(map(math.isnan, differences)) else max(differences)

    @property
    def is_reproduced(self) -> bool:
        """Returns whether every judged figure is within 0.01 points, as printed."""
        return self.largest_difference <= TOLERANCE + 1e-9


Published = dict[Experiment, dict[str, float]]


def read_published(path: Path) -> Published:
    """Reads the published results."""
    if not path.is_file():
        raise MissingError(
            "no published results found",
            where=str(path),
            hint="name the file with --published (columns: trace, policy, seed, alloc_95, ...)",
        )
    found: Published = {}
    with reading(path) as file:
        rows = csv.DictReader(file)
        lacking = {"trace", "policy", "seed", *COLUMNS} - set(rows.fieldnames or ())
        if lacking:
            problem = f"the columns {', '.join(sorted(lacking))} are missing"
            raise InputError.at(path, problem, line=1, hint="use the published table unchanged")
        for line, row in enumerate(rows, 2):
            experiment, figures = _published_row(row, path, line)
            found[experiment] = figures
    return found


def _published_row(
    row: dict[str, str], path: Path, line: int
) -> tuple[Experiment, dict[str, float]]:
    if row["policy"] not in POLICY_NAMES:
        known = ", ".join(POLICY_NAMES)
        problem = f'"{row["policy"]}" is not a published policy'
        raise InputError.at(path, problem, line=line, column="policy", hint=f"known: {known}")
    try:
        experiment = Experiment(row["trace"], POLICY_NAMES[row["policy"]], int(row["seed"]))
        return experiment, {column: float(row[column]) for column in COLUMNS}
    except (TypeError, ValueError) as error:
        problem = f"not a published result: {error}"
        raise InputError.at(path, problem, line=line, hint="use finite numbers") from error


@dataclass(frozen=True, slots=True)
class Selection:
    """Which published runs are wanted; no names mean all."""

    traces: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()


def select(published: Published, wanted: Selection) -> list[Experiment]:
    """Lists the wanted published runs, by trace, policy and seed as published."""
    traces = dict.fromkeys(experiment.trace for experiment in published)
    policies = dict.fromkeys(experiment.policy for experiment in published)
    for kind, names, known in (
        ("published trace", wanted.traces, traces),
        ("published policy", wanted.policies, policies),
    ):
        for name in names:
            if name not in known:
                raise UnknownName.among(kind, name, known)
    return [
        experiment
        for trace in wanted.traces or traces
        for experiment in published
        if experiment.trace == trace and experiment.policy in (wanted.policies or policies)
    ]


def with_orders(experiments: list[Experiment], orders: Path) -> list[Experiment]:
    """Keeps the runs whose arrival orders are at hand."""
    seeds = {
        trace: set(read_seeds(order_file(orders, trace)))
        for trace in {experiment.trace for experiment in experiments}
        if order_file(orders, trace).is_file()
    }
    found = [each for each in experiments if each.seed in seeds.get(each.trace, ())]
    if not found:
        raise MissingError(
            "no arrival orders found for published runs",
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
    result = run_again(experiment, cluster, workload, policy, orders)
    return Outcome(experiment, figures_of(result), published[experiment])


def run_again(
    experiment: Experiment, cluster: Cluster, workload: Workload, policy: Policy, orders: Path
) -> Result:
    """Simulates a policy on the order and ranks of a published run."""
    order = read_order(order_file(orders, experiment.trace), experiment.seed)
    protocol = Inflation(order=order)
    return simulate(cluster, workload, policy, protocol, Setup(seed=experiment.seed))


def figures_of(result: Result) -> dict[str, float]:
    """Returns the published columns of a run, rounded as in the publication."""
    require_possible(recount(result), result.plan.policy.name)
    curve = load_curve(result)
    found = {}
    for column in COLUMNS:
        kind, _, load = column.partition("_")
        allocation, fragmentation = curve.at(int(load))
        found[column] = round(allocation if kind == "alloc" else fragmentation, 2)
    return found
