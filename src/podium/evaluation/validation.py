"""Measures policies on cases that no search has seen: other seeds, other traces, other nodes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.errors import UnknownName, UsageError
from podium.evaluation.cases import Case, planned
from podium.evaluation.measures import (
    FUNSEARCH,
    INFLATION,
    Held,
    Values,
    contradictions,
    measure_case,
    measure_funsearch,
)
from podium.evaluation.paired import Difference
from podium.evaluation.splits import BY_SEED, VALIDATION, Split
from podium.evaluation.waste import MedianPod, details_of, measure_in_use, measure_losses
from podium.policies import Policy, load
from podium.sim import Result
from podium.sim.execution import execute
from podium.sim.funsearch.policy_run import FunsearchCase
from podium.sim.load_curve import arrived_ratio
from podium.sim.metrics import POD_CLASSES, class_of
from podium.sim.plan import Plan
from podium.sim.recount import Recount, recount, require_possible
from podium.sim.tiers import choose_tier
from podium.traces.catalogue import EMBEDDED, EMBEDDED_16
from podium.traces.openb.files import found_traces

Column = npt.NDArray[np.float64]

SHOWN_SEED = 2023
"""Of the resampling of intervals that are shown."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Names cases that differ in their seed alone."""

    trace: str
    protocol: str
    is_perturbed: bool
    cluster: str = ""  # where it is another trace's

    @classmethod
    def of(cls, case: Case) -> Group:
        """Finds the group of a case."""
        return cls(case.trace, case.protocol, case.is_perturbed, case.cluster)

    @property
    def title(self) -> str:
        """Names trace and cluster without their folders."""
        return Case(self.trace, cluster=self.cluster).title

    @property
    def name(self) -> str:
        """Returns a short description of the cases."""
        kind = " perturbed" if self.is_perturbed else ""
        return f"{self.title}{kind}" + ("" if self.protocol == INFLATION else f" {self.protocol}")


Selection = Callable[[Group], bool]


@dataclass(frozen=True, slots=True)
class GroupResults:
    """A policy beside the baselines on one group of cases."""

    group: Group
    is_trained_on: bool  # whether the search saw this trace, with other seeds
    seeds: int
    means: dict[str, float]  # by figure
    differences: dict[str, dict[str, Difference]]  # by baseline, then by figure
    split: Split = BY_SEED  # how the cases differ from what a search trains on
    is_own: bool = False  # read from files of the user's own
    digest: str = ""  # of what those files gave

    def as_object(self) -> dict[str, Any]:
        """Describes the row as JSON types."""
        return {
            "trace": self.group.title,
            "split": str(self.split),
            "is_own": self.is_own,
            **({"digest": self.digest} if self.digest else {}),
            "protocol": self.group.protocol,
            "is_perturbed": self.group.is_perturbed,
            "is_trained_on": self.is_trained_on,
            "seeds": self.seeds,
            "means": {figure: round(value, 4) for figure, value in self.means.items()},
            "differences": {
                name: {
                    figure: [round(each, 4) for each in (found.mean, found.low, found.high)]
                    for figure, found in figures.items()
                }
                for name, figures in self.differences.items()
            },
        }


def own_parts(table: Sequence[GroupResults]) -> list[str]:
    """Describes what of the user's own traces a table is about, each once."""
    return list(dict.fromkeys(_own_part(row) for row in table if row.is_own))


def _own_part(row: GroupResults) -> str:
    part = "held out: orders drawn with other seeds"
    if row.split.time_share:
        share = 100 * row.split.time_share
        part = f"held out: the last {share:g} % of its arrivals, drawn with other seeds"
    elif not row.is_trained_on:
        part = "the search saw nothing of it"
    return f"{row.group.title} is the user's own trace (digest {row.digest[:12]}); {part}"


