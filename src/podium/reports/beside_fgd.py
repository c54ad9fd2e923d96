"""Compares any policy with the published figures of FGD, on the published orders.

The published seeds are for reports only: no policy is tuned on them or chosen by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.model import Cluster, Workload
from podium.policies import Policy
from podium.reports.fgd_experiment import (
    Experiment,
    Outcome,
    Published,
    Selection,
    figures_of,
    run_again,
    select,
)
from podium.sim.result import HELD

FGD = "fgd"
NAMED = ("default", "cpu250", "gpushare60", "gpushare100", "gpuspec33", "multigpu20")
"""The traces that a policy is compared on first: one of each kind, and the hardest."""

SHOWN = ("alloc_100", "alloc_130", "frag_130")
TOLERANCE = 0.5
"""Points below FGD at 100 % that do not count as a loss."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a policy reached in one published run of FGD, and the pods it held back."""

    outcome: Outcome
    held: int  # pods that were held at least once


@dataclass(frozen=True, slots=True)
class Row:
    """The means of a policy and of FGD over some runs, in percent of all GPUs."""

    name: str  # of a trace, or of several
    ours: dict[str, float]
    published: dict[str, float]
    held: int  # in all runs together

    def difference(self, column: str) -> float:
        """Returns the points by which the policy is above FGD."""
        return self.ours[column] - self.published[column]

    def as_object(self) -> dict[str, Any]:
        """Returns the figures under their stable names."""
        return {
            "trace": self.name, "ours": self.ours, "published": self.published,
            "difference": {column: self.difference(column) for column in SHOWN},
            "held": self.held,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares a policy with FGD, trace by trace."""

    policy: str
    may_hold: bool
    rows: tuple[Row, ...]  # the named traces first

    @property
    def named(self) -> tuple[Row, ...]:
        """Returns the rows of the named traces."""
        return tuple(row for row in self.rows if row.name in NAMED)

    def verdict(self) -> str:
        """Sums up in one line how the policy compares with FGD."""
        groups = (
            (self.named, f"the {len(self.named)} named traces"),
            (self.rows, f"all {len(self.rows)}"),
        )
        words = " and ".join(_standing(rows, words) for rows, words in groups if rows)
        lost = sum(row.difference("alloc_100") < -TOLERANCE for row in self.rows)
        below = f"at 100 % more than {TOLERANCE} points below it on {lost} of {len(self.rows)}"
        rules = "; it may hold pods, which FGD never does" if self.may_hold else ""
        return f"{self.policy}: at 130 % above published FGD {words}; {below}{rules}"

    def as_object(self) -> dict[str, Any]:
        """Describes the comparison as JSON types."""
        return {
            "policy": self.policy,
            "may_hold": self.may_hold,
            "held": sum(row.held for row in self.rows),
            "traces": [row.as_object() for row in self.rows],
            "mean_named": mean_row(self.named, "named").as_object() if self.named else None,
            "mean_all": mean_row(self.rows, "all").as_object(),
            "verdict": self.verdict(),
        }


def published_runs(published: Published, traces: tuple[str, ...]) -> list[Experiment]:
    """Lists the published runs of FGD, the named traces first; no trace named means all."""
    runs = select(published, Selection(traces, (FGD,)))
    places = {name: place for place, name in enumerate(NAMED)}
    return sorted(runs, key=lambda run: places.get(run.trace, len(places)))


def attempt(
    experiment: Experiment, cluster: Cluster, workload: Workload, policy: Policy,
    orders: Path, published: Published,
) -> Attempt:  # fmt: skip
    """Runs a policy in the place of FGD in one published experiment."""
    result = run_again(experiment, cluster, workload, policy, orders)
    held = int(((result.holds > 0) | (result.status == HELD)).sum())
    return Attempt(Outcome(experiment, figures_of(result), published[experiment]), held)


def compare(policy: str, *, names_hold: bool, attempts: Sequence[Attempt]) -> Comparison:
    """Averages over the seeds of each trace; a policy that held pods counts as one that may."""
    traces = dict.fromkeys(each.outcome.experiment.trace for each in attempts)
    rows = [
        _row(trace, [each for each in attempts if each.outcome.experiment.trace == trace])
        for trace in traces
    ]
    may_hold = names_hold or any(row.held for row in rows)
    return Comparison(policy, may_hold, tuple(rows))


def mean_row(rows: Sequence[Row], name: str) -> Row:
    """Averages over traces, each with the same weight."""
    ours = {column: _mean([row.ours[column] for row in rows]) for column in SHOWN}
    published = {column: _mean([row.published[column] for row in rows]) for column in SHOWN}
    return Row(name, ours, published, sum(row.held for row in rows))


def _row(trace: str, attempts: Sequence[Attempt]) -> Row:
    outcomes = [each.outcome for each in attempts]
    ours = {column: _mean([each.ours[column] for each in outcomes]) for column in SHOWN}
    published = {column: _mean([each.published[column] for each in outcomes]) for column in SHOWN}
    return Row(trace, ours, published, sum(each.held for each in attempts))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _standing(rows: Sequence[Row], words: str) -> str:
    above = sum(row.difference("alloc_130") > 0 for row in rows)
    mean = mean_row(rows, words).difference("alloc_130")
    return f"on {above} of {words} (mean {mean:+.2f} points)"
