"""The estimate of a run time, in logarithms and in seconds."""

from __future__ import annotations

import math
from typing import NamedTuple

from podium.online.noise import Z95, t95
from podium.online.observation import LONGEST_S, SHORTEST_S
from podium.online.posterior import Prediction

WIDEST = 1.0
"""A spread of log run time above this (a factor of e) counts as this in the mean and sigma.

The mean of a log-normal grows with exp(spread²/2). For a job type of which nothing is known it
would be days, whatever the median. Intervals are not narrowed.
"""

NOISIEST = 1.0
"""The same of the noise of single runs: the first two in different units must not mean ages."""

_WIDEST_VARIANCE, _NOISIEST_VARIANCE = WIDEST**2, NOISIEST**2
_LARGEST = 700.0
_SHORTEST, _LONGEST = math.log(SHORTEST_S), math.log(LONGEST_S)
"""No run is expected to take a time that none may be observed to take, whatever its features."""


class Estimate(NamedTuple):
    """What is known of the run time of a job type on a GPU type.

    The expected run time is exp(f + noise/2), where f, the log run time without noise, is Gaussian.
    So the expected run time is log-normal; `mu` is its mean and `sigma` its standard deviation.
    Sigma is what is not known about the expectation, not the noise of single runs: it falls like
    one over the square root of the observations.
    """

    log_mean: float  # alone
    log_variance: float  # of what is not known; without the noise of single runs
    noise_variance: float
    observations: int
    mu: float
    sigma: float
    freedom: float = math.inf  # observations that the noise is known from
    added: float = 0.0  # what company adds to the log run time
    whole_variance: float = 0.0  # of the log run time in that company
    beyond_usual: float = 0.0  # of the log run time, for features that are not the usual ones

    @classmethod
    def of(cls, known: Prediction, observations: int) -> Estimate:
        """Computes the moments of the log-normal distribution."""
        mean, variance, noise, freedom, added, whole, beyond_usual = known
        spread = min(max(variance, 0.0), _WIDEST_VARIANCE)
        mu = _runtime_s(mean + 0.5 * (min(noise, _NOISIEST_VARIANCE) + spread))
        return cls(
            mean, variance, noise, observations, mu, mu * math.sqrt(math.expm1(spread)),
            freedom, added, variance if whole is None else whole, beyond_usual,
        )  # fmt: skip

    @property
    def usual_s(self) -> float:
        """Returns how long a run of this job type with the usual features is expected to take."""
        usual_s = self.mu * math.exp(min(-self.beyond_usual, _LARGEST))
        return min(max(usual_s, SHORTEST_S), LONGEST_S)

    @property
    def slowdown(self) -> float:
        """Returns how much longer it runs in its company; 0.5: half as long again."""
        return max(math.expm1(min(self.added, _LONGEST - _SHORTEST)), 0.0)

    def intervals_s(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Returns where the expected and the next run time lie with a probability of 90 %.

        Both are those in company, if there is any.
        """
        center, noise = self.log_mean + self.added, self.noise_variance
        spread = max(self.whole_variance, 1e-12)
        # What is not known of the noise widens that part of the interval which comes from noise.
        wider = t95(self.freedom) - Z95
        own = min(noise, spread)
        half = (Z95 + wider * own / spread) * math.sqrt(spread)
        far = (Z95 + wider * (own + noise) / (spread + noise)) * math.sqrt(spread + noise)
        mean = center + 0.5 * min(noise, _NOISIEST_VARIANCE)
        return (_exp(mean - half), _exp(mean + half)), (_exp(center - far), _exp(center + far))


def _runtime_s(log_s: float) -> float:
    return math.exp(min(max(log_s, _SHORTEST), _LONGEST))


def _exp(value: float) -> float:
    if -_LARGEST <= value <= _LARGEST:
        return math.exp(value)
    return math.exp(max(min(value, _LARGEST), -_LARGEST))
