"""Weighs what a run would cost against what it would teach.

    cost = mu + lambda * sigma - beta * ig + gamma * penalty + failure

Every term is in seconds, so that the same weights serve jobs of milliseconds and of days:

- mu, sigma: mean and standard deviation of the expected run time (see `Estimate`);
- ig: the time that later runs are expected to save by what this one tells. Whether this candidate
  or the fastest one is faster, if it were known for certain, would save a part of each run: the
  expected lead of the one that turns out to be faster. One run tells that but in part: it takes
  ½ ln(1 + (sigma / mu)² / noise²) nats away from what is not known of this candidate, where sigma
  is no more than what a run in this company can teach, and noise² is tau² at least. That is summed
  over as many usual runs on the fastest candidate as the horizon says will profit (fewer for a job
  type that comes more seldom than others). What cannot change a choice is worth nothing, however
  much there is to learn; and as the runs that profit are usual ones, short runs are the better ones
  to learn from;
- penalty: the seconds that the neighbours are expected to add, mu times the slowdown;
- failure: the seconds that failed runs are expected to cost until one succeeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from podium.online.estimate import WIDEST, Estimate
from podium.online.failures import FEWEST, NO_RISK, Risk
from podium.online.observation import Place
from podium.online.parameters import Parameters

_ROOT_OF_2, _ROOT_OF_2_PI = math.sqrt(2.0), math.sqrt(2.0 * math.pi)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The terms of the cost of a job at one place, in seconds."""

    gpu_type: str
    mu: float
    sigma: float
    ig: float
    penalty: float
    cost: float
    observations: int
    ig_nats: float
    greedy_cost: float  # without the term of information gain
    node: str = ""
    failure: float = 0.0  # seconds that failed runs are expected to cost until one succeeds
    failures: int = 0  # failed runs of this pair
    success_chance: float = 1.0
    in_flight: int = 0  # jobs of this pair that were decided and not observed yet
    mean_interval_s: tuple[float, float] = (0.0, 0.0)  # 90 %, of the expected run time
    run_interval_s: tuple[float, float] = (0.0, 0.0)  # 90 %, of the next run
    is_failing: bool = False  # more often than not, and the last time

    @property
    def has_mostly_failed(self) -> bool:
        """Returns whether most runs failed, though the last one may have succeeded."""
        return self.failures >= FEWEST and self.success_chance < 0.5

    @property
    def expected_s(self) -> float:
        """Returns the seconds until the job is expected to be done, neighbours and failures told.

        Unlike the cost it is a time: no more is taken off for what the run would teach.
        """
        return self.mu + self.penalty + self.failure

    def terms(self) -> dict[str, float]:
        """Returns the terms by name."""
        return {
            "mu": self.mu,
            "sigma": self.sigma,
            "ig": self.ig,
            "penalty": self.penalty,
            "failure": self.failure,
            "cost": self.cost,
        }

    def as_object(self) -> dict[str, Any]:
        """Returns the candidate as JSON types."""
        return {
            "gpu_type": self.gpu_type,
            "node": self.node,
            **self.terms(),
            "expected_s": self.expected_s,
            "observations": self.observations,
            "ig_nats": self.ig_nats,
            "failures": self.failures,
            "success_chance": self.success_chance,
            "in_flight": self.in_flight,
            "mean_interval_s": list(self.mean_interval_s),
            "run_interval_s": list(self.run_interval_s),
        }


class Option(NamedTuple):
    """A place where a job may run, and what is known of it."""

    place: Place
    known: Estimate
    risk: Risk = NO_RISK
    in_flight: int = 0


def weigh(
    options: Sequence[Option], parameters: Parameters, frequency: float = 1.0
) -> tuple[Candidate, ...]:
    """Weighs each place for a job of a type that comes with this frequency; 1 is usual."""
    times = [option.known.mu for option in options]
    at = times.index(min(times))
    fastest = options[at]
    worth_s = fastest.known.usual_s * parameters.horizon * frequency
    costs = [_cost(option, parameters) for option in options]
    nats = [_nats(option, parameters) for option in options]
    gains = [_told(each) * lead for each, lead in zip(nats, _leads(options, fastest), strict=True)]
    best = options[costs.index(min(costs))].place.gpu_type
    _, penalty, failure = costs[at]
    if best != fastest.place.gpu_type and penalty + failure > 0.0:
        gains = _held_back(gains, options, fastest.place.gpu_type)
    return tuple(
        [
            _candidate(option, cost, each, worth_s * gain, parameters)
            for option, cost, each, gain in zip(options, costs, nats, gains, strict=True)
        ]
    )