@dataclass(frozen=True, slots=True, eq=False)
class ValidationResults:
    """The figures of every policy on every case."""

    cases: tuple[Case, ...]
    values: Mapping[str, tuple[Values, ...]] = field(repr=False)  # by policy, case by case
    held: Mapping[str, tuple[Held, ...]] = field(default_factory=dict, repr=False)  # likewise

    def held_by(self, policy: str) -> Held:
        """Counts a policy's decisions that held a pod, and all its decisions."""
        counts = self.held.get(policy, ())
        return sum(held for held, _ in counts), sum(decisions for _, decisions in counts)

    def groups(self) -> tuple[Group, ...]:
        """Lists the groups in the order of their cases."""
        return tuple(dict.fromkeys(map(Group.of, self.cases)))

    def figures(self, group: Group) -> tuple[str, ...]:
        """Lists what was measured on every case of a group."""
        rows = [each for _, each in self._rows(next(iter(self.values)), group.__eq__)]
        return tuple(key for key in rows[0] if all(key in each for each in rows))

    def column(self, policy: str, figure: str, group: Group) -> Column:
        """Returns one figure, seed by seed."""
        return np.array([values[figure] for _, values in self._rows(policy, group.__eq__)])

    def seed_gains(self, policy: str, other: str, figure: str, selection: Selection) -> Column:
        """Returns for each seed the mean difference over the selected groups that have the figure.

        Cases of one seed share pods or perturbed nodes: the seed is what is drawn independently.
        """
        found: dict[int, list[float]] = {}
        pairs = zip(self._rows(policy, selection), self._rows(other, selection), strict=True)
        for (case, own), (_, its) in pairs:
            if figure in own:
                found.setdefault(case.seed, []).append(own[figure] - its[figure])
        return np.array([sum(gains) / len(gains) for gains in found.values()])

    def table(
        self, policy: str, baselines: tuple[str, ...], trained: frozenset[str] = frozenset()
    ) -> tuple[GroupResults, ...]:
        """Sets a policy beside baselines, group by group."""
        return tuple(self._row(policy, baselines, group, trained) for group in self.groups())

    def _row(
        self, policy: str, baselines: tuple[str, ...], group: Group, trained: frozenset[str]
    ) -> GroupResults:
        figures = self.figures(group)
        columns = {figure: self.column(policy, figure, group) for figure in figures}
        differences = {
            name: {
                figure: Difference.of(
                    columns[figure] - self.column(name, figure, group),
                    np.random.default_rng(SHOWN_SEED),
                )
                for figure in figures
                if not figure.startswith("placed")
            }
            for name in baselines
        }
        means = {figure: float(column.mean()) for figure, column in columns.items()}
        count = len(next(iter(columns.values())))
        case = next(each for each in self.cases if Group.of(each) == group)
        return GroupResults(
            group, group.trace in trained, count, means, differences, case.split, case.is_own,
            case.digest,
        )  # fmt: skip

    def _rows(self, policy: str, selection: Selection) -> Iterator[tuple[Case, Values]]:
        for case, values in zip(self.cases, self.values[policy], strict=True):
            if selection(Group.of(case)):
                yield case, values


BASELINES = ("fgd", "first-fit", "best-fit", "kube-packing")
"""What every candidate is measured beside."""

OWN_BASELINE = "kube-default"
"""What a candidate for a cluster is measured beside, too: it is what runs there."""

EXPERIMENT = (
    "default", "cpu050", "cpu100", "cpu200", "cpu250", "gpushare40", "gpushare60", "gpushare80",
    "gpushare100", "gpuspec10", "gpuspec20", "gpuspec25", "gpuspec33", "multigpu20", "multigpu30",
    "multigpu40", "multigpu50",
)  # fmt: skip
"""The traces of Weng et al., "Beware of Fragmentation", USENIX ATC 2023."""

LOADS = (100, 130)
"""Percent of the GPUs that were asked for, at which placed pods are counted."""

Progress = Callable[[int, int], None]
"""Hears how many of how many runs are done."""

FITNESS = "fitness"
"""The figure that says what a run is worth to whoever searched, where that is asked for."""

Worth = Callable[[Case, Values, Values], float | None]
"""Says what a run on a case is worth beside that of fgd; None where such cases do not count."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Which held-out cases there are."""

    seeds: int = len(VALIDATION)
    folder: str = ""  # of original traces; those of the FGD experiment that lie there are used
    traces: tuple[str, ...] = ()  # only these, as they are named everywhere; none: all
    nodes: int | None = None  # of the embedded trace
    pods: int | None = None
    replay_pods: int = 400
    replay_load: float = 50.0  # packing policies keep the queue busy two fifths of the time
    own: tuple[Case, ...] = ()  # further cases; without names of traces, these alone
    beside: tuple[Case, ...] = ()  # further cases beside whatever others there are

    def __post_init__(self) -> None:
        if not 1 <= self.seeds <= len(VALIDATION):
            raise UsageError(
                f"validation on {self.seeds} seeds is not possible",
                hint=f"there are {len(VALIDATION)}, from {VALIDATION.start}",
            )

    def cases(self) -> tuple[Case, ...]:
        """Lists every trace with the cluster as it is and perturbed, seed by seed."""
        embedded = Case(EMBEDDED, self.nodes, self.pods)
        originals = [Case(f"openb:{name}", folder=self.folder) for name in self._originals()]
        replay = Case(EMBEDDED_16, None, self.replay_pods, "replay", load=self.replay_load)
        every = {case.trace: case for case in (embedded, *originals, replay)}
        for name in self.traces:
            if name not in every:
                raise UnknownName.among("held-out trace", name, every)
        names = self.traces or (() if self.own else every)
        return tuple(
            replace(case, seed=seed, is_perturbed=is_perturbed)
            for case in (*self.own, *self.beside, *(every[name] for name in every if name in names))
            for is_perturbed in (False, True)
            for seed in VALIDATION[: self.seeds]
        )

    def _originals(self) -> list[str]:
        found = found_traces(Path(self.folder) if self.folder else None)
        return [name for name in EXPERIMENT if name in found]


