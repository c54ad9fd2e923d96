"""Fits the effects that all job types share, and predicts pairs from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from podium.online.cell import Cell
from podium.online.evidence import Evidence, Rows, evidence_of, rows_of
from podium.online.forecast import Features, Forecast
from podium.online.parameters import Parameters
from podium.online.spread import PairSpread

Array = NDArray[np.float64]
_GPUS_AT_ONCE = 8
_MOST_FORECASTS = 1000
BLOCK = 64
"""Job types in a block. Blocks are fixed, so that the sum depends on what is in them alone."""


class Posterior:
    """The Gaussian posterior of level, feature weights and GPU effects.

    Job types and GPU types are numbered from 0. The posterior is the sum of the evidence of all job
    types with the prior, taken afresh: it depends on what is in the cells, not on how it came
    there. It is worked out when it is next asked for, so that thousands of observations in a row
    cost little.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._cells: Sequence[Mapping[int, Cell]] = ()
        self._stale: set[int] = set()  # job types whose cells changed
        self._unweighed: set[int] = set()  # job types whose rows changed
        self._gpus = self._gpus_seen = _GPUS_AT_ONCE
        self._rows: list[Rows] = []
        self._evidence: list[Evidence] = []
        self._effects: tuple[Array, Array] | None = None  # mean and covariance
        self._forecasts: dict[int | None, Forecast] = {}
        self._begin()

    @property
    def width(self) -> int:
        """Counts the shared effects, with room for more GPU types."""
        return 1 + len(self._parameters.features) + self._gpus

    @property
    def pair_spread(self) -> float:
        """Estimates how far pairs differ, from all that was seen."""
        self._fitted()
        return self._pair_spread

    def update(self, cells: Sequence[Mapping[int, Cell]], job: int, gpus: int) -> None:
        """Notes that the cells of a job type changed."""
        self._cells = cells
        self._gpus_seen = max(gpus, self._gpus)
        self._stale.add(job)
        self._effects = None

    def noise_variance(self, job: int | None) -> float:
        """Returns the variance of single runs of a job type; the prior's where there is none."""
        if job is None:
            return self._parameters.prior.noise**2
        self._refresh()
        return self._rows[job].noise_variance

    def predict(
        self, job: int | None, gpus: Sequence[int | None], features: Features
    ) -> list[tuple[float, float]]:
        """Predicts mean and variance of log run time without noise; None is a type never seen."""
        effects = self._fitted()
        forecast = self._forecasts.get(job)
        if forecast is None:
            if len(self._forecasts) >= _MOST_FORECASTS:
                self._forecasts.clear()
            known = self._unseen if job is None else self._evidence[job]
            forecast = Forecast.of(known, effects, self._parameters, self._pair_spread)
            self._forecasts[job] = forecast
        return forecast.at([self._gpus if gpu is None else gpu for gpu in gpus], features)

    def _begin(self) -> None:
        prior, features = self._parameters.prior, len(self._parameters.features)
        spreads = np.full(self.width, prior.gpu_spread)
        spreads[0], spreads[1 : features + 1] = prior.level_spread, prior.feature_spread
        self._shared_precision = spreads**-2
        self._unseen = Evidence.none(prior, self.width, features)
        self._spread = PairSpread(prior, self._shared_precision)
        self._rows = []
        self._follow(prior.pair_spread)

    def _follow(self, pair_spread: float) -> None:
        """Recomputes all evidence for another spread of pairs, which happens rarely."""
        self._pair_spread = pair_spread
        self._evidence = []
        self._totals = Totals(self.width)
        self._unweighed = set(range(len(self._rows)))

    def _refresh(self) -> None:
        if self._gpus_seen > self._gpus:
            self._gpus = -(-self._gpus_seen // _GPUS_AT_ONCE) * _GPUS_AT_ONCE
            self._begin()
            self._stale.update(range(len(self._cells)))
        for job in sorted(self._stale):
            self._take(job)
        self._stale.clear()

    def _take(self, job: int) -> None:
        prior, level = self._parameters.prior, self._parameters.level
        rows = rows_of(self._cells[job], prior, self.width, level)
        self._rows[job : job + 1] = [rows]
        self._spread.update(job, rows)
        self._unweighed.add(job)

    def _weigh(self) -> None:
        spread = self._spread.likeliest()
        if spread != self._pair_spread:
            self._follow(spread)
        for job in sorted(self._unweighed):
            made = evidence_of(self._rows[job], self._parameters.prior, self.width, spread)
            self._evidence[job : job + 1] = [made]
            self._totals.put(job, made)
        self._unweighed.clear()

    def _fitted(self) -> tuple[Array, Array]:
        if self._effects is not None:
            return self._effects
        self._refresh()
        self._weigh()
        precision, shift = self._totals.sums()
        inverse = np.linalg.inv(precision + np.diag(self._shared_precision))
        covariance = np.asarray(inverse, dtype=np.float64)
        mean: Array = covariance @ shift
        self._effects = mean, covariance
        self._forecasts.clear()
        return self._effects


class Totals:
    """Sums the evidence of all job types; where one changes, only its block is summed again."""

    def __init__(self, width: int) -> None:
        self._precision = np.zeros((0, BLOCK, width, width))
        self._shift = np.zeros((0, BLOCK, width))
        self._block_precision = np.zeros((0, width, width))
        self._block_shift = np.zeros((0, width))
        self._stale: set[int] = set()

    def put(self, job: int, evidence: Evidence) -> None:
        """Replaces the evidence of a job type."""
        block, place = divmod(job, BLOCK)
        if block >= len(self._precision):
            self._grow(block + 1 - len(self._precision))
        self._precision[block, place] = evidence.precision
        self._shift[block, place] = evidence.shift
        self._stale.add(block)

    def sums(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns precision and shift over all job types."""
        for block in self._stale:
            self._block_precision[block] = self._precision[block].sum(axis=0)
            self._block_shift[block] = self._shift[block].sum(axis=0)
        self._stale.clear()
        return self._block_precision.sum(axis=0), self._block_shift.sum(axis=0)

    def _grow(self, least: int) -> None:
        more = max(least, len(self._precision) // 2)
        self._precision = _longer(self._precision, more)
        self._shift = _longer(self._shift, more)
        self._block_precision = _longer(self._block_precision, more)
        self._block_shift = _longer(self._block_shift, more)


def _longer(array: NDArray[np.float64], more: int) -> NDArray[np.float64]:
    return np.concatenate([array, np.zeros((more, *array.shape[1:]))])