def _leads(options: Sequence[Option], fastest: Option) -> list[float]:
    """Compares each candidate with the fastest GPU type, and that with its closest rival.

    What is expected to be saved is worth to one of two as much as it adds to what is not known.
    """
    first, best = fastest.place.gpu_type, fastest.known
    found: list[float | None] = []
    own = []
    for option in options:
        if option.place.gpu_type == first:
            found.append(None)
            continue
        rival = option.known
        lead, variance = _lead(best, rival)
        found.append(lead * rival.log_variance / variance if lead else 0.0)
        own.append(lead * best.log_variance / variance if lead else 0.0)
    most = max(own, default=0.0)
    return [most if each is None else each for each in found]


def _held_back(gains: list[float], options: Sequence[Option], gpu_type: str) -> list[float]:
    """Lets the fastest GPU type, where neighbours speak against it, count for no more than others.

    It is chosen whenever it is free, so that more will be learned of it in any case: no reason to
    bear them.
    """
    is_first = [option.place.gpu_type == gpu_type for option in options]
    most = max(each for each, skip in zip(gains, is_first, strict=True) if not skip)
    return [
        min(each, most) if is_held else each for each, is_held in zip(gains, is_first, strict=True)
    ]


def _cost(option: Option, parameters: Parameters) -> tuple[float, float, float]:
    """Returns the cost without the term of information gain, the penalty and the failures in it."""
    known, risk = option.known, option.risk
    penalty = known.mu * known.slowdown if parameters.enable_interference else 0.0
    failure = risk.expected_s(known.mu) if risk.chance else 0.0
    whole = (
        known.mu
        + parameters.lambda_uncertainty * known.sigma
        + parameters.gamma_interference * penalty
        + failure
    )
    return whole, penalty, failure


def _candidate(
    option: Option,
    cost: tuple[float, float, float],
    nats: float,
    ig: float,
    parameters: Parameters,
) -> Candidate:
    known, risk = option.known, option.risk
    greedy, penalty, failure = cost
    return Candidate(
        option.place.gpu_type, known.mu, known.sigma, ig, penalty,
        greedy - parameters.beta_exploration * ig, known.observations, nats,
        greedy, option.place.node, failure, risk.failures, 1.0 - risk.chance, option.in_flight,
        *known.intervals_s(), risk.is_failing,
    )  # fmt: skip


def _nats(option: Option, parameters: Parameters) -> float:
    """Returns what one run tells of a candidate: the less, the more luck there is in it."""
    noise = max(option.known.noise_variance, parameters.tau_squared)
    return 0.5 * math.log1p(_relative_variance(option) / noise)


def _told(nats: float) -> float:
    """Returns the part of a variance that so many nats take away."""
    return -math.expm1(-2.0 * nats)


def _relative_variance(option: Option) -> float:
    """Returns (sigma / mu)² of what a run here can teach, once the runs in flight are over.

    A run in company can only teach what is not known of runs in that company: who always has the
    same neighbours never learns how it would run alone, however often it is tried. A pair that was
    never seen and is being tried has nothing more to teach until that run is over.
    """
    known = option.known
    variance = min(known.log_variance, known.whole_variance)
    if option.in_flight:
        if not known.observations:
            return 0.0
        variance = 1.0 / (1.0 / max(variance, 1e-12) + option.in_flight / known.noise_variance)
    return math.expm1(min(max(variance, 0.0), WIDEST**2))


def _lead(best: Estimate, rival: Estimate) -> tuple[float, float]:
    """Returns the part of each later run that knowing all about both is expected to save.

    It is saved where the rival turns out to be the faster one: its lead then (in logarithms) times
    its probability. With it comes the variance of how far they are apart.
    """
    variance = best.log_variance + rival.log_variance
    if variance <= 0.0:
        return 0.0, 1.0
    spread = math.sqrt(variance)
    behind = max(rival.log_mean - best.log_mean, 0.0) / spread
    density = math.exp(-0.5 * behind**2) / _ROOT_OF_2_PI
    lead = spread * (density - 0.5 * behind * math.erfc(behind / _ROOT_OF_2))
    return max(lead, 0.0), variance
