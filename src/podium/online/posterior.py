"""Fits the effects that all job types share, and predicts pairs from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from podium.online.cell import Cell
from podium.online.evidence import Evidence, evidence_of
from podium.online.parameters import Parameters

Features = tuple[float | None, ...]
_GPUS_AT_ONCE, _JOBS_AT_ONCE = 8, 16


class Posterior:
    """Holds the Gaussian posterior of level, feature weights and GPU effects.

    Job types and GPU types are numbered from 0. The evidence of every job type stands in one array,
    and the posterior is their sum with the prior, taken afresh: it depends on what is in the cells,
    not on how it came there.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._gpus = _GPUS_AT_ONCE
        self._evidence: list[Evidence] = []
        self._mean: NDArray[np.float64] | None = None
        self._covariance = np.zeros((0, 0))
        self._grow(0)

    @property
    def width(self) -> int:
        """Counts the shared effects, with room for more GPU types."""
        return 1 + len(self._parameters.features) + self._gpus

    def update(self, jobs: Sequence[Mapping[int, Cell]], job: int, gpus: int) -> None:
        """Takes the cells of one job type anew."""
        if gpus > self._gpus:
            self._gpus = -(-gpus // _GPUS_AT_ONCE) * _GPUS_AT_ONCE
            self._evidence = []
        if job >= len(self._precision) or not self._evidence:
            self._grow(_JOBS_AT_ONCE + 2 * len(jobs))
        for number in range(len(self._evidence), len(jobs)):
            self._evidence.append(self._put(number, jobs[number]))
        self._evidence[job] = self._put(job, jobs[job])
        self._mean = None

    def _grow(self, room: int) -> None:
        self._precision = np.zeros((room, self.width, self.width))
        self._shift = np.zeros((room, self.width))
        self._evidence = []
        features = len(self._parameters.features)
        self._unseen = Evidence.none(self._parameters.prior, self.width, features)

    def _put(self, job: int, cells: Mapping[int, Cell]) -> Evidence:
        made = evidence_of(cells, self._parameters.prior, self.width, self._parameters.level)
        self._precision[job] = made.precision
        self._shift[job] = made.shift
        return made

    def noise_variance(self, job: int | None) -> float:
        """Gives the variance of single runs of a job type; the prior's where there is none."""
        return (self._unseen if job is None else self._evidence[job]).noise_variance

    def _fit(self) -> NDArray[np.float64]:
        prior, count = self._parameters.prior, len(self._parameters.features)
        spreads = np.full(self.width, prior.gpu_spread)
        spreads[0], spreads[1 : count + 1] = prior.level_spread, prior.feature_spread
        precision = self._precision.sum(axis=0) + np.diag(spreads**-2)
        self._covariance = np.linalg.inv(precision)
        mean: NDArray[np.float64] = self._covariance @ self._shift.sum(axis=0)
        return mean

    def predict(
        self, job: int | None, gpus: Sequence[int | None], features: Features
    ) -> list[tuple[float, float]]:
        """Gives mean and variance of log run time without noise; None is a type never seen."""
        if self._mean is None:
            self._mean = self._fit()
        prior, count = self._parameters.prior, len(features)
        known = self._unseen if job is None else self._evidence[job]
        place = [self._gpus if gpu is None else gpu for gpu in gpus]
        design = np.zeros((len(gpus), self.width + 1))
        design[:, 0] = 1.0
        design[:, 1 : count + 1] = _filled(features, known)
        design[range(len(gpus)), [1 + count + each for each in place]] = 1.0
        share = known.shares[place]
        rest = 1.0 - share
        # What its own runs contain is known already, shared effects and all.
        left = (
            design[:, :-1] - np.outer(rest, known.job_slope) - share[:, None] * known.designs[place]
        )
        mean = rest * known.job_mean + share * known.means[place] + left @ self._mean
        variance = (
            prior.pair_spread**2 * rest
            + rest**2 / known.job_precision
            + prior.gpu_spread**2 * design[:, -1]
            + ((left @ self._covariance) * left).sum(axis=1)
        )
        mean += self._parameters.level
        return list(zip(mean.tolist(), variance.tolist(), strict=True))


def _filled(features: Features, known: Evidence) -> list[float]:
    """Fills in features that cannot be compared: with those of the job type's usual runs.

    A feature that is given now and never was with the observations of this job type, or the other
    way round, says nothing about how this run differs from those.
    """
    usual = zip(features, known.center, known.comparable, strict=True)
    return [value if value is not None and is_known else mean for value, mean, is_known in usual]
