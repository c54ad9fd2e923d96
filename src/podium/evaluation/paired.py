"""Compares policies pair by pair: both meet the same cases, and their differences are resampled.

Every comparison goes through here: rankings, validation, promotion, strategies of a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
EXACT_PAIRS = 14
"""Up to so many pairs all patterns of signs are tried; above that they are drawn."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of paired differences to another policy, and its confidence interval."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(
        cls, differences: Values, random: np.random.Generator, level: float = 0.95
    ) -> Difference:
        """Summarises paired differences, or any values that have a mean."""
        return cls(float(differences.mean()), *interval(differences, random, level))


def interval(
    values: Values, random: np.random.Generator, level: float = 0.95
) -> tuple[float, float]:
    """Returns the bootstrap interval of the mean; a point where there is one value.

    >>> interval(np.array([2.0, 2.0, 2.0]), np.random.default_rng(0))
    (2.0, 2.0)
    """
    if len(values) < 2 or np.ptp(values) == 0:
        return float(values.mean()), float(values.mean())
    picks = random.integers(len(values), size=(RESAMPLES, len(values)))
    outside = 50 * (1 - level)
    low, high = np.percentile(values[picks].mean(axis=1), [outside, 100 - outside])
    return float(low), float(high)


def sign_flip_p(differences: Values, random: np.random.Generator) -> float:
    """Tests whether paired differences are centred on 0 by flipping their signs.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.random.default_rng(0))
    0.0625
    """
    count = len(differences)
    observed = abs(float(differences.sum()))
    if count <= EXACT_PAIRS:
        patterns = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        sums = np.abs((1 - 2 * patterns) @ differences)
        return float((sums >= observed - 1e-12 * max(1.0, observed)).mean())
    signs = random.choice([-1.0, 1.0], size=(RESAMPLES, count))
    sums = np.abs(signs @ differences)
    hits = int((sums >= observed - 1e-12 * max(1.0, observed)).sum())
    return (hits + 1) / (RESAMPLES + 1)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Corrects p-values for their number: the chance that any is below by luck stays as named.

    Holm, "A simple sequentially rejective multiple test procedure", 1979.

    >>> holm([0.25, 0.125, 0.5])
    (0.5, 0.375, 0.5)
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = highest
    return tuple(corrected)
