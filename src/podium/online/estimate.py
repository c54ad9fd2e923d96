"""The estimate of a run time, in logarithms and in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

WIDEST = 1.0
"""A spread of log run time above this (a factor of e) counts as this in seconds.

The mean of a log-normal grows with exp(spread²/2). For a job type of which nothing is known it
would be days, whatever the median.
"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is known of the run time of a job type on a GPU type.

    The expected run time is exp(f + noise/2), where f, the log run time without noise, is Gaussian.
    So the expected run time is log-normal; `mu` is its mean and `sigma` its standard deviation.
    Sigma is what is not known about the expectation, not the noise of single runs: it falls like
    one over the square root of the observations.
    """

    log_mean: float
    log_variance: float  # of what is not known; without the noise of single runs
    noise_variance: float
    observations: int
    mu: float
    sigma: float

    @classmethod
    def of(cls, mean: float, variance: float, noise: float, observations: int) -> Estimate:
        """Computes the moments of the log-normal distribution."""
        spread = min(max(variance, 0.0), WIDEST**2)
        mu = math.exp(min(mean + 0.5 * (noise + spread), 700.0))
        return cls(mean, variance, noise, observations, mu, mu * math.sqrt(math.expm1(spread)))
