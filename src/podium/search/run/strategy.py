"""Searches numbers by CMA-ES, one generation at a time.

After N. Hansen, "The CMA Evolution Strategy: A Tutorial" (arXiv:1604.00772), with its default
weights and rates. The package cma does more, but draws from the random numbers of the whole
process, and takes seconds to be imported; a run keeps many strategies, and resumes each exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

SMALLEST_STEP = 1e-3
"""A strategy whose steps are smaller than this part of the bounds has nothing more to find."""

Floats = npt.NDArray[np.float64]


class CmaEs:
    """Keeps a normal distribution over the unit cube, and moves it to where losses are small."""

    def __init__(
        self, start: Sequence[float], sigma: float, points: int, seed: Sequence[int]
    ) -> None:
        self.points = points
        self._rng = np.random.default_rng(seed)
        self._mean, self._sigma = np.array(start, np.float64), sigma
        size = len(start)
        self._covariance = np.eye(size)
        self._path, self._sigma_path = np.zeros(size), np.zeros(size)
        self._generation = 0
        self._set_rates(size)

    def _set_rates(self, size: int) -> None:
        parents = self.points // 2
        weights = np.log((self.points + 1) / 2) - np.log(np.arange(1, parents + 1))
        self._weights: Floats = weights / weights.sum()
        mass = float(1 / (self._weights**2).sum())
        self._mass = mass
        self._rate_path = (4 + mass / size) / (size + 4 + 2 * mass / size)
        self._rate_sigma = (mass + 2) / (size + mass + 5)
        self._rate_one = 2 / ((size + 1.3) ** 2 + mass)
        rate = 2 * (mass - 2 + 1 / mass) / ((size + 2) ** 2 + mass)
        self._rate_all = max(0.0, min(1 - self._rate_one, rate))
        over = math.sqrt(max(0.0, (mass - 1) / (size + 1)))
        self._damping = 1 + 2 * max(0.0, over - 1) + self._rate_sigma
        self._length = math.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))

    @property
    def is_done(self) -> bool:
        """Returns whether its steps have become too small to matter."""
        spread = self._sigma * math.sqrt(float(np.diag(self._covariance).max()))
        return spread < SMALLEST_STEP

    def ask(self) -> list[Floats]:
        """Draws the points of a generation; what leaves the cube is mirrored back into it."""
        values, vectors = np.linalg.eigh(self._covariance)
        scale = vectors * np.sqrt(np.maximum(values, 1e-20))
        drawn = self._rng.standard_normal((self.points, len(self._mean)))
        return [_mirrored(self._mean + self._sigma * (scale @ each)) for each in drawn]

    def tell(self, points: Sequence[Floats], losses: Sequence[float]) -> None:
        """Moves to where the losses of a generation were smallest; only their order counts."""
        self._generation += 1
        order = np.argsort(np.array(losses), kind="stable")[: len(self._weights)]
        steps = (np.array([points[i] for i in order]) - self._mean) / self._sigma
        step = self._weights @ steps
        self._mean = self._mean + self._sigma * step
        is_steady = self._move_paths(step)
        fresh = (1 - is_steady) * self._rate_path * (2 - self._rate_path)
        kept = 1 - self._rate_one * (1 - fresh) - self._rate_all
        spread = (steps.T * self._weights) @ steps
        self._covariance = (
            kept * self._covariance
            + self._rate_one * np.outer(self._path, self._path)
            + self._rate_all * spread
        )
        self._covariance = (self._covariance + self._covariance.T) / 2

    def _move_paths(self, step: Floats) -> bool:
        """Follows the steps of the mean; returns whether they are of about the usual length."""
        values, vectors = np.linalg.eigh(self._covariance)
        whitened = vectors @ ((vectors.T @ step) / np.sqrt(np.maximum(values, 1e-20)))
        rate, mass = self._rate_sigma, self._mass
        turned = math.sqrt(rate * (2 - rate) * mass) * whitened
        self._sigma_path = (1 - rate) * self._sigma_path + turned
        length = float(np.linalg.norm(self._sigma_path))
        growth = rate / self._damping * (length / self._length - 1)
        self._sigma = min(1.0, self._sigma * math.exp(min(1.0, growth)))
        faded = math.sqrt(1 - (1 - rate) ** (2 * self._generation))
        is_steady = length / faded < (1.4 + 2 / (len(step) + 1)) * self._length
        rate = self._rate_path
        self._path = (1 - rate) * self._path
        if is_steady:
            self._path = self._path + math.sqrt(rate * (2 - rate) * mass) * step
        return is_steady


def _mirrored(point: Floats) -> Floats:
    """Folds every coordinate back into the range from 0 to 1.

    >>> _mirrored(np.array([-0.25, 0.5, 1.25])).tolist()
    [0.25, 0.5, 0.75]
    """
    folded = np.abs(point) % 2.0
    return np.asarray(np.where(folded > 1.0, 2.0 - folded, folded), np.float64)
