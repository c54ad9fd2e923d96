"""Learns the noise of single runs: common to all job types at first, then of each one.

Runs that do not give a feature which their job type gives otherwise vary more, as that feature is
not known of them: their noise is learned apart.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from podium.online.parameters import Prior

Vector = NDArray[np.float64]

STEP = 0.1
"""Of the logarithm: the common noise moves in steps, as each changes all that is known."""

_MOST_FREEDOM = 20.0
"""Runs of one job type that count for the common noise; one job type must not set it alone."""

_LEAST_FREEDOM, _LEAST_JOB_TYPES = 4.0, 5
_WEIGHTS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""What the common noise may be worth; compared where enough job types ran often enough."""

Z95 = 1.645
_T95 = (Z95, 1.697, 1.753, 1.812, 1.860, 1.943, 2.015, 2.132, 2.353, 2.920, 6.314)
_SHARES = (0.0, 1 / 30, 1 / 15, 0.1, 0.125, 1 / 6, 0.2, 0.25, 1 / 3, 0.5, 1.0)
"""The 95 % point of Student's t, by one over its degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The variance of log run time, of runs that give all features and of others."""

    variance: tuple[float, float]
    freedom: tuple[float, float]  # observations that it is known from
    weight: float  # observations that it is worth for a job type; many where all are alike


class CommonNoise:
    """The noise of all job types together."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._squares = np.zeros((0, 2))
        self._freedom = np.zeros((0, 2))

    def put(self, job: int, squares: Vector, freedom: Vector) -> None:
        """Replaces what the runs of a job type show."""
        if job >= len(self._squares):
            more = np.zeros((max(job + 1 - len(self._squares), len(self._squares) // 2), 2))
            self._squares = np.concatenate([self._squares, more])
            self._freedom = np.concatenate([self._freedom, more])
        self._squares[job], self._freedom[job] = squares, freedom

    def known(self) -> Noise:
        """Estimates the common variance, in steps."""
        start = self._prior.noise**2
        complete, freedom = self._typical(0, start)
        partial, other = self._typical(1, complete)
        return Noise((complete, max(complete, partial)), (freedom, other), self._weight())

    def _weight(self) -> float:
        """Estimates how alike job types are: how far their noise differs beyond what luck does.

        The logarithm of a variance from n observations varies by about 2/n + 2/n².
        """
        is_told = self._freedom[:, 0] >= _LEAST_FREEDOM
        if is_told.sum() < _LEAST_JOB_TYPES:
            return self._prior.own_noise_weight
        freedom = self._freedom[is_told, 0]
        own = np.log(np.maximum(self._squares[is_told, 0] / freedom, 1e-12))
        luck = 2.0 / freedom + 2.0 / freedom**2
        trust = 1.0 / (luck + 0.1)
        mean = float(trust @ own / trust.sum())
        beyond = float(trust @ ((own - mean) ** 2 - luck) / trust.sum())
        fitting = [each for each in _WEIGHTS if 2.0 / each >= beyond]
        return fitting[-1] if fitting else _WEIGHTS[0]

    def _typical(self, place: int, expected: float) -> tuple[float, float]:
        """Estimates the mean of all job types, then a typical one around it.

        The mean is that of a few wild job types; the typical one is a mean of logarithms.
        """
        prior, weight = self._prior.noise_weight, self._prior.own_noise_weight
        squares, freedom = self._squares[:, place], self._freedom[:, place]
        counted = np.minimum(freedom, _MOST_FREEDOM)
        total = prior + float(counted.sum())
        seen = float(squares @ (counted / np.maximum(freedom, 1e-9)))
        mean = (prior * expected + seen) / total
        own = np.log((weight * mean + squares) / (weight + freedom))
        typical = (prior * math.log(mean) + float(counted @ own)) / total
        return _stepped(math.exp(typical)), total


def own_noise(common: Noise, squares: Vector, freedom: Vector) -> Noise:
    """Estimates the noise of a job type from its own runs and the common noise."""
    weight = common.weight
    variance, known = [], []
    for place in (0, 1):
        total = weight + float(freedom[place])
        squared = weight * common.variance[place] + float(squares[place])
        variance.append(squared / total)
        known.append(1.0 / (1.0 / total + weight / total / common.freedom[place]))
    return Noise((variance[0], variance[1]), (known[0], known[1]), weight)


@lru_cache(maxsize=1024)  # asked for each candidate of a job, whose noise is one
def t95(freedom: float) -> float:
    """Returns the 95 % point of Student's t."""
    share = min(1.0 / freedom, 1.0)
    at = max(bisect_left(_SHARES, share), 1)
    low, high = _SHARES[at - 1], _SHARES[at]
    return _T95[at - 1] + (_T95[at] - _T95[at - 1]) * (share - low) / (high - low)


def _stepped(variance: float) -> float:
    return math.exp(2.0 * STEP * round(0.5 * math.log(variance) / STEP))
