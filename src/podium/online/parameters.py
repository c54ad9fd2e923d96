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
    that a GPU type never seen is not taken for fast because jobs last longer than expected.
    """

    runtime_s: float = 10.0
    level_spread: float = 10.0
    job_spread: float = 3.0
    gpu_spread: float = 0.7
    pair_spread: float = 0.8  # as expected; see `PairSpread`
    pair_spread_doubt: float = 0.7  # spread of its logarithm
    feature_spread: float = 0.5
    noise: float = 0.2
    noise_weight: float = 2.0  # observations that the prior of the noise is worth
    slowdown_spread: float = 0.5


@dataclass(frozen=True, slots=True)
class Parameters:
    """The weights of the cost, the cap of exploration and the prior."""

    lambda_uncertainty: float = 0.3
    beta_exploration: float = 0.7
    gamma_interference: float = 0.0
    tau_squared: float = 0.15  # relative variance that is worth half the logarithm of two
    horizon: float = 200.0  # runs of a job type that profit from what one run teaches
    exploration_cap: float = 0.25
    exploration_window: int = 100
    enable_interference: bool = False
    avoid_slowdown: float = 0.1
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
            forgetting=settings.forgetting,
            features=tuple(dict.fromkeys(name for name in names if name)),
            prior=Prior(runtime_s=settings.prior_runtime_s),
        )

    @property
    def level(self) -> float:
        """Returns the log run time that is expected of anything before data."""
        return math.log(self.prior.runtime_s)
