"""Holds what policies reached on held-out cases, and takes paired differences of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.evaluation.cases import Case
from podium.evaluation.measures import Values
from podium.evaluation.resampling import interval
from podium.search.judging.scrutiny import Held

Column = npt.NDArray[np.float64]

SHOWN_SEED = 2023
"""Of the resampling of intervals that are shown."""


@dataclass(frozen=True, slots=True, order=True)
class Group:
    """Names cases that differ in their seed alone."""

    trace: str
    protocol: str
    is_perturbed: bool

    @classmethod
    def of(cls, case: Case) -> Group:
        """Finds the group of a case."""
        return cls(case.trace, case.protocol, case.is_perturbed)

    @property
    def name(self) -> str:
        """Says in a few words which cases these are."""
        kind = " perturbed" if self.is_perturbed else ""
        return f"{self.trace}{kind}" + (" replay" if self.protocol == "replay" else "")


Selection = Callable[[Group], bool]


@dataclass(frozen=True, slots=True)
class Difference:
    """Holds the mean of paired differences to another policy, and its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Row:
    """Sets a policy beside the baselines on one group of cases."""

    group: Group
    is_trained_on: bool  # whether the search saw this trace, with other seeds
    seeds: int
    means: dict[str, float]  # by figure
    differences: dict[str, dict[str, Difference]]  # by baseline, then by figure

    def as_object(self) -> dict[str, Any]:
        """Describes the row in what JSON knows."""
        return {
            "trace": self.group.trace,
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


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Holds the figures of every policy on every case."""

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
        """Gives one figure, seed by seed."""
        return np.array([values[figure] for _, values in self._rows(policy, group.__eq__)])

    def seed_gains(self, policy: str, other: str, figure: str, selection: Selection) -> Column:
        """Gives for each seed the mean difference over the selected groups that know the figure.

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
    ) -> tuple[Row, ...]:
        """Sets a policy beside baselines, group by group."""
        return tuple(self._row(policy, baselines, group, trained) for group in self.groups())

    def _row(
        self, policy: str, baselines: tuple[str, ...], group: Group, trained: frozenset[str]
    ) -> Row:
        figures = self.figures(group)
        columns = {figure: self.column(policy, figure, group) for figure in figures}
        differences = {
            name: {
                figure: difference(columns[figure] - self.column(name, figure, group))
                for figure in figures
                if not figure.startswith("placed")
            }
            for name in baselines
        }
        means = {figure: float(column.mean()) for figure, column in columns.items()}
        count = len(next(iter(columns.values())))
        return Row(group, group.trace in trained, count, means, differences)

    def _rows(self, policy: str, selection: Selection) -> Iterator[tuple[Case, Values]]:
        for case, values in zip(self.cases, self.values[policy], strict=True):
            if selection(Group.of(case)):
                yield case, values


def difference(gains: Column) -> Difference:
    """Summarises paired differences."""
    low, high = interval(gains, np.random.default_rng(SHOWN_SEED))
    return Difference(float(gains.mean()), low, high)
