"""Compares policies pair by pair: both meet the same cases, and their differences are resampled.

Every comparison goes through here: rankings, validation, promotion, strategies of a search. Runs
of two strategies are no pairs: they are compared as two groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

RESAMPLES = 10_000
EXACT_PAIRS = 14
"""Up to so many pairs all patterns of signs are tried; above that they are drawn."""

EXACT_EXCHANGES = 200_000
"""Up to so many all ways to deal values to two groups are tried; above that they are drawn."""

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


def lead_of(
    own: Values, other: Values, random: np.random.Generator, level: float = 0.95
) -> Difference:
    """Returns the difference of the means of two groups, with its bootstrap interval."""
    means = [
        each[random.integers(len(each), size=(RESAMPLES, len(each)))].mean(axis=1)
        for each in (own, other)
    ]
    outside = 50 * (1 - level)
    low, high = np.percentile(means[0] - means[1], [outside, 100 - outside])
    return Difference(float(own.mean() - other.mean()), float(low), float(high))


def exchange_p(own: Values, other: Values, random: np.random.Generator) -> float:
    """Tests whether two groups have the same mean by dealing their values anew.

    >>> exchange_p(np.array([4.0, 5.0, 6.0]), np.array([1.0, 2.0, 3.0]), np.random.default_rng(0))
    0.1
    """
    values, count = np.concatenate([own, other]), len(own)
    observed = abs(float(own.mean() - other.mean()))
    if math.comb(len(values), count) <= EXACT_EXCHANGES:
        picks = np.array(list(combinations(range(len(values)), count)))
        added = 0
    else:
        order = random.permuted(np.tile(np.arange(len(values)), (RESAMPLES, 1)), axis=1)
        picks, added = order[:, :count], 1
    sums = values[picks].sum(axis=1)
    gaps = np.abs(sums / count - (values.sum() - sums) / len(other))
    hits = int((gaps >= observed - 1e-12 * max(1.0, observed)).sum())
    return (hits + added) / (len(picks) + added)


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
