"""Reproduces published experiments on the original files, and compares other policies with them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from podium.errors import MissingError, UsageError
from podium.experiments.listener import SILENT, Listener, announce_compilation
from podium.experiments.places import traces_folder
from podium.experiments.simulate import WORK, cancelling

if TYPE_CHECKING:
    from podium.model import Cluster, Workload
    from podium.policies import Policy
    from podium.reports.beside_fgd import Comparison
    from podium.reports.fgd_experiment import Experiment, Published, Selection
    from podium.reports.fgd_experiment import Outcome as Repeated
    from podium.reports.funsearch_experiment import TwoViews
    from podium.settings import Settings

Outcome = TypeVar("Outcome")
Work = Callable[
    ["Experiment", "Cluster", "Workload", "Policy", Path, "Published"], Outcome
]  # what is done for one run of one policy


@dataclass(frozen=True, slots=True)
class Material:
    """The published results, and where the arrival orders are."""

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


def rivals_among(references: Sequence[str], published: Published) -> list[str]:
    """Lists the policies that were never published; refuses a mixture of both."""
    known = {experiment.policy for experiment in published}
    found = [each for each in dict.fromkeys(references) if each not in known]
    if found and len(found) < len(set(references)):
        others = ", ".join(each for each in dict.fromkeys(references) if each in known)
        raise UsageError(
            f"{others} was published, {', '.join(found)} was not: their reports differ",
            where="flag --policy",
            hint="use two commands, one for published policies and one for others",
        )
    return found


def compare_with_fgd(
    settings: Settings, material: Material, references: Sequence[str], traces: tuple[str, ...],
    listener: Listener = SILENT,
) -> list[Comparison]:  # fmt: skip
    """Runs policies in the place of FGD in every published run of it."""
    from podium.experiments.case import named_policy
    from podium.reports.beside_fgd import attempt, compare, published_runs

    policies = [named_policy(each, f"flag --policy {each}") for each in references]
    runs = runs_with_orders(material, published_runs(material.results, traces), listener)
    announce_compilation(listener)
    jobs = [(run, policy) for policy in policies for run in runs]
    done = run_all(settings, material, jobs, attempt, listener)
    return [
        compare(
            reference,
            names_hold=policy.may_hold,
            attempts=done[i * len(runs) : (i + 1) * len(runs)],
        )
        for i, (reference, policy) in enumerate(zip(references, policies, strict=True))
    ]


def repeat_fgd(
    settings: Settings, material: Material, chosen: Selection, listener: Listener = SILENT
) -> list[Repeated]:
    """Repeats the published runs that are chosen."""
    from podium.policies import load
    from podium.reports.fgd_experiment import repeat, select

    runs = runs_with_orders(material, select(material.results, chosen), listener)
    announce_compilation(listener)
    policies = {name: load(name) for name in {run.policy for run in runs}}
    jobs = [(run, policies[run.policy]) for run in runs]
    return run_all(settings, material, jobs, repeat, listener)


def repeat_funsearch(
    settings: Settings, references: Sequence[str] = (), listener: Listener = SILENT
) -> list[TwoViews]:
    """Repeats the table of FunSearch by its own rules and by Podium's, or that of other policies.

    A policy of the table is named as it is there; any other is one of Podium's.
    """
    from podium.experiments.case import named_policy
    from podium.reports.funsearch_experiment import POLICIES, view_policy, view_twice
    from podium.traces.catalogue import EMBEDDED_16, LoadOptions, load_trace

    options = LoadOptions(folder=original_folder(settings))
    cluster = load_trace(EMBEDDED_16, options).cluster
    workload = load_trace("openb:default", options).workload
    if cluster is None or workload is None:
        raise MissingError("the 16-node list or the default trace is empty")
    names = list(dict.fromkeys(references)) or list(POLICIES)
    others = {
        name: named_policy(name, f"flag --policy {name}") for name in names if name not in POLICIES
    }
    announce_compilation(listener)
    views: list[TwoViews] = []
    for name in names:
        listener.progress("repeating", len(views), len(names))
        if name in others:
            views.append(view_policy(name, others[name], cluster, workload))
        else:
            views.append(view_twice(name, cluster, workload))
    return views


def runs_with_orders(
    material: Material, wanted: list[Experiment], listener: Listener = SILENT
) -> list[Experiment]:
    """Selects the runs whose orders are at hand, and notes how many are not."""
    from podium.reports.fgd_experiment import with_orders

    runs = with_orders(wanted, material.orders)
    if len(runs) < len(wanted):
        listener.note(f"{len(wanted) - len(runs)} published runs have no arrival order here")
    return runs


def run_all(
    settings: Settings, material: Material, jobs: list[tuple[Experiment, Policy]],
    work: Work[Outcome], listener: Listener = SILENT,
) -> list[Outcome]:  # fmt: skip
    """Does every job, a trace at a time; the outcomes are in the order of the jobs."""
    found: dict[int, Outcome] = {}
    with cancelling(ThreadPoolExecutor(os.cpu_count(), WORK)) as pool:
        listener.progress("repeating", 0, len(jobs))
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
                listener.progress("repeating", len(found), len(jobs))
    return [found[index] for index in range(len(jobs))]


def _loaded(settings: Settings, trace: str) -> tuple[Cluster, Workload]:
    from podium.traces.catalogue import LoadOptions, load_trace

    loaded = load_trace(f"openb:{trace}", LoadOptions(folder=traces_folder(settings)))
    if loaded.cluster is None or loaded.workload is None:
        raise MissingError(f"the trace {trace} has no nodes or no pods")
    return loaded.cluster, loaded.workload
