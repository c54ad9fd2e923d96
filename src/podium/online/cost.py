"""Weighs what a run would cost against what it would teach.

    cost = mu + lambda * sigma - beta * ig + gamma * penalty

Every term is in seconds, so that the same weights serve jobs of milliseconds and of days:

- mu, sigma: mean and standard deviation of the expected run time (see `Estimate`);
- ig: the information gain, ½ ln(1 + (sigma / mu)² / tau²) nats, times what a nat is worth: the
  run time of the fastest candidate, for as many runs as the horizon says will profit, times the
  chance that this candidate is the faster one (where it is even, 1). What cannot change a choice
  is worth nothing, however much there is to learn;
- penalty: the seconds that the neighbours are expected to add, mu times the slowdown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from podium.online.estimate import Estimate
from podium.online.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Candidate:
    """The terms of the cost of a job on one GPU type, in seconds."""

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


def candidates_of(
    gpu_types: Sequence[str],
    estimates: Sequence[Estimate],
    slowdown: float,
    parameters: Parameters,
) -> tuple[Candidate, ...]:
    """Weighs each GPU type."""
    fastest = min(estimates, key=attrgetter("mu"))
    worth_s = fastest.mu * parameters.horizon
    found = []
    for gpu_type, known in zip(gpu_types, estimates, strict=True):
        nats = 0.5 * math.log1p((known.sigma / known.mu) ** 2 / parameters.tau_squared)
        ig = nats * worth_s * _chance(known, fastest)
        penalty = known.mu * slowdown
        greedy = (
            known.mu
            + parameters.lambda_uncertainty * known.sigma
            + parameters.gamma_interference * penalty
        )
        cost = greedy - parameters.beta_exploration * ig
        found.append(
            Candidate(
                gpu_type, known.mu, known.sigma, ig, penalty, cost, known.observations, nats, greedy
            )
        )
    return tuple(found)


def _chance(known: Estimate, fastest: Estimate) -> float:
    """Returns twice the probability that a candidate beats the one expected to be fastest."""
    behind = known.log_mean - fastest.log_mean
    if behind <= 0.0:
        return 1.0
    return math.erfc(behind / math.sqrt(2.0 * (known.log_variance + fastest.log_variance)))
