"""Tells how well a training set ranks: a panel of programs whose figures at full size are known.

A search climbs what it is trained on. If small cases rank programs otherwise than the clusters do
that somebody cares for, more search makes things worse; so it is measured before a run begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case, TrainingSet, planned
from podium.evaluation.default_cases import ORDER
from podium.evaluation.measures import INFLATION, Values, measure_case
from podium.policies import PairPolicy, Policy, load
from podium.search.judging.fitness import BASELINE, Fitness, Outcome
from podium.search.judging.form import form_for
from podium.search.judging.trial import read_policy
from podium.sim.execution import execute
from podium.sim.plan import Plan
from podium.traces.openb.families import FAMILIES

SEEDS = (3000, 3001)
"""Orders at full size; nothing is trained, selected or validated on them."""

LOW = 0.3
"""A training set whose rank correlation is lower says little about full size."""

MOST_WORK = 20_000_000
"""Pairs of pods and nodes up to which the panel is measured at full size as a run begins."""

FIGURES = ("allocation_100", "allocation_130", "fragmentation", "cpu_only_placed")
ORIGINALS = {
    name: f"openb:{FAMILIES[name].original if name in FAMILIES else 'default'}" for name in ORDER
}
"""The trace at full size that each family is like, of those that searches are trained on."""

NO_REPLAY = "nothing is known of replays at full size"
TOO_LARGE = "the trace is too large to measure the panel on it first"


@dataclass(frozen=True, slots=True)
class Program:
    """One program of the panel, with its figures at full size by trace."""

    name: str
    text: str
    figures: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Panel:
    """Programs of different quality, and what fgd reaches on the same traces."""

    programs: tuple[Program, ...]
    baseline: Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Ranking:
    """How alike training and full size rank the panel."""

    correlation: float | None  # of ranks, from -1 to 1; None: unknown
    programs: int
    traces: tuple[str, ...]  # at full size
    reason: str = ""  # why it is unknown

    @property
    def is_low(self) -> bool:
        """Returns whether what is found in training may well be worse at full size."""
        return self.correlation is not None and self.correlation < LOW

    def as_object(self) -> dict[str, Any]:
        """Describes the ranking as JSON types."""
        rounded = None if self.correlation is None else round(self.correlation, 3)
        told = {"correlation": rounded, "programs": self.programs, "traces": list(self.traces)}
        return {**told, **({"reason": self.reason} if self.reason else {})}

    @classmethod
    def from_object(cls, given: Mapping[str, Any]) -> Ranking:
        """Reads what `as_object` wrote."""
        traces = tuple(given["traces"])
        return cls(given["correlation"], given["programs"], traces, given.get("reason", ""))


def load_panel() -> Panel:
    """Reads the panel that comes with Podium."""
    file = resources.files("podium.search.judging").joinpath("data/panel.json")
    parts = json.loads(file.read_text("utf-8"))

    def by_trace(rows: Mapping[str, Sequence[float]]) -> dict[str, Values]:
        return {trace: dict(zip(FIGURES, row, strict=True)) for trace, row in rows.items()}

    programs = tuple(
        Program(each["name"], "\n".join(each["text"]) + "\n", by_trace(each["figures"]))
        for each in parts["programs"]
    )
    return Panel(programs, by_trace(parts["fgd"]))


def rank_training(training: TrainingSet, fitness: Fitness, jobs: int = 1) -> Ranking:
    """Ranks the panel on the training cases, and says how alike that is to full size.

    Of a set in stages, the last one is left out: most candidates never see it, and it is meant to
    be full size itself. What is told is how well those are chosen that go on to it.
    """
    panel, count = load_panel(), training.stages[-1].first or len(training.cases)
    cases = training.cases[:count]
    families = tuple(dict.fromkeys(case.family for case in cases))
    if any(case.protocol != INFLATION for case in cases):
        return Ranking(None, len(panel.programs), families, NO_REPLAY)
    large = _at_full_size(panel, cases, jobs)
    if large is None:
        return Ranking(None, len(panel.programs), families, TOO_LARGE)
    small = measure(panel, cases, jobs)
    scores = [[fitness.score(row) for row in rows] for rows in (small, large)]
    traces = tuple(dict.fromkeys(each.family for each in large[0]))
    return Ranking(correlation_of(*scores), len(panel.programs), traces)


def _at_full_size(panel: Panel, cases: Sequence[Case], jobs: int) -> list[list[Outcome]] | None:
    """Returns what every program reaches at full size: as is known, else measured if it may be."""
    names = dict.fromkeys(ORIGINALS.get(case.family, case.family) for case in cases)
    if set(names) <= set(panel.baseline):
        return [
            [Outcome(INFLATION, each.figures[name], panel.baseline[name], name) for name in names]
            for each in panel.programs
        ]
    whole = dict.fromkeys(full_size(case) for case in cases)
    plans = list(planned(tuple(whole), load(BASELINE)))
    if sum(len(plan.cluster) * len(plan.arrivals) for plan in plans) > MOST_WORK:
        return None
    return measure(panel, tuple(whole), jobs)


def full_size(case: Case, seed: int = SEEDS[0]) -> Case:
    """Returns the case on the whole cluster of its trace."""
    pods = None if case.is_drawn else case.pods
    return replace(case, nodes=None, pods=pods, is_perturbed=False, seed=seed)


def measure(panel: Panel, cases: Sequence[Case], jobs: int = 1) -> list[list[Outcome]]:
    """Runs every program of the panel on every case, beside fgd, spread over threads."""
    plans = list(planned(cases, load(BASELINE)))
    policies = [read_policy(each.text) for each in panel.programs]
    with ThreadPoolExecutor(jobs) as pool:
        baseline = list(pool.map(lambda plan: _run(plan, load(BASELINE)), plans))
        rows = pool.map(
            lambda own: [_run(plan, own[1], own[0].text) for plan in plans],
            zip(panel.programs, policies, strict=True),
        )
        return [
            [
                Outcome(case.protocol, values, usual, case.family)
                for case, values, usual in zip(cases, row, baseline, strict=True)
            ]
            for row in rows
        ]


def _run(plan: Plan, policy: Policy, text: str = "") -> dict[str, float]:
    if not text or not isinstance(policy, PairPolicy):
        return measure_case(execute(replace(plan, policy=policy, tier="scan")))
    form = form_for(text, policy, [plan], is_compiled=False)
    return measure_case(execute(replace(plan, policy=form.policy, tier=form.tier(plan))))


def correlation_of(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Returns Spearman's rank correlation; None where one of them ranks nothing.

    >>> correlation_of([1.0, 2.0, 3.0], [10.0, 30.0, 20.0])
    0.5
    """
    one, other = _ranks(first), _ranks(second)
    if len(set(first)) < 2 or len(set(second)) < 2:
        return None
    return round(float(np.corrcoef(one, other)[0, 1]), 9)


def _ranks(values: Sequence[float]) -> npt.NDArray[np.float64]:
    """Ranks values; equal ones share the mean of their ranks."""
    given = np.asarray(values, np.float64)
    _, which, counts = np.unique(given, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    shared: npt.NDArray[np.float64] = (2 * ends - counts - 1) / 2
    return shared[which.ravel()]
