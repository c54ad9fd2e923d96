"""Learns how far job types differ in which GPU types suit them.

Where all jobs run best on the same GPU types, a few runs tell where a new one belongs; where every
pair is for itself, each has to be tried. Which it is shows in the spread of the pair effects. A few
values of it are compared by how likely they make what was seen, and what is expected beforehand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.online.evidence import Rows, Shared
from podium.online.parameters import Prior

SPREADS = np.array([0.15, 0.3, 0.5, 0.8, 1.2, 1.8])
MOST_JOB_TYPES = 64
"""The first so many job types are looked at: enough for one number, and cheap for ever."""


class PairSpread:
    """Compares spreads of the pair effects."""

    def __init__(self, prior: Prior, shared_precision: NDArray[np.float64]) -> None:
        self._prior = prior
        self._shared_precision = shared_precision  # of the shared effects, before data
        size, width = (0, len(SPREADS)), len(shared_precision)
        self._precision = np.zeros((*size, width, width))
        self._shift = np.zeros((*size, width))
        self._fit = np.zeros(size)
        doubt = np.log(SPREADS / prior.pair_spread) / prior.pair_spread_doubt
        self._expected = -0.5 * doubt**2

    def update(self, job: int, rows: Rows) -> None:
        """Replaces the rows of a job type; job types come in the order of their numbers."""
        if job >= MOST_JOB_TYPES:
            return
        shared = Shared.of(rows, self._prior, SPREADS)
        if job == len(self._fit):
            self._precision = np.concatenate([self._precision, shared.precision[None]])
            self._shift = np.concatenate([self._shift, shared.shift[None]])
            self._fit = np.concatenate([self._fit, shared.fit[None]])
            return
        self._precision[job], self._shift[job] = shared.precision, shared.shift
        self._fit[job] = shared.fit

    def likeliest(self) -> float:
        """Returns the spread that is most likely after all that was seen."""
        precision = self._precision.sum(axis=0) + np.diag(self._shared_precision)
        shift = self._shift.sum(axis=0)
        # The shared effects are integrated out as well: they are common to all values compared.
        known = np.linalg.solve(precision, shift[:, :, None])[:, :, 0]
        gain = 0.5 * (shift * known).sum(axis=1) - 0.5 * np.linalg.slogdet(precision).logabsdet
        return float(SPREADS[np.argmax(self._fit.sum(axis=0) + gain + self._expected)])
