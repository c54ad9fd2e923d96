"""What was seen of one job type on one GPU type: a count, means and scatter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


@dataclass(slots=True)
class Cell:
    """Sums up rows (log run time, features): sufficient for the model, and mergeable.

    Means and centred scatter are updated as Welford and Chan do, which loses no digits however many
    rows there are.
    """

    observations: int
    weight: float  # equals the observations unless they are forgotten
    mean: Vector
    scatter: NDArray[np.float64]
    given: Vector  # weight of the rows that gave each feature

    @classmethod
    def empty(cls, features: int) -> Cell:
        """Returns a cell without observations."""
        size = features + 1
        return cls(0, 0.0, np.zeros(size), np.zeros((size, size)), np.zeros(features))

    def add(self, log_runtime: float, features: tuple[float | None, ...]) -> None:
        """Adds one row; a missing feature counts as zero."""
        row = np.array([log_runtime, *(value or 0.0 for value in features)])
        self.observations += 1
        self.weight += 1.0
        before = row - self.mean
        self.mean += before / self.weight
        self.scatter += np.outer(before, before) * ((self.weight - 1.0) / self.weight)
        self.given += [value is not None for value in features]

    def fade(self, share: float) -> None:
        """Reduces the weight of what was seen."""
        self.weight *= share
        self.scatter *= share
        self.given *= share

    def merge(self, other: Cell) -> None:
        """Adds all rows of another cell."""
        total = self.weight + other.weight
        if total > 0.0:
            apart = other.mean - self.mean
            self.mean = self.mean + apart * (other.weight / total)
            self.scatter = (
                self.scatter
                + other.scatter
                + np.outer(apart, apart) * (self.weight * other.weight / total)
            )
        self.weight = total
        self.observations += other.observations
        self.given = self.given + other.given

    def as_object(self) -> dict[str, Any]:
        """Returns the cell as JSON types; numbers read back exactly."""
        return {
            "observations": self.observations,
            "weight": self.weight,
            "mean": self.mean.tolist(),
            "scatter": self.scatter.tolist(),
            "given": self.given.tolist(),
        }

    @classmethod
    def from_object(cls, data: Mapping[str, Any]) -> Cell:
        """Reads a cell back."""
        return cls(
            int(data["observations"]),
            float(data["weight"]),
            np.array(data["mean"], dtype=np.float64),
            np.array(data["scatter"], dtype=np.float64),
            np.array(data["given"], dtype=np.float64),
        )