def baselines(names: Sequence[str] = BASELINES) -> dict[str, Policy]:
    """Loads the policies that candidates are measured beside."""
    return {name: load(name) for name in names}


def validate(
    policies: Mapping[str, Policy], cases: Sequence[Case], progress: Progress | None = None,
    jobs: int = 0, worth: Worth | None = None,
) -> ValidationResults:  # fmt: skip
    """Runs every policy on every case, all on the same pods and ties, spread over threads.

    What runs are worth is asked in this thread, where fgd is among the policies.
    """
    found: dict[str, list[Values]] = {name: [] for name in policies}
    held: dict[str, list[Held]] = {name: [] for name in policies}
    total = len(policies) * len(cases)
    plans = planned(cases, load("first-fit"))
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        for done, (case, plan) in enumerate(zip(cases, plans, strict=True), 1):
            runs = [pool.submit(_measured, case, plan, policy) for policy in policies.values()]
            rows = {name: run.result() for name, run in zip(policies, runs, strict=True)}
            worths = {} if worth is None else _worths(worth, case, rows)
            for name, row in rows.items():
                found[name].append({**row.figures, **worths.get(name, {})})
                held[name].append(row.held)
            if progress is not None:
                progress(done * len(policies), total)
    figures = {name: tuple(values) for name, values in found.items()}
    return ValidationResults(
        tuple(cases), figures, {name: tuple(each) for name, each in held.items()}
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    """What a policy reached on a case; by the rules of FunSearch there is no result."""

    measured: Values
    shares: Values  # placed pods by class
    held: Held
    result: Result | None = None

    @property
    def figures(self) -> Values:
        return {**self.measured, **self.shares}

    def detailed(self) -> Values:
        """Returns what an objective is told: also what was lost and placed at the end."""
        if self.result is None:
            return self.measured
        median_pod = MedianPod.of(self.result.plan.trace.pods)
        details = details_of(measure_losses(self.result, median_pod))
        return {**self.measured, **details, **measure_in_use(self.result)}


def _worths(worth: Worth, case: Case, rows: Mapping[str, _Run]) -> dict[str, dict[str, float]]:
    """Asks what the runs on one case are worth."""
    baseline = rows["fgd"].detailed()
    found = {name: worth(case, row.detailed(), baseline) for name, row in rows.items()}
    return {name: {FITNESS: each} for name, each in found.items() if each is not None}


def _measured(case: Case, plan: Plan, policy: Policy) -> _Run:
    if case.protocol == FUNSEARCH:
        found = FunsearchCase.of(plan.cluster, plan.trace, case.load).run(policy)
        held = found.held, found.placed + found.failed_attempts
        return _Run(measure_funsearch(found), {}, held)
    tier = choose_tier("auto", policy, plan.arrivals, plan.protocol, plan.cluster)
    result = execute(replace(plan, policy=policy, tier=tier))
    require_possible(recount(result), policy.name)
    figures = measure_case(result)
    require_possible(Recount(tuple(contradictions(result, figures))), policy.name)
    held = result.held_decisions, result.decisions
    return _Run(figures, placed_shares(result), held, result)


def placed_shares(result: Result) -> dict[str, float]:
    """Returns the percent of arrived pods that run at 100 % and 130 % arrived load, by class."""
    if result.plan.protocol.name != INFLATION:
        return {}
    classes, arrived = class_of(result.plan.arrivals.pods), arrived_ratio(result)
    found: dict[str, float] = {}
    for load_percent in LOADS:
        count = int(np.searchsorted(arrived, load_percent / 100 + 1e-9, side="right"))
        running = np.zeros(len(classes), bool)
        changes = result.changes[: result.changes_after[max(0, count - 1)]]
        running[changes[changes > 0] - 1] = True
        for index, name in enumerate(POD_CLASSES):
            own = classes[:count] == index
            if own.any():
                found[f"placed_{load_percent}_{name}"] = 100 * float(running[:count][own].mean())
    return found
