"""Runs published experiments on the original files, side by side."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from podium.cli.group import WORK
from podium.cli.options import traces_folder
from podium.cli.render import Screen
from podium.errors import MissingError

if TYPE_CHECKING:
    from podium.model import Cluster, Workload
    from podium.policies import Policy
    from podium.reports.fgd_experiment import Experiment, Published
    from podium.settings import Settings

Outcome = TypeVar("Outcome")
Work = Callable[
    ["Experiment", "Cluster", "Workload", "Policy", Path, "Published"], Outcome
]  # what is done for one run of one policy


@dataclass(frozen=True, slots=True)
class Material:
    """Holds what was published: the results, and where the orders are."""

    results: Published
    orders: Path


def original_folder(settings: Settings) -> Path:
    """Finds the folder of the original OpenB files."""
    folder = traces_folder(settings)
    if folder is None:
        raise MissingError(
            "the original OpenB files are needed",
            where="[traces] folder is not set",
            hint="set PODIUM_TRACES to their folder, or run podium traces fetch openb",
        )
    return folder


def runs_with_orders(
    screen: Screen, material: Material, wanted: list[Experiment]
) -> list[Experiment]:
    """Keeps the runs whose orders are at hand, and says how many are not."""
    from podium.reports.fgd_experiment import with_orders

    runs = with_orders(wanted, material.orders)
    if len(runs) < len(wanted):
        screen.note(f"note: {len(wanted) - len(runs)} published runs have no order here")
    return runs


def run_all(
    screen: Screen, settings: Settings, material: Material,
    jobs: list[tuple[Experiment, Policy]], work: Work[Outcome],
) -> list[Outcome]:  # fmt: skip
    """Does every job, a trace at a time; the outcomes are in the order of the jobs."""
    from podium.cli.watch import cancelling

    found: dict[int, Outcome] = {}
    with (
        screen.progress("repeating", len(jobs)) as advance,
        cancelling(ThreadPoolExecutor(os.cpu_count(), WORK)) as pool,
    ):
        for trace in dict.fromkeys(run.trace for run, _ in jobs):
            cluster, workload = _loaded(settings, trace)
            waiting: dict[int, Future[Outcome]] = {
                index: pool.submit(
                    work, run, cluster, workload, policy, material.orders, material.results
                )
                for index, (run, policy) in enumerate(jobs)
                if run.trace == trace
            }
            for index, future in waiting.items():
                found[index] = future.result()
                advance()
    return [found[index] for index in range(len(jobs))]


def _loaded(settings: Settings, trace: str) -> tuple[Cluster, Workload]:
    from podium.traces.catalogue import LoadOptions, load_trace

    loaded = load_trace(f"openb:{trace}", LoadOptions(folder=traces_folder(settings)))
    if loaded.cluster is None or loaded.workload is None:
        raise MissingError(f"the trace {trace} has no nodes or no pods")
    return loaded.cluster, loaded.workload
