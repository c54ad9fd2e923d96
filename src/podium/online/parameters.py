"""What the agent assumes before it has seen anything, and how it weighs what it learns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from podium.settings import Online

FEATURES = ("gpu_mem_gb", "model_params_m", "batch_size")
"""Numbers of a job that may tell its run time; they enter as ln(1 + value)."""


@dataclass(frozen=True, slots=True)
class Prior:
    """The spreads of the model of log run time before data; a spread of 0.7 is a factor of 2.

    The spread of the overall level is wide on purpose: the first observation sets the scale, so
    that a GPU type never seen is not taken for fast because jobs last longer than expected. Spreads
    of job types, GPU types, pairs and features, and the noise, are what is expected before data;
    see `spread` and `noise`.
    """

    runtime_s: float = 10.0
    level_spread: float = 10.0
    job_spread: float = 2.0
    gpu_spread: float = 0.7
    pair_spread: float = 0.8
    feature_spread: float = 0.5
    missing_spread: float = 2.0  # of runs that do not give a feature from those that do
    slope_spread: float = 0.2  # of the weights of features, from GPU type to GPU type
    suffer_spread: float = 0.2  # of job types, in how much any neighbour slows them down
    disturb_spread: float = 0.2  # of job types, in how much they slow down any neighbour
    slowdown_spread: float = 0.35  # of pairs of job types
    local_spread: float = 0.12  # of pairs of job types, from GPU type to GPU type
    noise: float = 0.2
    noise_weight: float = 2.0  # observations that the prior of the common noise is worth
    own_noise_weight: float = 4.0  # observations that the common noise is worth for a job type


@dataclass(frozen=True, slots=True)
class Parameters:
    """The weights of the cost, the cap of exploration and the prior."""

    lambda_uncertainty: float = 0.3
    beta_exploration: float = 0.7
    gamma_interference: float = 1.0
    tau_squared: float = 0.04  # relative variance that one run has at least, by luck
    horizon: float = 200.0  # runs of a job type that profit from what one run teaches
    exploration_cap: float = 0.25
    exploration_window: int = 100
    enable_interference: bool = False
    avoid_slowdown: float = 0.1
    avoid_probability: float = 0.9  # from which a slowdown above that is taken for one
    exploration_floor: float = 0.005  # share of the time of all jobs for what was never tried
    in_flight_limit_s: float = 86_400.0  # after which a decision is no longer waited for
    forgetting: float = 1.0  # weight that a job type's older observations keep; 1: all of it
    features: tuple[str, ...] = FEATURES
    prior: Prior = field(default_factory=Prior)

    @classmethod
    def of(cls, settings: Online) -> Parameters:
        """Reads the parameters from the settings."""
        names = [name.strip() for name in settings.features.split(",")]
        return cls(
            lambda_uncertainty=settings.lambda_uncertainty,
            beta_exploration=settings.beta_exploration,
            gamma_interference=settings.gamma_interference,
            tau_squared=settings.tau_squared,
            horizon=settings.horizon,
            exploration_cap=settings.exploration_cap,
            exploration_window=settings.exploration_window,
            enable_interference=settings.enable_interference,
            avoid_slowdown=settings.avoid_slowdown,
            avoid_probability=settings.avoid_probability,
            exploration_floor=settings.exploration_floor,
            in_flight_limit_s=settings.in_flight_limit_s,
            forgetting=settings.forgetting,
            features=tuple(dict.fromkeys(name for name in names if name)),
            prior=Prior(runtime_s=settings.prior_runtime_s),
        )

    @property
    def level(self) -> float:
        """Returns the log run time that is expected of anything before data."""
        return math.log(self.prior.runtime_s)
