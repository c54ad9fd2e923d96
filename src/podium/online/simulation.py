"""Plays the loop of scoring and observing in a world of hidden run times."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from podium.errors import UnknownName
from podium.online.agent import Agent
from podium.online.exploration import EXPLOITATION, EXPLORATION
from podium.online.observation import Observation, Request
from podium.online.parameters import Parameters
from podium.online.world import Jobs, World, WorldPlan, draw_jobs, draw_world

Array = NDArray[np.float64]
Chooser = Callable[[int, Request], tuple[str, str]]  # gives GPU type and decision type

EPSILON = 0.1
WAYS = {
    "oracle": "knows the hidden run times",
    "online": "the agent",
    "never-explore": "the agent, which takes the best that it has seen",
    "epsilon": "the same, with one job in ten sent anywhere",
}


@dataclass(frozen=True, slots=True)
class Course:
    """Holds what happened to each job, in the order of decisions."""

    chosen: NDArray[np.intp]
    expected_s: Array  # of the choice, with its neighbour and without luck
    best_s: Array  # of the best choice
    decision_types: tuple[str, ...]
    agent: Agent  # as it was when the last job was decided

    @property
    def regret(self) -> Array:
        """Gives the share by which each choice takes longer than the best one."""
        return np.asarray(self.expected_s / self.best_s - 1.0)

    @property
    def excess(self) -> Array:
        """Gives, after each decision, the time lost so far over the oracle's time so far."""
        return np.asarray(np.cumsum(self.expected_s) / np.cumsum(self.best_s) - 1.0)

    def share(self, decision_type: str) -> float:
        """Gives the share of decisions of a type."""
        return self.decision_types.count(decision_type) / len(self.decision_types)


def simulate_loop(
    plan: WorldPlan,
    ways: Sequence[str],
    parameters: Parameters | None = None,
    jobs: int = 1000,
    seed: int = 0,
) -> dict[str, Course]:
    """Draws a world and the jobs in it, and lets each way decide the same jobs."""
    world, drawn = draw(plan, jobs, seed)
    return {way: play(world, drawn, way, parameters or Parameters(), seed) for way in ways}


def draw(plan: WorldPlan, jobs: int, seed: int) -> tuple[World, Jobs]:
    """Draws the world of a seed and the jobs in it."""
    rng = np.random.default_rng(seed)
    world = draw_world(plan, rng)
    return world, draw_jobs(world, jobs, rng)


def play(world: World, jobs: Jobs, way: str, parameters: Parameters, seed: int = 0) -> Course:
    """Decides job by job; a run is observed when it is over, not before."""
    agent = Agent(parameters if way == "online" else replace(parameters, exploration_cap=0.0))
    expected_s = hidden_s(world, jobs)
    choose = _chooser(way, agent, expected_s, world.gpu_types, np.random.default_rng(seed))
    running: list[tuple[float, int, Observation]] = []
    chosen = np.zeros(len(jobs), dtype=np.intp)
    types = []
    for number, request in enumerate(requests(world, jobs)):
        arrival_s = float(jobs.arrival_s[number])
        while running and running[0][0] <= arrival_s:
            agent.observe(heapq.heappop(running)[2])
        gpu_type, decision_type = choose(number, request)
        types.append(decision_type)
        gpu = chosen[number] = request.candidate_gpu_types.index(gpu_type)
        runtime_s = float(expected_s[number, gpu] * jobs.luck[number, gpu])
        seen = Observation(
            request.job_type,
            gpu_type,
            runtime_s,
            colocated_job_types=request.colocated_job_types,
        )
        heapq.heappush(running, (arrival_s + runtime_s, number, seen))
    own_s = expected_s[np.arange(len(jobs)), chosen]
    return Course(chosen, own_s, expected_s.min(axis=1), tuple(types), agent)


def hidden_s(world: World, jobs: Jobs) -> Array:
    """Gives the expected run time of each job on each GPU type, with its neighbour."""
    factor = world.slowdown[jobs.job_type, jobs.neighbour]
    factor = np.where(jobs.neighbour >= 0, factor, 1.0)
    return np.asarray(world.runtime_s[jobs.job_type] * factor[:, None])


def requests(world: World, jobs: Jobs) -> Iterator[Request]:
    """Gives what the agent is asked, job by job."""
    names, gpu_types = world.job_types, tuple(world.gpu_types)
    for job_type, neighbour in zip(jobs.job_type.tolist(), jobs.neighbour.tolist(), strict=True):
        beside = (names[neighbour],) if neighbour >= 0 else ()
        yield Request(names[job_type], gpu_types, colocated_job_types=beside)


def _chooser(
    way: str, agent: Agent, expected_s: Array, gpu_types: list[str], rng: np.random.Generator
) -> Chooser:
    def ask(_: int, request: Request) -> tuple[str, str]:
        answer = agent.score(request)
        return answer.chosen_gpu_type, answer.decision_type

    def ask_or_draw(number: int, request: Request) -> tuple[str, str]:
        if rng.random() < EPSILON:
            return gpu_types[rng.integers(len(gpu_types))], EXPLORATION
        return ask(number, request)

    def know(number: int, _: Request) -> tuple[str, str]:
        return gpu_types[int(expected_s[number].argmin())], EXPLOITATION

    choosers = {"oracle": know, "online": ask, "never-explore": ask, "epsilon": ask_or_draw}
    if way not in choosers:
        raise UnknownName.among("way to choose", way, choosers)
    return choosers[way]
