"""Tries the agent in drawn worlds, over several seeds, and sums up what it learned and lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from podium.online.agent import Agent
from podium.online.exploration import EXPLORATION, FORCED
from podium.online.observation import Request
from podium.online.parameters import Parameters
from podium.online.simulation import Array, Course, draw, play
from podium.online.strategies import STRATEGIES
from podium.online.world import Jobs, World, WorldPlan

LATE = 200
"""Last decisions over which an agent that has learned is judged."""

BLOCKS = 100
"""Parts into which a course is cut to be drawn."""

_MOST_JOB_TYPES, _MOST_SLOWDOWNS = 4, 4
_MARKS = (10, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000)


@dataclass(frozen=True, slots=True)
class LearningTrial:
    """What is tried: a kind of world, how many jobs, which seeds."""

    plan: WorldPlan = field(default_factory=WorldPlan)
    jobs: int = 1000
    seeds: tuple[int, ...] = (0,)
    parameters: Parameters = field(default_factory=Parameters)

    @property
    def marks(self) -> tuple[int, ...]:
        """Lists the numbers of decisions after which regret is shown; the last is all of them."""
        return (*(mark for mark in _MARKS if mark < self.jobs), self.jobs)


def run_trial(trial: LearningTrial, advance: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Runs every strategy on the jobs of every seed; returns the figures as JSON types.

    The pairs and slowdowns are those that the agent has learned by the end of the first seed.
    """
    parameters = trial.parameters
    if trial.plan.neighbour_share > 0.0:
        parameters = replace(parameters, enable_interference=True)
    runs, courses = [], dict[str, list[Course]]()
    found: dict[str, Any] = {}
    for seed in trial.seeds:
        world, jobs = draw(trial.plan, trial.jobs, seed)
        for name in STRATEGIES:
            course = play(world, jobs, name, parameters, seed)
            courses.setdefault(name, []).append(course)
            runs.append({"seed": seed, "way": name, **_run(course)})
            if name == "online" and not found:
                found["pairs"] = _recovered_run_times(world, course.agent)
                found["slowdowns"] = _recovered_slowdowns(world, jobs, course.agent)
            advance()
    ways = {name: _means(played, trial.marks) for name, played in courses.items()}
    return {
        "policy": "online",
        "world": asdict(trial.plan),
        "jobs": trial.jobs,
        "seeds": list(trial.seeds),
        "exploration_cap": parameters.exploration_cap,
        "late": min(LATE, trial.jobs),
        "decisions": list(trial.marks),
        "ways": ways,
        **found,
        "runs": runs,
    }


def _means(courses: Sequence[Course], marks: Sequence[int]) -> dict[str, Any]:
    regret = np.array([course.regret for course in courses])
    windows = zip((0, *marks), marks, strict=False)
    figures = [_figures(course) for course in courses]
    return {
        "regret": [float(regret[:, first:last].mean()) for first, last in windows],
        "regret_so_far": [float(regret[:, :last].mean()) for last in marks],
        **{name: float(np.mean([each[name] for each in figures])) for name in figures[0]},
    }


def _figures(course: Course) -> dict[str, float]:
    return {
        "mean_regret": float(course.regret.mean()),
        "late_regret": float(course.regret[-LATE:].mean()),
        "time_excess": float(course.excess[-1]),
        "exploration": course.share(EXPLORATION),
        "forced": course.share(FORCED),
    }


def _run(course: Course) -> dict[str, Any]:
    parts: list[Array] = np.array_split(course.regret, min(BLOCKS, len(course.regret)))
    return {**_figures(course), "course": [round(float(part.mean()), 6) for part in parts]}


def _recovered_run_times(world: World, agent: Agent) -> list[dict[str, Any]]:
    """Compares estimates and truth for the first job types: on their best and worst GPU type."""
    found = []
    for job, name in enumerate(world.job_types[:_MOST_JOB_TYPES]):
        known = agent.candidates(Request(name, tuple(world.gpu_types)))
        hidden = world.runtime_s[job]
        for gpu in dict.fromkeys((int(hidden.argmin()), int(hidden.argmax()))):
            each = known[gpu]
            found.append(
                {
                    "job_type": name,
                    "gpu_type": each.gpu_type,
                    "observations": each.observations,
                    "true_s": float(hidden[gpu]),
                    "mu_s": each.mu,
                    "sigma_s": each.sigma,
                }
            )
    return found


def _recovered_slowdowns(world: World, jobs: Jobs, agent: Agent) -> list[dict[str, Any]]:
    """Compares slowdowns and truth for the pairs of job types that met most often."""
    size = len(world.job_types)
    meetings = np.zeros((size, size), dtype=np.intp)
    is_beside = jobs.neighbour >= 0
    np.add.at(meetings, (jobs.job_type[is_beside], jobs.neighbour[is_beside]), 1)
    often = np.argsort(-meetings, axis=None, kind="stable")[:_MOST_SLOWDOWNS]
    found = []
    for job, beside in zip(*np.unravel_index(often, meetings.shape), strict=True):
        if not meetings[job, beside]:
            continue
        names = world.job_types[job], world.job_types[beside]
        weighed = agent.candidates(Request(names[0], tuple(world.gpu_types), {}, names[1:]))[0]
        found.append(
            {
                "job_type": names[0],
                "beside": names[1],
                "jobs": int(meetings[job, beside]),
                "true_slowdown": float(world.slowdown[job, beside] - 1.0),
                "slowdown": weighed.penalty / weighed.mu,
            }
        )
    return found
