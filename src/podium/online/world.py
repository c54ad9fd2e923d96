"""Draws simulated worlds for an agent: hidden run times, neighbours and jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WorldPlan:
    """What kind of world is drawn; spreads are of log run time."""

    job_types: int = 10
    gpu_types: int = 5
    noise: float = 0.2
    runtime_s: float = 600.0
    job_spread: float = 1.0
    gpu_spread: float = 0.5
    pair_spread: float = 0.3
    neighbour_share: float = 0.0  # of jobs that run beside another one
    slowdown: float = 0.5  # of pairs of job types that disturb each other
    disturbing_share: float = 0.3  # of pairs of job types
    interarrival: float = 1.0  # mean time between jobs, in units of the run time


@dataclass(frozen=True, slots=True)
class World:
    """What is hidden from the agent."""

    runtime_s: Array  # expected, by job type and GPU type
    slowdown: Array  # factor, by job type and neighbour
    noise: float
    plan: WorldPlan

    @property
    def job_types(self) -> list[str]:
        """Names the job types."""
        return [f"job-{number}" for number in range(len(self.runtime_s))]

    @property
    def gpu_types(self) -> list[str]:
        """Names the GPU types."""
        return [f"gpu-{number}" for number in range(self.runtime_s.shape[1])]


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs in the order of arrival; the noise of a job does not depend on the choice."""

    arrival_s: Array
    job_type: NDArray[np.intp]
    neighbour: NDArray[np.intp]  # -1: it runs alone
    luck: Array  # factor of the run time, by job and GPU type

    def __len__(self) -> int:
        return len(self.job_type)


def draw_world(plan: WorldPlan, rng: np.random.Generator) -> World:
    """Draws run times from job, GPU and pair effects, and which pairs disturb each other."""
    shape = (plan.job_types, plan.gpu_types)
    log_runtime = (
        np.log(plan.runtime_s)
        + rng.normal(0.0, plan.job_spread, (plan.job_types, 1))
        + rng.normal(0.0, plan.gpu_spread, (1, plan.gpu_types))
        + rng.normal(0.0, plan.pair_spread, shape)
    )
    disturbs = rng.random((plan.job_types, plan.job_types)) < plan.disturbing_share
    slowdown = np.where(disturbs, 1.0 + plan.slowdown, 1.0)
    return World(np.exp(log_runtime), slowdown, plan.noise, plan)


def draw_jobs(world: World, count: int, rng: np.random.Generator) -> Jobs:
    """Draws jobs that arrive at random; luck is log-normal with mean one."""
    plan = world.plan
    kinds = len(world.runtime_s)
    beside = rng.integers(kinds, size=count)
    return Jobs(
        np.cumsum(rng.exponential(plan.interarrival * plan.runtime_s, count)),
        rng.integers(kinds, size=count),
        np.where(rng.random(count) < plan.neighbour_share, beside, -1),
        np.exp(rng.normal(-0.5 * plan.noise**2, plan.noise, (count, world.runtime_s.shape[1]))),
    )
