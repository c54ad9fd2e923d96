"""Statistics of the runs of one job type beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(slots=True)
class Runs:
    """Sums up runs on one GPU type; counts are neighbours by job type."""

    weight: float
    total: float  # of log run time
    counts: Array
    pairs: Array  # products of counts
    products: Array  # of counts and log run time

    @classmethod
    def empty(cls, size: int) -> Runs:
        """Returns empty sums."""
        return cls(0.0, 0.0, np.zeros(size), np.zeros((size, size)), np.zeros(size))

    def excess(self, solo: float) -> Array:
        """Sums how much longer runs were than alone, for each neighbour."""
        return self.products - self.counts * solo

    def resized(self, place: NDArray[np.intp], size: int) -> Runs:
        """Returns the same sums with neighbours at other places among more of them."""
        made = Runs.empty(size)
        made.weight, made.total = self.weight, self.total
        made.counts[place] = self.counts
        made.products[place] = self.products
        made.pairs[np.ix_(place, place)] = self.pairs
        return made

    def among(self, place: NDArray[np.intp]) -> Runs:
        """Returns the same sums over some of the neighbours; the others were never there."""
        return Runs(
            self.weight,
            self.total,
            self.counts[place],
            self.pairs[np.ix_(place, place)],
            self.products[place],
        )

    def plus(self, other: Runs) -> Runs:
        """Adds other sums over the same neighbours."""
        return Runs(
            self.weight + other.weight,
            self.total + other.total,
            self.counts + other.counts,
            self.pairs + other.pairs,
            self.products + other.products,
        )

    def times(self, share: float) -> Runs:
        """Reduces the weight of what was seen."""
        return Runs(
            self.weight * share,
            self.total * share,
            self.counts * share,
            self.pairs * share,
            self.products * share,
        )


@dataclass(slots=True)
class CoRuns:
    """The runs of a job type beside others, by GPU type."""

    neighbours: list[str] = field(default_factory=list)
    runs: dict[str, Runs] = field(default_factory=dict)

    def add(self, gpu_type: str, log_runtime: float, beside: Mapping[str, int]) -> None:
        """Adds one run."""
        self._meet(beside)
        counts = np.array([beside.get(name, 0) for name in self.neighbours], dtype=np.float64)
        run = Runs(1.0, log_runtime, counts, np.outer(counts, counts), counts * log_runtime)
        self.runs[gpu_type] = self._known(gpu_type).plus(run)

    def fade(self, share: float) -> None:
        """Reduces the weight of what was seen."""
        if share < 1.0:
            self.runs = {gpu_type: runs.times(share) for gpu_type, runs in self.runs.items()}

    def merge(self, other: CoRuns) -> None:
        """Adds all runs of another."""
        self._meet(other.neighbours)
        place = np.array([self.neighbours.index(name) for name in other.neighbours], dtype=np.intp)
        for gpu_type, runs in other.runs.items():
            moved = runs.resized(place, len(self.neighbours))
            self.runs[gpu_type] = self._known(gpu_type).plus(moved)

    def as_object(self) -> dict[str, Any]:
        """Returns the runs as JSON types."""
        runs = {
            gpu_type: {
                "weight": each.weight,
                "total": each.total,
                "counts": each.counts.tolist(),
                "pairs": each.pairs.tolist(),
                "products": each.products.tolist(),
            }
            for gpu_type, each in self.runs.items()
        }
        return {"neighbours": list(self.neighbours), "runs": runs}

    @classmethod
    def from_object(cls, data: Mapping[str, Any]) -> CoRuns:
        """Reads runs back."""
        runs = {
            gpu_type: Runs(
                float(each["weight"]),
                float(each["total"]),
                np.array(each["counts"], dtype=np.float64),
                np.array(each["pairs"], dtype=np.float64),
                np.array(each["products"], dtype=np.float64),
            )
            for gpu_type, each in data["runs"].items()
        }
        made = cls()
        made.merge(cls(list(data["neighbours"]), runs))  # which puts neighbours in order
        return made

    def without_gpu_type(self, name: str) -> CoRuns:
        """Returns the same without the runs on a GPU type."""
        return self._kept({gpu: runs for gpu, runs in self.runs.items() if gpu != name})

    def without_neighbour(self, name: str) -> CoRuns:
        """Returns the same without the runs on GPU types where one was beside the neighbour.

        Sums do not tell which of the runs there those were.
        """
        if name not in self.neighbours:
            return self
        place = self.neighbours.index(name)
        return self._kept({gpu: runs for gpu, runs in self.runs.items() if not runs.counts[place]})

    def _kept(self, runs: dict[str, Runs]) -> CoRuns:
        met = [any(each.counts[i] for each in runs.values()) for i in range(len(self.neighbours))]
        place = np.flatnonzero(met)
        names = [self.neighbours[i] for i in place]
        return CoRuns(names, {gpu: each.among(place) for gpu, each in runs.items()})

    def _known(self, gpu_type: str) -> Runs:
        return self.runs.get(gpu_type) or Runs.empty(len(self.neighbours))

    def _meet(self, names: Mapping[str, int] | list[str]) -> None:
        # In the order of their names: it must not matter who was met first.
        known = sorted({*self.neighbours, *names})
        if len(known) > len(self.neighbours):
            place = np.array([known.index(name) for name in self.neighbours], dtype=np.intp)
            self.neighbours = known
            size = len(known)
            self.runs = {gpu: runs.resized(place, size) for gpu, runs in self.runs.items()}
