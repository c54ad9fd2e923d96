"""Forecasts one job type on every GPU type, as a function of its features.

In the features the mean is linear and the variance quadratic. Both are worked out once for mean
features, so that a request costs a few multiplications.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np
from numpy.typing import NDArray

from podium.online.evidence import Evidence
from podium.online.parameters import Parameters

Array = NDArray[np.float64]
Features = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """Mean and variance of log run time; places are GPU types, the last is a new one."""

    means: list[float]
    variances: list[float]
    tilts: list[list[float]]  # how the variance of each place changes with each feature
    slope: list[float]  # how the mean changes with each feature
    bend: list[list[float]]
    center: list[float]  # mean features of its runs
    comparable: tuple[bool, ...]

    @classmethod
    def of(
        cls,
        known: Evidence,
        effects: tuple[Array, Array],
        parameters: Parameters,
        pair_spread: float,
    ) -> Forecast:
        """Works out every place; effects are mean and covariance of what all job types share."""
        mean, covariance = effects
        count, places = len(known.center), len(known.shares)
        design = np.zeros((places, len(mean) + 1))
        design[:, 0] = 1.0
        design[:, 1 : count + 1] = known.center
        design[:, 1 + count :] = np.eye(places)
        share, rest = known.shares, 1.0 - known.shares
        # What its own runs contain is known already, shared effects and all.
        left = design[:, :-1] - np.outer(rest, known.job_slope) - share[:, None] * known.designs
        spread = left @ covariance
        variances = pair_spread**2 * rest + rest**2 / known.job_precision
        variances += (spread * left).sum(axis=1)
        variances[-1] += parameters.prior.gpu_spread**2
        means = rest * known.job_mean + share * known.means + left @ mean
        inner = slice(1, count + 1)
        return cls(
            (means + parameters.level).tolist(),
            variances.tolist(),
            (2.0 * spread[:, inner]).tolist(),
            mean[inner].tolist(),
            covariance[inner, inner].tolist(),
            known.center,
            known.comparable,
        )

    def at(self, places: Sequence[int], features: Features) -> list[tuple[float, float]]:
        """Returns mean and variance at some places."""
        away = self._away(features)
        if not any(away):
            return [(self.means[place], self.variances[place]) for place in places]
        shift = _dot(away, self.slope)
        bend = _dot(away, [_dot(away, row) for row in self.bend])
        return [
            (
                self.means[place] + shift,
                self.variances[place] + _dot(away, self.tilts[place]) + bend,
            )
            for place in places
        ]

    def _away(self, features: Features) -> list[float]:
        """Returns how far features are from the mean of its runs, where they can be compared.

        A feature that is given now and never was with the observations of this job type, or the
        other way round, says nothing about how this run differs from those.
        """
        rows = zip(features, self.center, self.comparable, strict=True)
        return [
            value - mean if value is not None and is_known else 0.0
            for value, mean, is_known in rows
        ]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    total: float = sum(map(mul, one, other))
    return total
