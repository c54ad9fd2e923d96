"""Evolution strategies: a distribution of weights that moves to where whole runs come out better.

Separable CMA-ES: Ros and Hansen, "A Simple Modification in CMA-ES Achieving Linear Time and Space
Complexity", PPSN 2008. The middle of the distribution is what is learned: it is better than what
the best of a generation owes to luck.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from podium.rl.learner import count_of, like

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """A normal distribution of weights with a variance for each."""

    mean: Array
    variance: Array  # relative to sigma
    sigma: float
    sigma_path: Array
    variance_path: Array
    generation: int = 0

    @classmethod
    def around(cls, mean: Array, scales: Array, sigma: float) -> Distribution:
        """Begins around weights."""
        nothing = np.zeros_like(mean)
        return cls(mean.copy(), np.square(scales), sigma, nothing, nothing)

    def as_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Writes the distribution as arrays."""
        return {
            "distribution/mean": self.mean,
            "distribution/variance": self.variance,
            "distribution/sigma": np.array([self.sigma]),
            "distribution/sigma_path": self.sigma_path,
            "distribution/variance_path": self.variance_path,
            "distribution/generation": np.array([self.generation]),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Distribution | None:
        """Reads what `as_arrays` wrote; nothing where there is none."""
        if "distribution/mean" not in arrays:
            return None
        mean = arrays["distribution/mean"]
        variance, sigma_path, variance_path = (
            like(mean, arrays, f"distribution/{name}")
            for name in ("variance", "sigma_path", "variance_path")
        )
        sigma = float(like(np.zeros(1), arrays, "distribution/sigma")[0])
        generation = count_of(arrays, "distribution/generation")
        return cls(mean, variance, sigma, sigma_path, variance_path, generation)

    def widened(self, sigma: float) -> Distribution:
        """Begins again from where it is, with a larger step and no memory of its way."""
        nothing = np.zeros_like(self.mean)
        return replace(self, sigma=sigma, sigma_path=nothing, variance_path=nothing)

    def drawn(self, rng: np.random.Generator, population: int) -> Array:
        """Draws (population, weights)."""
        steps = rng.normal(size=(population, len(self.mean))) * np.sqrt(self.variance)
        drawn: Array = self.mean + self.sigma * steps
        return drawn

    def moved(self, drawn: Array, worth: Array) -> Distribution:
        """Moves towards what was drawn and is worth more."""
        rates = _Rates.of(len(self.mean), len(drawn))
        best = drawn[np.argsort(-worth, kind="stable")[: len(rates.weights)]]
        steps = (best - self.mean) / self.sigma
        step = rates.weights @ steps
        deviation = np.sqrt(self.variance)
        sigma_path = (1 - rates.sigma) * self.sigma_path + (
            math.sqrt(rates.sigma * (2 - rates.sigma) * rates.selected) * step / deviation
        )
        # The expected length of the path, were there no selection.
        length = float(np.linalg.norm(sigma_path)) / math.sqrt(len(self.mean))
        is_steady = length < 1.4 + 2 / (len(self.mean) + 1)
        variance_path = (1 - rates.path) * self.variance_path + (
            math.sqrt(rates.path * (2 - rates.path) * rates.selected) * step if is_steady else 0.0
        )
        variance = (
            (1 - rates.one - rates.many) * self.variance
            + rates.one * np.square(variance_path)
            + rates.many * (rates.weights @ np.square(steps))
        )
        growth = math.exp(min(1.0, rates.sigma / rates.damping * (length - 1)))
        return Distribution(
            self.mean + self.sigma * step, variance, self.sigma * growth, sigma_path,
            variance_path, self.generation + 1,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Rates:
    """The constants of CMA-ES, by the usual rules."""

    weights: Array
    selected: float  # how many of a generation count, by their weights
    sigma: float
    damping: float
    path: float
    one: float
    many: float

    @classmethod
    def of(cls, size: int, population: int) -> _Rates:
        half = population // 2
        raw = math.log((population + 1) / 2) - np.log(np.arange(1, half + 1))
        weights = raw / raw.sum()
        selected = 1 / float(np.square(weights).sum())
        sigma = (selected + 2) / (size + selected + 5)
        damping = 1 + 2 * max(0.0, math.sqrt((selected - 1) / (size + 1)) - 1) + sigma
        path = (4 + selected / size) / (size + 4 + 2 * selected / size)
        # Only variances are learned, one for each weight: that may go faster.
        faster = (size + 2) / 3
        one = faster * 2 / ((size + 1.3) ** 2 + selected)
        many = faster * 2 * (selected - 2 + 1 / selected) / ((size + 2) ** 2 + selected)
        return cls(weights, selected, sigma, damping, path, min(1.0, one), min(1 - one, many))
