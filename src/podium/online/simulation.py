"""Plays the loop of scoring and observing in a world of hidden run times."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podium.online.agent import Agent
from podium.online.exploration import ExplorationCap
from podium.online.observation import Observation, Request
from podium.online.parameters import Parameters
from podium.online.strategies import Stage, strategy_named
from podium.online.world import Jobs, World, WorldPlan, draw_jobs, draw_world

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Course:
    """What happened to each job, in the order of decisions."""

    chosen: NDArray[np.intp]
    expected_s: Array  # of the choice, with its neighbour and without luck
    best_s: Array  # of the best choice
    decision_types: tuple[str, ...]
    agent: Agent  # as it was when the last job was decided

    @property
    def regret(self) -> Array:
        """Returns the share by which each choice takes longer than the best one."""
        return np.asarray(self.expected_s / self.best_s - 1.0)

    @property
    def excess(self) -> Array:
        """Returns, after each decision, the time lost so far over the oracle's time so far."""
        return np.asarray(np.cumsum(self.expected_s) / np.cumsum(self.best_s) - 1.0)

    def share(self, decision_type: str) -> float:
        """Returns the share of decisions of a type."""
        return self.decision_types.count(decision_type) / len(self.decision_types)


def draw(plan: WorldPlan, jobs: int, seed: int) -> tuple[World, Jobs]:
    """Draws the world of a seed and the jobs in it."""
    rng = np.random.default_rng(seed)
    world = draw_world(plan, rng)
    return world, draw_jobs(world, jobs, rng)


def play(world: World, jobs: Jobs, strategy: str, parameters: Parameters, seed: int = 0) -> Course:
    """Decides job by job; a run is observed when it is over, not before."""
    agent = Agent(parameters if strategy == "online" else replace(parameters, exploration_cap=0.0))
    expected_s = hidden_s(world, jobs)
    choose = strategy_named(strategy)
    cap = ExplorationCap(parameters.exploration_cap, parameters.exploration_window)
    stage = Stage(agent, expected_s, world.gpu_types, cap, np.random.default_rng(seed))
    running: list[tuple[float, int, Observation]] = []
    chosen = np.zeros(len(jobs), dtype=np.intp)
    types = []
    for number, request in enumerate(requests(world, jobs)):
        arrival_s = float(jobs.arrival_s[number])
        while running and running[0][0] <= arrival_s:
            agent.observe(heapq.heappop(running)[2])
        gpu_type, decision_type = choose(stage, number, request)
        types.append(decision_type)
        gpu = chosen[number] = request.candidate_gpu_types.index(gpu_type)
        runtime_s = float(expected_s[number, gpu] * jobs.luck[number, gpu])
        beside = request.colocated_job_types
        seen = Observation(
            request.job_type, gpu_type, runtime_s, colocated_job_types=beside, job_id=request.job_id
        )
        heapq.heappush(running, (arrival_s + runtime_s, number, seen))
    own_s = expected_s[np.arange(len(jobs)), chosen]
    return Course(chosen, own_s, expected_s.min(axis=1), tuple(types), agent)


def hidden_s(world: World, jobs: Jobs) -> Array:
    """Returns the expected run time of each job on each GPU type, with its neighbour."""
    factor = world.slowdown[jobs.job_type, jobs.neighbour]
    factor = np.where(jobs.neighbour >= 0, factor, 1.0)
    return np.asarray(world.runtime_s[jobs.job_type] * factor[:, None])


def requests(world: World, jobs: Jobs) -> Iterator[Request]:
    """Yields the requests to the agent, job by job."""
    names, gpu_types = world.job_types, tuple(world.gpu_types)
    drawn = zip(jobs.job_type.tolist(), jobs.neighbour.tolist(), strict=True)
    for number, (job_type, neighbour) in enumerate(drawn):
        beside = (names[neighbour],) if neighbour >= 0 else ()
        yield Request(
            names[job_type], gpu_types, colocated_job_types=beside, job_id=f"job {number}"
        )
